"""Records: from frames, dicts and texts to rows of features."""

from typing import TYPE_CHECKING

from unkernel._lazy import lazy_names

if TYPE_CHECKING:
    from unkernel.records.encoder import RecordEncoder
    from unkernel.records.plan import Plan, Step
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Plan": "unkernel.records.plan",
            "RecordEncoder": "unkernel.records.encoder",
            "Step": "unkernel.records.plan",
        },
    )

__all__ = ["Plan", "RecordEncoder", "Step"]
