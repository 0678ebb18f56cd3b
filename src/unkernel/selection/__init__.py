"""Choose a suitable model for a table: the kind of target, an encoding, a learner and its parameters."""

from typing import TYPE_CHECKING

from unkernel._lazy import lazy_names

if TYPE_CHECKING:
    from unkernel.selection.search import Trial
    from unkernel.selection.table_estimator import TableEstimator
    from unkernel.selection.updates import update_classifier
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "unkernel.selection.search": "Trial",
            "unkernel.selection.table_estimator": "TableEstimator",
            "unkernel.selection.updates": "update_classifier",
        },
    )

__all__ = ["TableEstimator", "Trial", "update_classifier"]
