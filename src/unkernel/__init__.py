"""Kernel machines at linear speed.

Train polynomial-kernel and tree-kernel SVMs in about the time a linear model takes, and compile any such
model, of ours or of other programs, into an exact classifier that answers in microseconds.

>>> from unkernel import PolySVC, PolyLogisticRegression, CuttingPlaneSVC, RankSVM, TreeSVC, TreeKernel
>>> from unkernel import compile, load, read_model, read_svmlight, read_trees
"""

from unkernel._version import __version__
from unkernel.cutplane import CuttingPlaneSVC, RankSVM
from unkernel.data import Forest, datasets, read_conllu, read_svmlight, read_trees, write_svmlight
from unkernel.engines import CompiledClassifier, TreeClassifier, TreeKernel, compile
from unkernel.errors import FormatError
from unkernel.models import ConjunctionModel, KernelModel, LinearModel, TreeModel, read_model, write_model
from unkernel.parsing import load
from unkernel.poly import PolyLogisticRegression, PolySVC
from unkernel.tree import TreeSVC

__all__ = [
    "CompiledClassifier",
    "ConjunctionModel",
    "CuttingPlaneSVC",
    "Forest",
    "FormatError",
    "KernelModel",
    "LinearModel",
    "PolyLogisticRegression",
    "PolySVC",
    "RankSVM",
    "TreeClassifier",
    "TreeKernel",
    "TreeModel",
    "TreeSVC",
    "__version__",
    "compile",
    "datasets",
    "load",
    "read_conllu",
    "read_model",
    "read_svmlight",
    "read_trees",
    "write_model",
    "write_svmlight",
]
