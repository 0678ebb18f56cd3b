"""Measures of regressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from unkernel.measures.base import ModelMeasures
from unkernel.measures.intervals import Counts, Numbers

R_SQUARED, ROOT_SQUARED, ABSOLUTE = "R squared", "root mean squared error", "mean absolute error"
POISSON = "Poisson deviance"
MEANINGS = {
    R_SQUARED: "the share of the variance that is explained: 1 is perfect, 0 is as good as the mean",
    ROOT_SQUARED: "in the unit of the values",
    ABSOLUTE: "in the unit of the values",
    POISSON: "the mean per example: 0 is perfect; the noise of counts that are not small leaves about 1",
}


class ValueMeasures(ModelMeasures):
    """All measures of the values that one model predicts."""

    meanings: ClassVar[Mapping[str, str]] = MEANINGS
    not_shares: ClassVar[Sequence[str]] = tuple(MEANINGS)

    @cached_property
    def gold(self) -> Numbers:
        """Return the true values."""
        try:
            return self.predictions.examples.labels.astype(np.float64)
        except ValueError:
            raise ValueError("the right answers of a regression must be numbers") from None

    @cached_property
    def predicted(self) -> Numbers:
        """Return the predicted values."""
        return np.asarray(self.predictions.decision.choose(self.predictions.raw))

    @cached_property
    def errors(self) -> Numbers:
        """Return the predicted minus the true values."""
        return np.asarray(self.predicted - self.gold)

    @cached_property
    def deviances(self) -> Numbers | None:
        """Return the Poisson deviance of each example; None if the model or the values are not of counts."""
        if self.predictions.decision.link != "log" or (self.gold < 0).any():
            return None
        excess = np.log(np.where(self.gold > 0, self.gold, 1.0)) - self.predictions.raw[:, 0]
        return np.asarray(2.0 * (np.where(self.gold > 0, self.gold * excess, 0.0) + self.errors))

    def values(self, counts: Counts | None = None) -> dict[str, float]:
        """Return the measures, counting example i `counts[i]` times; None means once each."""
        squared = float(np.average(self.errors**2, weights=counts))
        mean = np.average(self.gold, weights=counts)
        spread = float(np.average((self.gold - mean) ** 2, weights=counts))
        values = {
            R_SQUARED: 1 - squared / spread if spread > 0 else float("nan"),
            ROOT_SQUARED: float(np.sqrt(squared)),
            ABSOLUTE: float(np.average(np.abs(self.errors), weights=counts)),
        }
        if self.deviances is not None:
            values[POISSON] = float(np.average(self.deviances, weights=counts))
        return values
