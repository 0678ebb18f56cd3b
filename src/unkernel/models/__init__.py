"""Models: plain, portable data that learners make and engines compile."""

from unkernel.models.conjunction import ConjunctionModel
from unkernel.models.decision import Decision, Platt
from unkernel.models.formats import read_model, write_model
from unkernel.models.kernel import Kernel, KernelModel
from unkernel.models.linear import LinearModel
from unkernel.models.load import load_model
from unkernel.models.sklearn import from_estimator
from unkernel.models.tree import ExampleKernel, TreeModel

__all__ = [
    "ConjunctionModel",
    "Decision",
    "ExampleKernel",
    "Kernel",
    "KernelModel",
    "LinearModel",
    "Platt",
    "TreeModel",
    "from_estimator",
    "load_model",
    "read_model",
    "write_model",
]
