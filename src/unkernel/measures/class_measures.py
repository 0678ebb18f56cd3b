"""Measures of classifiers. Examples may count several times, as in bootstrap samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unkernel.measures.base import ModelMeasures
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
_MIN_PROBABILITY = 1e-15  # lower bound of probabilities in logarithms, as in scikit-learn's log_loss

MEANINGS = {
    ACCURACY: "the share of correct predictions",
    BALANCED: "the mean recall of the classes",
    MACRO_F1: "the mean over the classes of F1",
    CORRELATION: "between true and predicted classes: 1 is perfect, 0 is chance",
    PRECISION: "the share of the predicted positives that are positive",
    RECALL: "the share of the positives that are found",
    F1: "the harmonic mean of precision and recall",
    ROC_AREA: "the share of pairs of a positive and a negative that the scores order correctly",
    AVERAGE_PRECISION: "the area under the precision–recall curve",
    LOG_LOSS: "the mean of -log(probability of the true class), in nats",
    BRIER: "the mean squared error of the probabilities",
}


class ClassMeasures(ModelMeasures):
    """All measures of the predictions of one classifier."""

    meanings: ClassVar[Mapping[str, str]] = MEANINGS
    not_shares: ClassVar[Sequence[str]] = (CORRELATION, LOG_LOSS, BRIER)

    @cached_property
    def confusion(self) -> NDArray[Any]:
        """Return the numbers of examples by (true class, predicted class)."""
        return self._count_confusion(None)

    def _count_confusion(self, counts: Counts | None) -> NDArray[Any]:
        size = len(self.predictions.classes)
        cells = self.predictions.gold * size + self.predictions.predicted  # indices in the flat matrix
        return np.bincount(cells, weights=counts, minlength=size * size).reshape(size, size)

    @cached_property
    def losses(self) -> dict[str, Numbers]:
        """Return the log loss and the Brier score of each example."""
        probabilities = self.predictions.probabilities
        if probabilities is None:
            return {}
        gold_probabilities = np.take_along_axis(probabilities, self.predictions.gold[:, None], axis=1)[:, 0]
        # With two classes, both probabilities have the same squared error; count it only once.
        squares = (probabilities**2).sum(axis=1) - 2 * gold_probabilities + 1
        return {
            LOG_LOSS: -np.log(np.maximum(gold_probabilities, _MIN_PROBABILITY)),
            BRIER: squares / (2 if probabilities.shape[1] == 2 else 1),
        }

    def values(self, counts: Counts | None = None) -> dict[str, float]:
        """Return the measures, counting example i `counts[i]` times; None means once each."""
        measures = self.shares(self._count_confusion(counts))
        if self.predictions.positive is not None:
            curve = self.predictions.detection.curve(counts)
            measures |= {ROC_AREA: curve.roc_area(), AVERAGE_PRECISION: curve.average_precision()}
        return measures | {
            name: float(np.average(losses, weights=counts)) for name, losses in self.losses.items()
        }

    def shares(self, confusion: NDArray[Any]) -> dict[str, float]:
        """Return the measures for a confusion matrix of shape (true classes, predicted classes)."""
        hits, gold, predicted = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
        measures = {ACCURACY: _divide(hits.sum(), gold.sum())}
        positive = self.predictions.positive
        if positive is None:
            occurs = gold > 0
            measures[BALANCED] = float(np.mean(hits[occurs] / gold[occurs]))
            measures[MACRO_F1] = float(np.mean(2 * hits[occurs] / (gold + predicted)[occurs]))
        else:
            measures[PRECISION] = _divide(hits[positive], predicted[positive])
            measures[RECALL] = _divide(hits[positive], gold[positive])
            measures[F1] = _divide(2 * hits[positive], gold[positive] + predicted[positive])
        return measures | {CORRELATION: _compute_correlation(confusion)}

    @property
    def share_counts(self) -> dict[str, tuple[float, float]]:
        hits, confusion = np.diag(self.confusion), self.confusion
        shares = {ACCURACY: (float(hits.sum()), float(confusion.sum()))}
        positive = self.predictions.positive
        if positive is not None:
            shares[PRECISION] = (float(hits[positive]), float(confusion[:, positive].sum()))
            shares[RECALL] = (float(hits[positive]), float(confusion[positive].sum()))
        return shares


def _divide(part: float, whole: float) -> float:
    return float(part / whole) if whole else float("nan")


def _compute_correlation(confusion: NDArray[Any]) -> float:
    """Return Matthews' coefficient for any number of classes; 0 if only one class occurs or is predicted."""
    total, gold, predicted = float(confusion.sum()), confusion.sum(axis=1), confusion.sum(axis=0)
    covariance = np.trace(confusion) * total - gold @ predicted
    variances = (total**2 - predicted @ predicted) * (total**2 - gold @ gold)
    return float(covariance / np.sqrt(variances)) if variances > 0 else 0.0
