"""Models as plain, portable data: what training produces and :func:`unkernel.compile` takes."""

from typing import TYPE_CHECKING

from unkernel._lazy import lazy_names

if TYPE_CHECKING:
    from unkernel.models.conjunction import ConjunctionModel
    from unkernel.models.decision import Decision, Platt
    from unkernel.models.formats import read_model, write_model
    from unkernel.models.kernel import Kernel, KernelModel
    from unkernel.models.linear import LinearModel
    from unkernel.models.model_files import load_model
    from unkernel.models.sklearn import from_estimator
    from unkernel.models.tree import ExampleKernel, TreeModel
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "ConjunctionModel": "unkernel.models.conjunction",
            "Decision": "unkernel.models.decision",
            "ExampleKernel": "unkernel.models.tree",
            "Kernel": "unkernel.models.kernel",
            "KernelModel": "unkernel.models.kernel",
            "LinearModel": "unkernel.models.linear",
            "Platt": "unkernel.models.decision",
            "TreeModel": "unkernel.models.tree",
            "from_estimator": "unkernel.models.sklearn",
            "load_model": "unkernel.models.model_files",
            "read_model": "unkernel.models.formats",
            "write_model": "unkernel.models.formats",
        },
    )

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
