"""The models that a search compares: an encoding, a learner, and a path of values of C."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from unkernel.poly import PolyLogisticRegression, PolyRegressor
from unkernel.selection.targets import Task


@dataclass(frozen=True)
class Family:
    """Models that differ only in C; training each model starts from the solution of the previous one.

    Attributes
    ----------
    name : str
    make_learner : callable
        Returns the learner, given keyword arguments.
    Cs : tuple of float
        Ascending values of C.
    parameters : mapping
        All other parameters that the family fixes.
    scales_numbers : bool
        Whether numbers are scaled instead of divided into intervals.
    """

    name: str
    make_learner: Callable[..., Any]
    Cs: tuple[float, ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    scales_numbers: bool = False

    def make(self, C: float, **options: Any) -> Any:
        """Return an unfitted learner of the family."""
        return self.make_learner(C=C, **self.parameters, **options)


def _path(first: float, factor: float, count: int) -> tuple[float, ...]:
    """Return values of C, each `factor` times the previous one."""
    return tuple(first * factor**k for k in range(count))


_CLASSIFIERS: tuple[Family, ...] = (
    Family(
        "linear",
        PolyLogisticRegression,
        _path(0.01, 10, 7),
        {"degree": 1, "penalty": "l2", "feature_map": "plain"},
        scales_numbers=True,
    ),
    Family("additive", PolyLogisticRegression, _path(0.04, 4, 9), {"degree": 1, "penalty": "l2"}),
    Family(
        "polynomial",
        PolyLogisticRegression,
        _path(0.01, 10, 7),
        {"degree": 2, "penalty": "l2"},
        scales_numbers=True,
    ),
    Family("pairs, l1", PolyLogisticRegression, _path(0.25, 2, 14), {"degree": 2, "penalty": "l1"}),
    Family("pairs, l2", PolyLogisticRegression, _path(0.04, 4, 9), {"degree": 2, "penalty": "l2"}),
)
_REGRESSIONS: tuple[Family, ...] = (
    Family(
        "linear",
        PolyRegressor,
        _path(0.001, 10, 7),
        {"degree": 1, "loss": "squared_error", "feature_map": "plain"},
        scales_numbers=True,
    ),
    Family("additive", PolyRegressor, _path(0.01, 3, 11), {"degree": 1, "loss": "squared_error"}),
    Family(
        "polynomial",
        PolyRegressor,
        _path(0.001, 10, 7),
        {"degree": 2, "loss": "squared_error"},
        scales_numbers=True,
    ),
    Family("pairs, l2", PolyRegressor, _path(0.01, 3, 11), {"degree": 2, "loss": "squared_error"}),
)


def list_families(task: Task) -> tuple[Family, ...]:
    """Return the families to compare, the plain linear model first."""
    return _REGRESSIONS if task == "numbers" else _CLASSIFIERS
