"""Compile models into fast classifiers, and explain their predictions."""

from typing import TYPE_CHECKING

from unkernel._lazy import lazy_names

if TYPE_CHECKING:
    from unkernel.engines.classifier_files import load
    from unkernel.engines.compilation import compile
    from unkernel.engines.explain.explanation import Contribution, Explanation, Heavy
    from unkernel.engines.explain.fragments import Fragment, TreeExplanation
    from unkernel.engines.explain.importances import Importances
    from unkernel.engines.explain.shapes import Cell, Shape
    from unkernel.engines.records.bound_records import BoundRecord
    from unkernel.engines.records.classifier import RecordClassifier
    from unkernel.engines.rows.answer_cache import CacheInfo
    from unkernel.engines.rows.classifier import CompiledClassifier
    from unkernel.engines.rows.single_row import OneRowScorer
    from unkernel.engines.search.candidates import Candidate
    from unkernel.engines.trees.classifier import TreeClassifier
    from unkernel.engines.trees.kernel_matrix import TreeKernel
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "unkernel.engines.classifier_files": "load",
            "unkernel.engines.compilation": "compile",
            "unkernel.engines.explain.explanation": "Contribution Explanation Heavy",
            "unkernel.engines.explain.fragments": "Fragment TreeExplanation",
            "unkernel.engines.explain.importances": "Importances",
            "unkernel.engines.explain.shapes": "Cell Shape",
            "unkernel.engines.records.bound_records": "BoundRecord",
            "unkernel.engines.records.classifier": "RecordClassifier",
            "unkernel.engines.rows.answer_cache": "CacheInfo",
            "unkernel.engines.rows.classifier": "CompiledClassifier",
            "unkernel.engines.rows.single_row": "OneRowScorer",
            "unkernel.engines.search.candidates": "Candidate",
            "unkernel.engines.trees.classifier": "TreeClassifier",
            "unkernel.engines.trees.kernel_matrix": "TreeKernel",
        },
    )

__all__ = [
    "BoundRecord",
    "CacheInfo",
    "Candidate",
    "Cell",
    "CompiledClassifier",
    "Contribution",
    "Explanation",
    "Fragment",
    "Heavy",
    "Importances",
    "OneRowScorer",
    "RecordClassifier",
    "Shape",
    "TreeClassifier",
    "TreeExplanation",
    "TreeKernel",
    "compile",
    "load",
]
