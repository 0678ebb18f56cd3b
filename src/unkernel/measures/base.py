"""What all measures of a model's answers have in common: a name, values, and intervals by the bootstrap."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from unkernel.measures.intervals import Counts, Measure, Numbers, bootstrap, with_intervals
from unkernel.measures.predictions import Scored


@dataclass(frozen=True, eq=False)
class Measured(ABC):
    """All measures of the answers of one model."""

    words: ClassVar[Mapping[str, str]]  # what each measure says

    answers: Scored

    @property
    def name(self) -> str:
        return self.answers.name

    @property
    def drawn(self) -> str:
        """What the bootstrap draws."""
        return f"{self.answers.examples.unit}s"

    @abstractmethod
    def values(self, counts: Counts | None = None) -> dict[str, float]:
        """The measures, where what is drawn counts so often."""

    @cached_property
    def samples(self) -> dict[str, Numbers]:
        """The measures of resampled examples."""
        return bootstrap(self.values, len(self.answers.examples))

    @cached_property
    def measures(self) -> list[Measure]:
        """The measures with their intervals."""
        return with_intervals(self.values(), self.samples)
