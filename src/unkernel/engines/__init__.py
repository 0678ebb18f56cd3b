"""Compile models into fast classifiers, and explain their predictions."""

from typing import TYPE_CHECKING

from unkernel._lazy import lazy_names

if TYPE_CHECKING:
    from unkernel.engines.binding import BoundRecord
    from unkernel.engines.cache import CacheInfo
    from unkernel.engines.candidates import Candidate
    from unkernel.engines.classifier import CompiledClassifier
    from unkernel.engines.compiling import compile
    from unkernel.engines.explaining import Contribution, Explanation, Heavy
    from unkernel.engines.fragments import Fragment, TreeExplanation
    from unkernel.engines.loading import load
    from unkernel.engines.one_row import OneRowScorer
    from unkernel.engines.records import RecordClassifier
    from unkernel.engines.tree_kernel import TreeKernel
    from unkernel.engines.trees import TreeClassifier
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "BoundRecord": "unkernel.engines.binding",
            "CacheInfo": "unkernel.engines.cache",
            "Candidate": "unkernel.engines.candidates",
            "CompiledClassifier": "unkernel.engines.classifier",
            "Contribution": "unkernel.engines.explaining",
            "Explanation": "unkernel.engines.explaining",
            "Fragment": "unkernel.engines.fragments",
            "Heavy": "unkernel.engines.explaining",
            "OneRowScorer": "unkernel.engines.one_row",
            "RecordClassifier": "unkernel.engines.records",
            "TreeClassifier": "unkernel.engines.trees",
            "TreeExplanation": "unkernel.engines.fragments",
            "TreeKernel": "unkernel.engines.tree_kernel",
            "compile": "unkernel.engines.compiling",
            "load": "unkernel.engines.loading",
        },
    )

__all__ = [
    "BoundRecord",
    "CacheInfo",
    "Candidate",
    "CompiledClassifier",
    "Contribution",
    "Explanation",
    "Fragment",
    "Heavy",
    "OneRowScorer",
    "RecordClassifier",
    "TreeClassifier",
    "TreeExplanation",
    "TreeKernel",
    "compile",
    "load",
]
