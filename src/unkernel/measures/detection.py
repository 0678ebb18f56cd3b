"""Detection of one class by a score: the examples that each threshold finds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curve:
    """The number of examples whose score reaches each threshold, from the highest threshold to the lowest.

    Attributes
    ----------
    hits, alarms : (thresholds,) float64
        Number of examples found: those of the class, and those of other classes.
    positives, negatives : float
        Number of all examples of the class, and of other classes.
    """

    hits: Numbers
    alarms: Numbers
    positives: float
    negatives: float

    @property
    def recall(self) -> Numbers:
        """Return the share of the examples of the class that is found."""
        return _divide(self.hits, self.positives)

    @property
    def false_alarm_rate(self) -> Numbers:
        """Return the share of the examples of other classes that is found."""
        return _divide(self.alarms, self.negatives)

    @property
    def precision(self) -> Numbers:
        """Return the share of the found examples that are of the class."""
        return _divide(self.hits, self.hits + self.alarms)

    @property
    def f1(self) -> Numbers:
        """Return the harmonic mean of precision and recall."""
        return _divide(2 * self.hits, self.hits + self.alarms + self.positives)

    def roc_area(self) -> float:
        """Return the share of (positive, negative) pairs in the correct order; NaN without pairs."""
        pairs = self.positives * self.negatives
        previous_hits = np.concatenate([[0.0], self.hits[:-1]])
        # Sums instead of a dot product: threads of BLAS would cost more than these few numbers.
        area = (np.diff(self.alarms, prepend=0.0) * (self.hits + previous_hits)).sum() / 2
        return float(area / pairs) if pairs else float("nan")

    def average_precision(self) -> float:
        """Return the mean, over the examples of the class, of the precision at the score of the example."""
        new_hits = np.diff(self.hits, prepend=0.0)
        precision = np.nan_to_num(self.precision)  # precision is 0 where nothing is found
        return float((new_hits * precision).sum() / self.positives) if self.positives else float("nan")


class Detection:
    """Examples by descending score.

    Parameters
    ----------
    scores : (examples,) float64
    positive : (examples,) bool
        Whether each example is of the class.
    """

    def __init__(self, scores: Numbers, positive: NDArray[np.bool_]) -> None:
        self._order = np.argsort(-scores, kind="stable")
        self._sorted = scores[self._order]
        self._positive = positive[self._order]

    @cached_property
    def _last_examples(self) -> NDArray[np.intp]:
        """Return the index of the last example at each threshold, since equal scores are found together."""
        ends = np.flatnonzero(np.diff(self._sorted))
        return np.append(ends, len(self._sorted) - 1)

    @cached_property
    def thresholds(self) -> Numbers:
        """Return the distinct scores, descending."""
        return np.asarray(self._sorted[self._last_examples])

    @cached_property
    def examples(self) -> NDArray[np.intp]:
        """Return, for each threshold, an example with that score."""
        return np.asarray(self._order[self._last_examples])

    def curve(self, counts: NDArray[Any] | None = None) -> Curve:
        """Return the curve over all thresholds; with `counts`, example i counts `counts[i]` times."""
        weights = np.ones(len(self._order)) if counts is None else counts[self._order].astype(np.float64)
        hits = np.cumsum(weights * self._positive)
        found = np.cumsum(weights)
        return Curve(
            hits[self._last_examples],
            (found - hits)[self._last_examples],
            float(hits[-1]),
            float(found[-1] - hits[-1]),
        )


def _divide(part: Numbers, whole: Any) -> Numbers:
    """Divide; NaN where the whole is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(part / whole)


def roc_area(scores: Numbers, positive: NDArray[np.bool_]) -> float | None:
    """Return the area under the ROC curve; None if there is only one class."""
    if not len(scores):
        return None
    area = Detection(scores, positive).curve().roc_area()
    return None if np.isnan(area) else area
