"""Encode records: data frames, dicts and texts become sparse rows of features."""

from typing import TYPE_CHECKING

from unkernel._lazy import lazy_names

if TYPE_CHECKING:
    from unkernel.records.encoder import RecordEncoder
    from unkernel.records.plan import Plan
    from unkernel.records.plan_step import PlanStep
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Plan": "unkernel.records.plan",
            "PlanStep": "unkernel.records.plan_step",
            "RecordEncoder": "unkernel.records.encoder",
        },
    )

__all__ = ["Plan", "PlanStep", "RecordEncoder"]
