"""Predictions by a threshold, directly from the definition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def choose_label(probabilities: Sequence[float], classes: Sequence[Any], value: float, positive: int) -> Any:
    """Return the positive class if its probability is at least `value`, otherwise the other class."""
    if probabilities[positive] >= value:
        return classes[positive]
    return classes[1 - positive]


def choose_labels(fast: Any, X: Any, value: float, positive: int = 1) -> list[Any]:
    """Return the label of each example from the probabilities of a classifier."""
    classes = fast.decision.classes.tolist()
    return [choose_label(row, classes, value, positive) for row in fast.predict_proba(X).tolist()]


def find_cheapest(probability: float, false_negative: float, false_positive: float) -> int:
    """Return the class, 0 or 1, whose prediction has the lower expected cost."""
    cost_of_negative = probability * false_negative
    cost_of_positive = (1 - probability) * false_positive
    return int(cost_of_positive <= cost_of_negative)
