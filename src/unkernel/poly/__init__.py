"""Learners on polynomial feature maps."""

from unkernel.poly.svc import PolySVC

__all__ = ["PolySVC"]
