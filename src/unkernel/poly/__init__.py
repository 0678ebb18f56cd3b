"""Learners on polynomial feature maps."""

from unkernel.poly.logistic import PolyLogisticRegression
from unkernel.poly.svc import PolySVC

__all__ = ["PolyLogisticRegression", "PolySVC"]
