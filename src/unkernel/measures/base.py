"""The base of all measures: a name, values, and intervals by the bootstrap."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from unkernel.measures.intervals import Counts, Measure, Numbers, bootstrap, with_intervals
from unkernel.measures.predictions import Scored


class Studied(ABC):
    """All measures of the predictions of one model or parser, with their intervals."""

    words: ClassVar[Mapping[str, str]]  # the meaning of each measure
    not_shares: ClassVar[Sequence[str]] = ()  # the names of measures that are not shown as percentages
    name: str  # of the model
    drawn: str  # unit that the bootstrap resamples, such as "records"

    @property
    @abstractmethod
    def n_drawn(self) -> int:
        """Return the number of units that the bootstrap resamples; 0 for none."""

    @abstractmethod
    def values(self, counts: Counts | None = None) -> dict[str, float]:
        """Return the measures if each unit counts `counts` times; once by default."""

    @property
    def counted(self) -> dict[str, tuple[float, float]]:
        """Return the part and the whole of measures that are shares of units."""
        return {}

    @cached_property
    def samples(self) -> dict[str, Numbers]:
        """Return the measures of resamples, which are the same for each model; NaN without units."""
        if not self.n_drawn:
            return {name: np.array([np.nan]) for name in self.values()}
        return bootstrap(self.values, self.n_drawn)

    @cached_property
    def measures(self) -> list[Measure]:
        """Return the measures with their intervals."""
        return with_intervals(self.values(), self.samples, counted=self.counted, numbers=self.not_shares)


@dataclass(frozen=True, eq=False)
class Measured(Studied):
    """All measures of the predictions of one model."""

    answers: Scored

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.answers.name

    @property
    def drawn(self) -> str:  # type: ignore[override]
        return f"{self.answers.examples.unit}s"

    @property
    def n_drawn(self) -> int:
        return len(self.answers.examples)
