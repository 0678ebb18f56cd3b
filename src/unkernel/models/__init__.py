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
    from unkernel.models.threshold import Threshold
    from unkernel.models.tree import ExampleKernel, TreeModel
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "unkernel.models.conjunction": "ConjunctionModel",
            "unkernel.models.decision": "Decision Platt",
            "unkernel.models.formats": "read_model write_model",
            "unkernel.models.kernel": "Kernel KernelModel",
            "unkernel.models.linear": "LinearModel",
            "unkernel.models.model_files": "load_model",
            "unkernel.models.sklearn": "from_estimator",
            "unkernel.models.threshold": "Threshold",
            "unkernel.models.tree": "ExampleKernel TreeModel",
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
    "Threshold",
    "TreeModel",
    "from_estimator",
    "load_model",
    "read_model",
    "write_model",
]
