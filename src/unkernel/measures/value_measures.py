"""Measures of regressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from unkernel.measures.base import ModelMeasures
from unkernel.measures.intervals import Counts, Numbers

R_SQUARED, ROOT_SQUARED, ABSOLUTE = "R squared", "root mean squared error", "mean absolute error"
MEANINGS = {
    R_SQUARED: "the share of the variance that is explained: 1 is perfect, 0 is as good as the mean",
    ROOT_SQUARED: "in the unit of the values",
    ABSOLUTE: "in the unit of the values",
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
    def errors(self) -> Numbers:
        """Return the predicted minus the true values."""
        return np.asarray(self.predictions.raw[:, 0] - self.gold)

    def values(self, counts: Counts | None = None) -> dict[str, float]:
        """Return the measures, counting example i `counts[i]` times; None means once each."""
        squared = float(np.average(self.errors**2, weights=counts))
        mean = np.average(self.gold, weights=counts)
        spread = float(np.average((self.gold - mean) ** 2, weights=counts))
        return {
            R_SQUARED: 1 - squared / spread if spread > 0 else float("nan"),
            ROOT_SQUARED: float(np.sqrt(squared)),
            ABSOLUTE: float(np.average(np.abs(self.errors), weights=counts)),
        }
