"""Base classes of measures: values, and confidence intervals from the bootstrap."""

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
    """All measures of the predictions of one model or parser, with their confidence intervals."""

    meanings: ClassVar[Mapping[str, str]]  # the meaning of each measure, by name
    not_shares: ClassVar[Sequence[str]] = ()  # names of the measures that are not shown as percentages
    name: str  # name of the model
    resampled_unit: str  # plural noun for the units that the bootstrap resamples, such as "records"

    @property
    @abstractmethod
    def n_resampled(self) -> int:
        """Return the number of units that the bootstrap resamples; 0 if resampling is not possible."""

    @abstractmethod
    def values(self, counts: Counts | None = None) -> dict[str, float]:
        """Return the measures, counting unit i `counts[i]` times; None means once each."""

    @property
    def share_counts(self) -> dict[str, tuple[float, float]]:
        """Return (part, whole) for each measure that is a share of units, by name."""
        return {}

    @cached_property
    def samples(self) -> dict[str, Numbers]:
        """Return each measure's values in all bootstrap samples, by name; NaN if there are no units.

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
