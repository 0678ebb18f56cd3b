"""Options of a report."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Costs:
    """The costs of a false positive and of a false negative; correct predictions cost nothing."""

    false_positive: float = 1.0
    false_negative: float = 1.0

    def __post_init__(self) -> None:
        """Check that both costs are finite and not negative."""
        for name in ("false_positive", "false_negative"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise ValueError(
                    f"the cost of a {name.replace('_', ' ')} must be a number from 0 on, got {value}"
                )


@dataclass(frozen=True)
class Choices:
    """Options of a report.

    Attributes
    ----------
    costs : Costs or None
        Costs of mistakes, for the table of thresholds of models with two classes; None means 1 each.
    top : int
        The number of largest weights to list.
    mistakes : int
        The number of wrong predictions to show.
    title : str or None
    records : bool
        Whether the page may show test examples.
    """

    costs: Costs | None = None
    top: int = 20
    mistakes: int = 5
    title: str | None = None
    records: bool = True

    @property
    def n_shown(self) -> int:
        """Return the number of wrong predictions to show."""
        return self.mistakes if self.records else 0

    def check_no_costs(self, reason: str) -> None:
        """Raise a ValueError if costs are given: a report without thresholds would ignore them."""
        if self.costs is not None:
            raise ValueError(f"costs is for two classes; {reason}")
