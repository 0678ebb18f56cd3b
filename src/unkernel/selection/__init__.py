"""Choose a suitable model for a table: the kind of target, an encoding, a learner and its parameters."""

from typing import TYPE_CHECKING

from unkernel._lazy import lazy_names

if TYPE_CHECKING:
    from unkernel.selection.search import Trial
    from unkernel.selection.table_estimator import TableEstimator
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "unkernel.selection.search": "Trial",
            "unkernel.selection.table_estimator": "TableEstimator",
        },
    )

__all__ = ["TableEstimator", "Trial"]
