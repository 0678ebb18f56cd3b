"""Support vector machines with tree kernels."""

from typing import TYPE_CHECKING

from unkernel._lazy import lazy_names

if TYPE_CHECKING:
    from unkernel.tree.svc import TreeSVC
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "unkernel.tree.svc": "TreeSVC",
        },
    )

__all__ = ["TreeSVC"]
