"""Learners on conjunctions of features: polynomial-kernel SVMs, logistic regression and regression."""

from typing import TYPE_CHECKING

from unkernel._lazy import lazy_names

if TYPE_CHECKING:
    from unkernel.poly.logistic import PolyLogisticRegression
    from unkernel.poly.regressor import PolyRegressor
    from unkernel.poly.svc import PolySVC
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "unkernel.poly.logistic": "PolyLogisticRegression",
            "unkernel.poly.regressor": "PolyRegressor",
            "unkernel.poly.svc": "PolySVC",
        },
    )

__all__ = ["PolyLogisticRegression", "PolyRegressor", "PolySVC"]
