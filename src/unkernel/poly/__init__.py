"""Classifiers on conjunctions of features: polynomial-kernel SVMs and logistic regression."""

from typing import TYPE_CHECKING

from unkernel._lazy import lazy_names

if TYPE_CHECKING:
    from unkernel.poly.logistic import PolyLogisticRegression
    from unkernel.poly.svc import PolySVC
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "unkernel.poly.logistic": "PolyLogisticRegression",
            "unkernel.poly.svc": "PolySVC",
        },
    )

__all__ = ["PolyLogisticRegression", "PolySVC"]
