"""Engines: compiled, immutable views of models that score rows."""

from unkernel.engines.candidates import Candidate
from unkernel.engines.classifier import CompiledClassifier, OneRowScorer, load
from unkernel.engines.compiling import compile
from unkernel.engines.explaining import Contribution, Explanation
from unkernel.engines.fragments import Fragment, TreeExplanation
from unkernel.engines.tree_kernel import TreeKernel
from unkernel.engines.trees import TreeClassifier

__all__ = [
    "Candidate",
    "CompiledClassifier",
    "Contribution",
    "Explanation",
    "Fragment",
    "OneRowScorer",
    "TreeClassifier",
    "TreeExplanation",
    "TreeKernel",
    "compile",
    "load",
]
