"""The base classes of measures: values, and confidence intervals by the bootstrap."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from unkernel.measures.intervals import Counts, Measure, Numbers, add_intervals, bootstrap
from unkernel.measures.predictions import ScoredExamples


class PredictionMeasures(ABC):
    """All measures of the predictions of one model or parser, with their intervals."""

    meanings: ClassVar[Mapping[str, str]]  # maps the name of each measure to its meaning
    not_shares: ClassVar[Sequence[str]] = ()  # the names of measures that are not shown as percentages
    name: str  # of the model
    resampled_unit: str  # the plural noun of the units that the bootstrap resamples, such as "records"

    @property
    @abstractmethod
    def n_resampled(self) -> int:
        """Return the number of units that the bootstrap resamples; 0 if resampling is not possible."""

    @abstractmethod
    def values(self, counts: Counts | None = None) -> dict[str, float]:
        """Return the measures if unit i counts `counts[i]` times; None counts each unit once."""

    @property
    def share_counts(self) -> dict[str, tuple[float, float]]:
        """Return (part, whole) of each measure that is a share of units, by the name of the measure."""
        return {}

    @cached_property
    def samples(self) -> dict[str, Numbers]:
        """Return the values of each measure over the bootstrap samples, by name; NaN if there are no units.

        The samples are the same for all models.
        """
        if not self.n_resampled:
            return {name: np.array([np.nan]) for name in self.values()}
        return bootstrap(self.values, self.n_resampled)

    @cached_property
    def measures(self) -> list[Measure]:
        """Return the measures with their intervals."""
        return add_intervals(
            self.values(), self.samples, share_counts=self.share_counts, numbers=self.not_shares
        )


@dataclass(frozen=True, eq=False)
class ModelMeasures(PredictionMeasures):
    """All measures of the predictions of one model."""

    predictions: ScoredExamples

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.predictions.name

    @property
    def resampled_unit(self) -> str:  # type: ignore[override]
        return f"{self.predictions.examples.unit}s"

    @property
    def n_resampled(self) -> int:
        return len(self.predictions.examples)
