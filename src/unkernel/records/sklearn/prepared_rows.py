"""Prepare rows for models that need this: naive Bayes binarizes or squares numbers, PCA subtracts means."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.records import steps
from unkernel.records.sklearn.numbers import binarize
from unkernel.records.sklearn.plan_builder import Builder, Vector, refuse
from unkernel.records.steps import FORBIDDEN


def prepare_rows(builder: Builder, last: Any, vector: Vector) -> Vector:
    """Return rows in the form that an estimator's model takes; for most estimators, the vector itself."""
    name = type(last).__name__
    if name == "BernoulliNB" and last.binarize is not None:
        return binarize(builder, vector, float(last.binarize))
    if name == "GaussianNB":
        return _square_distances(builder, last, builder.dense(vector))
    if name == "CategoricalNB":
        return _encode_categories(builder, last, vector)
    if name == "PCA":
        vector = builder.dense(vector)
        return builder.add(steps.scale(vector.step, vector.names, subtract=last.mean_))
    return vector


def _square_distances(builder: Builder, classifier: Any, vector: Vector) -> Vector:
    """Return the squared distance of each number from its mean in each class, divided by the variance.

    scikit-learn adds the same terms. Expanded into polynomials of the numbers, they would lose precision by
    cancellation.
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


def _encode_categories(builder: Builder, classifier: Any, vector: Vector) -> Vector:
    """Replace an OrdinalEncoder by one feature per category.

    scikit-learn raises an error for numbers that are not categories, such as -1 for unknown ones.
    """
    ordinal = builder.steps[vector.step]
    if ordinal.kind != "ordinal" or vector.step != len(builder.steps) - 1:
        refuse("(CategoricalNB)", "takes the columns of an OrdinalEncoder, and gets something else")
    tables: list[dict[str, Any]] = []
    names: list[str] = []
    for name, table, logarithms in zip(
        vector.names, ordinal.table["categories"], classifier.feature_log_prob_, strict=True
    ):
        first, count = len(names), logarithms.shape[1]
        features = np.array(
            [first + int(value) if value in range(count) else FORBIDDEN for value in table["values"]]
        )
        codes = {key: _look_up(features, table[key]) for key in ("string_codes", "number_codes")}
        others = {key: int(_look_up(features, table[key])) for key in ("none", "nan", "absent", "unknown")}
        tables.append({key: value for key, value in table.items() if key != "values"} | codes | others)
        names += _label_categories(name, tables[-1], range(first, first + count))
    builder.steps[vector.step] = steps.one_hot(ordinal.table["columns"].tolist(), tables, names)
    return Vector(vector.step, names)


def _look_up(features: NDArray[np.int64], codes: Any) -> NDArray[np.int32]:
    """Return the feature of each code; negative codes are returned unchanged."""
    numbers: NDArray[np.int32] = np.where(np.asarray(codes) >= 0, features[codes], codes).astype(np.int32)
    return numbers


def _label_categories(name: str, table: dict[str, Any], features: range) -> list[str]:
    labels = {feature: f"{name} = {feature - features.start}" for feature in features}
    text, begin = bytes(table["strings"]), 0
    for end, feature in zip(table["string_ends"].tolist(), table["string_codes"].tolist(), strict=True):
        labels[feature] = f"{name} = {text[begin:end].decode('utf-8')}"
        begin = end
    for number, feature in zip(table["numbers"].tolist(), table["number_codes"].tolist(), strict=True):
        labels[feature] = f"{name} = {number:g}"
    return [labels[feature] for feature in features]
