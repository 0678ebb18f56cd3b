"""Support vector machines on trees."""

from unkernel.tree.svc import TreeSVC

__all__ = ["TreeSVC"]
