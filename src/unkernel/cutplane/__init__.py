"""Cutting planes: linear SVMs and ranking SVMs in time linear in the rows, also out of core."""

from typing import TYPE_CHECKING

from unkernel._lazy import lazy_names

if TYPE_CHECKING:
    from unkernel.cutplane.rank import RankSVM, ordered_pairs
    from unkernel.cutplane.svc import CuttingPlaneSVC
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "CuttingPlaneSVC": "unkernel.cutplane.svc",
            "RankSVM": "unkernel.cutplane.rank",
            "ordered_pairs": "unkernel.cutplane.rank",
        },
    )

__all__ = ["CuttingPlaneSVC", "RankSVM", "ordered_pairs"]
