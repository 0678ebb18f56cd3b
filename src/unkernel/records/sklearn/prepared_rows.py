"""Rows of models that change them: naive Bayes binarizes or squares numbers, PCA subtracts their means."""

from __future__ import annotations

from typing import Any

import numpy as np

from unkernel.records import steps
from unkernel.records.sklearn.numbers import binarize
from unkernel.records.sklearn.plan_builder import Builder, Vector


def prepare_rows(builder: Builder, last: Any, vector: Vector) -> Vector:
    """Return the rows that the model of an estimator takes; for most estimators the vector itself."""
    name = type(last).__name__
    if name == "BernoulliNB" and last.binarize is not None:
        return binarize(builder, vector, float(last.binarize))
    if name == "GaussianNB":
        return _square_distances(builder, last, builder.dense(vector))
    if name == "PCA":
        vector = builder.dense(vector)
        return builder.add(steps.scale(vector.step, vector.names, subtract=last.mean_))
    return vector


def _square_distances(builder: Builder, classifier: Any, vector: Vector) -> Vector:
    """Return the squared distance of each number from its mean in each class, divided by the variance.

    These are the terms that scikit-learn adds. Polynomials of the numbers themselves would cancel.
    """
    factors = [(column, column) for column in range(len(vector.names))]
    parts = []
    for label, means, variances in zip(
        classifier.classes_.tolist(), classifier.theta_, classifier.var_, strict=True
    ):
        distances = builder.add(
            steps.scale(vector.step, vector.names, subtract=means, divide=np.sqrt(variances))
        )
        names = [f"distance of {name} from class {label}" for name in vector.names]
        parts.append(builder.add(steps.products(distances.step, factors, names)))
    return builder.concatenate(parts)
