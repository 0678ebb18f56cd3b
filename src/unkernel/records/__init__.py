"""Encode records: data frames, dicts and texts become sparse rows of features."""

from typing import TYPE_CHECKING

from unkernel._lazy import lazy_names

if TYPE_CHECKING:
    from unkernel.records.encoder import RecordEncoder
    from unkernel.records.plan import Plan
    from unkernel.records.plan_step import PlanStep
    from unkernel.records.training_counts import TrainingCounts
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "unkernel.records.encoder": "RecordEncoder",
            "unkernel.records.plan": "Plan",
            "unkernel.records.plan_step": "PlanStep",
            "unkernel.records.training_counts": "TrainingCounts",
        },
    )

__all__ = ["Plan", "PlanStep", "RecordEncoder", "TrainingCounts"]
