"""Detect one class by a score, using every distinct score as a threshold."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curve:
    """The numbers of true and false positives at each threshold, from the highest threshold to the lowest.

    Attributes
    ----------
    true_positives, false_positives : (thresholds,) float64
        Numbers of examples whose score reaches the threshold: of the class, and of other classes.
    positives, negatives : float
        Numbers of all examples of the class, and of other classes.
    """

    true_positives: Numbers
    false_positives: Numbers
    positives: float
    negatives: float

    @property
    def recall(self) -> Numbers:
        """Return the share of the examples of the class that are found."""
        return _divide(self.true_positives, self.positives)

    @property
    def false_positive_rate(self) -> Numbers:
        """Return the share of the examples of other classes that are found."""
        return _divide(self.false_positives, self.negatives)

    @property
    def precision(self) -> Numbers:
        """Return the share of the found examples that are of the class."""
        return _divide(self.true_positives, self.true_positives + self.false_positives)

    @property
    def f1(self) -> Numbers:
        """Return the harmonic mean of precision and recall."""
        return _divide(2 * self.true_positives, self.true_positives + self.false_positives + self.positives)

    def roc_area(self) -> float:
        """Return the share of (positive, negative) pairs in the correct order; NaN if there are none."""
        pairs = self.positives * self.negatives
        previous_true_positives = np.concatenate([[0.0], self.true_positives[:-1]])
        # Use a sum instead of a dot product, because starting the threads of BLAS would take longer.
        area = (
            np.diff(self.false_positives, prepend=0.0) * (self.true_positives + previous_true_positives)
        ).sum() / 2
        return float(area / pairs) if pairs else float("nan")

    def average_precision(self) -> float:
        """Return the mean, over examples of the class, of the precision at the example's score."""
        new_true_positives = np.diff(self.true_positives, prepend=0.0)
        precision = np.nan_to_num(self.precision)  # the precision is NaN where no example is found
        return (
            float((new_true_positives * precision).sum() / self.positives) if self.positives else float("nan")
        )


class Detection:
    """Examples sorted by descending score.

    Parameters
    ----------
    scores : (examples,) float64
    positive : (examples,) bool
        Whether each example belongs to the class.
    """

    def __init__(self, scores: Numbers, positive: NDArray[np.bool_]) -> None:
        self._order = np.argsort(-scores, kind="stable")
        self._sorted = scores[self._order]
        self._positive = positive[self._order]

    @cached_property
    def _last_examples(self) -> NDArray[np.intp]:
        """Return the index of the last example at each threshold; equal scores share a threshold."""
        ends = np.flatnonzero(np.diff(self._sorted))
        return np.append(ends, len(self._sorted) - 1)

    @cached_property
    def thresholds(self) -> Numbers:
        """Return the distinct scores in descending order."""
        return np.asarray(self._sorted[self._last_examples])

    @cached_property
    def examples(self) -> NDArray[np.intp]:
        """Return, for each threshold, the index of an example with this score."""
        return np.asarray(self._order[self._last_examples])

    def curve(self, counts: NDArray[Any] | None = None) -> Curve:
        """Return the curve over all thresholds; if `counts` is given, example i counts `counts[i]` times."""
        weights = np.ones(len(self._order)) if counts is None else counts[self._order].astype(np.float64)
        true_positives = np.cumsum(weights * self._positive)
        n_found = np.cumsum(weights)
        return Curve(
            true_positives[self._last_examples],
            (n_found - true_positives)[self._last_examples],
            float(true_positives[-1]),
            float(n_found[-1] - true_positives[-1]),
        )


def _divide(part: Numbers, whole: Any) -> Numbers:
    """Return part / whole; NaN where `whole` is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(part / whole)


def roc_area(scores: Numbers, positive: NDArray[np.bool_]) -> float | None:
    """Return the area under the ROC curve; None if there is only one class."""
    if not len(scores):
        return None
    area = Detection(scores, positive).curve().roc_area()
    return None if np.isnan(area) else area
