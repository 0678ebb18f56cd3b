"""Kernel machines at linear speed.

Train polynomial-kernel SVMs in about the time a linear model takes, and compile any such model, of ours
or of other programs, into an exact classifier that answers in microseconds.

>>> from unkernel import PolySVC, CuttingPlaneSVC, RankSVM, compile, load, read_model, read_svmlight
"""

from unkernel._version import __version__
from unkernel.cutplane import CuttingPlaneSVC, RankSVM
from unkernel.data import datasets, read_svmlight, write_svmlight
from unkernel.engines import CompiledClassifier, compile, load
from unkernel.errors import FormatError
from unkernel.models import ConjunctionModel, KernelModel, LinearModel, read_model, write_model
from unkernel.poly import PolySVC

__all__ = [
    "CompiledClassifier",
    "ConjunctionModel",
    "CuttingPlaneSVC",
    "FormatError",
    "KernelModel",
    "LinearModel",
    "PolySVC",
    "RankSVM",
    "__version__",
    "compile",
    "datasets",
    "load",
    "read_model",
    "read_svmlight",
    "write_model",
    "write_svmlight",
]
