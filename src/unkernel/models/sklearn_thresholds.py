"""Thresholds of scikit-learn's ``FixedThresholdClassifier`` and ``TunedThresholdClassifierCV``."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from unkernel.models.threshold import Threshold

WRAPPERS = ("FixedThresholdClassifier", "TunedThresholdClassifierCV")


def has_threshold(estimator: Any) -> bool:
    """Return whether an estimator is a classifier of scikit-learn with a threshold."""
    return any(
        kind.__name__ in WRAPPERS and kind.__module__.startswith("sklearn.")
        for kind in type(estimator).__mro__
    )


def get_inner(wrapper: Any) -> Any:
    """Return the fitted classifier inside a classifier with a threshold."""
    inner = getattr(wrapper, "estimator_", wrapper.estimator)
    return inner.estimator if type(inner).__name__ == "FrozenEstimator" else inner


def replace_inner(wrapper: Any, inner: Any) -> Any:
    """Return a copy of a classifier with a threshold, around another fitted classifier."""
    moved = copy(wrapper)
    moved.estimator_ = inner
    return moved


def split_threshold(estimator: Any) -> tuple[Any, Threshold | None]:
    """Return the classifier inside a classifier with a threshold, and the threshold.

    Any other estimator is returned unchanged, with None in place of the threshold.
    """
    threshold = None
    while has_threshold(estimator):
        threshold = threshold or read_threshold(estimator)  # the outer one decides
        estimator = get_inner(estimator)
    return estimator, threshold


def from_threshold(estimator: Any, from_estimator: Callable[[Any], Any]) -> Any:
    """Return the model of a classifier with a threshold."""
    inner, threshold = split_threshold(estimator)
    model = inner.to_model() if hasattr(inner, "to_model") else from_estimator(inner)
    return model.with_threshold(threshold)


def read_threshold(wrapper: Any) -> Threshold:
    """Return the threshold of a ``FixedThresholdClassifier`` or ``TunedThresholdClassifierCV``."""
    method = wrapper.response_method
    if method == "auto":
        method = "predict_proba" if hasattr(get_inner(wrapper), "predict_proba") else "decision_function"
    of = "probability" if method == "predict_proba" else "score"
    if hasattr(wrapper, "best_threshold_"):
        value, label = wrapper.best_threshold_, wrapper._curve_scorer._get_pos_label()
    else:
        value, label = wrapper.threshold, wrapper.pos_label
    if isinstance(value, str):  # "auto"
        value = 0.5 if of == "probability" else 0.0
    positive = 1 if label is None else int(np.flatnonzero(wrapper.classes_ == label)[0])
    return Threshold(value, positive, of)
