"""Kernel machines at linear speed.

Train polynomial-kernel SVMs in about the time a linear model takes, and answer from one small file
in microseconds.

>>> from unkernel import PolySVC, load, read_svmlight, datasets
"""

from unkernel._version import __version__
from unkernel.data import datasets, read_svmlight, write_svmlight
from unkernel.engines import CompiledClassifier, load
from unkernel.errors import FormatError
from unkernel.models import ConjunctionModel
from unkernel.poly import PolySVC

__all__ = [
    "CompiledClassifier",
    "ConjunctionModel",
    "FormatError",
    "PolySVC",
    "__version__",
    "datasets",
    "load",
    "read_svmlight",
    "write_svmlight",
]
