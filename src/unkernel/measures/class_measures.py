"""Measures of classifiers. Examples can count any number of times, so that they can be resampled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unkernel.measures.base import Measured
from unkernel.measures.intervals import Counts, Numbers

ACCURACY, BALANCED, MACRO_F1, CORRELATION = (
    "accuracy",
    "balanced accuracy",
    "mean F1 of the classes",
    "Matthews correlation",
)
PRECISION, RECALL, F1 = "precision", "recall", "F1"
ROC_AREA, AVERAGE_PRECISION = "ROC area", "average precision"
LOG_LOSS, BRIER = "log loss", "Brier score"
_LEAST_PROBABILITY = 1e-15  # the same lower bound as in scikit-learn's log_loss

WORDS = {
    ACCURACY: "the share of correct predictions",
    BALANCED: "the mean recall of the classes",
    MACRO_F1: "the mean over the classes of F1",
    CORRELATION: "between right and given classes: 1 is perfect, 0 is chance",
    PRECISION: "the share of the predicted positives that are positive",
    RECALL: "the share of the positives that are found",
    F1: "the harmonic mean of precision and recall",
    ROC_AREA: "the share of pairs of a positive and a negative that the scores order correctly",
    AVERAGE_PRECISION: "the area under the precision–recall curve",
    LOG_LOSS: "the mean of -log(probability of the true class), in nats",
    BRIER: "the mean squared error of the probabilities",
}


class ClassMeasures(Measured):
    """All measures of the predictions of one classifier."""

    words: ClassVar[Mapping[str, str]] = WORDS
    not_shares: ClassVar[Sequence[str]] = (CORRELATION, LOG_LOSS, BRIER)

    @cached_property
    def confusion(self) -> NDArray[Any]:
        """Return the number of examples by [correct class, predicted class]."""
        return self._confusion(None)

    def _confusion(self, counts: Counts | None) -> NDArray[Any]:
        size = len(self.answers.classes)
        cells = self.answers.right * size + self.answers.chosen
        return np.bincount(cells, weights=counts, minlength=size * size).reshape(size, size)

    @cached_property
    def losses(self) -> dict[str, Numbers]:
        """Return the log loss and the Brier score of each example."""
        probabilities = self.answers.probabilities
        if probabilities is None:
            return {}
        right = np.take_along_axis(probabilities, self.answers.right[:, None], axis=1)[:, 0]
        # For two classes, the squared error of one suffices: the other has the same.
        squares = (probabilities**2).sum(axis=1) - 2 * right + 1
        return {
            LOG_LOSS: -np.log(np.maximum(right, _LEAST_PROBABILITY)),
            BRIER: squares / (2 if probabilities.shape[1] == 2 else 1),
        }

    def values(self, counts: Counts | None = None) -> dict[str, float]:
        """Return the measures if each example counts `counts` times."""
        found = self.shares(self._confusion(counts))
        if self.answers.positive is not None:
            curve = self.answers.detection.curve(counts)
            found |= {ROC_AREA: curve.roc_area(), AVERAGE_PRECISION: curve.average_precision()}
        return found | {
            name: float(np.average(losses, weights=counts)) for name, losses in self.losses.items()
        }

    def shares(self, confusion: NDArray[Any]) -> dict[str, float]:
        """Return the measures of a confusion matrix [correct, predicted]."""
        hits, right, given = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
        found = {ACCURACY: _share(hits.sum(), right.sum())}
        place = self.answers.positive
        if place is None:
            present = right > 0
            found[BALANCED] = float(np.mean(hits[present] / right[present]))
            found[MACRO_F1] = float(np.mean(2 * hits[present] / (right + given)[present]))
        else:
            found[PRECISION] = _share(hits[place], given[place])
            found[RECALL] = _share(hits[place], right[place])
            found[F1] = _share(2 * hits[place], right[place] + given[place])
        return found | {CORRELATION: _correlation(confusion)}

    @property
    def counted(self) -> dict[str, tuple[float, float]]:
        hits, confusion = np.diag(self.confusion), self.confusion
        found = {ACCURACY: (float(hits.sum()), float(confusion.sum()))}
        if (place := self.answers.positive) is not None:
            found[PRECISION] = (float(hits[place]), float(confusion[:, place].sum()))
            found[RECALL] = (float(hits[place]), float(confusion[place].sum()))
        return found


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole else float("nan")


def _correlation(confusion: NDArray[Any]) -> float:
    """Return Matthews' coefficient, for any number of classes; 0 if only one class occurs or is predicted."""
    total, right, given = float(confusion.sum()), confusion.sum(axis=1), confusion.sum(axis=0)
    together = np.trace(confusion) * total - right @ given
    spread = (total**2 - given @ given) * (total**2 - right @ right)
    return float(together / np.sqrt(spread)) if spread > 0 else 0.0
