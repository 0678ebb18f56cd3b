"""Linear and ranking support vector machines, trained by cutting planes in memory or from files."""

from typing import TYPE_CHECKING

from unkernel._lazy import lazy_names

if TYPE_CHECKING:
    from unkernel.cutplane.rank import RankSVM
    from unkernel.cutplane.rankings import ndcg_score, ordered_pairs
    from unkernel.cutplane.svc import CuttingPlaneSVC
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "unkernel.cutplane.rank": "RankSVM",
            "unkernel.cutplane.rankings": "ndcg_score ordered_pairs",
            "unkernel.cutplane.svc": "CuttingPlaneSVC",
        },
    )

__all__ = ["CuttingPlaneSVC", "RankSVM", "ndcg_score", "ordered_pairs"]
