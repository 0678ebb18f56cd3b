"""The history of training: the objective and its bound, pass by pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from unkernel.data.frames import frame_of

_MAX_PASSES = 100  # largest number of passes that a model stores
_COLUMNS = ("pass", "objective", "bound")


@dataclass(frozen=True, eq=False)
class History:
    """The objective during training and its lower bound, pass by pass.

    Objectives and bounds of several problems, such as one per class, are summed. The same data, parameters
    and seed give the same history. Before the last pass, some solvers only estimate the objective. The
    sampled solver of trees reports the values of the approximate problem defined by its current cuts.

    Attributes
    ----------
    passes : ndarray of int of shape (n_passes,)
        The passes, Newton steps or rounds after which the other values were recorded; at most 100.
    objective : ndarray of float of shape (n_passes,)
        The objective of the current weights.
    bound : ndarray of float of shape (n_passes,)
        Lower bound of the optimal objective.
    """

    passes: NDArray[np.int64]
    objective: NDArray[np.float64]
    bound: NDArray[np.float64]

    @property
    def gap(self) -> NDArray[np.float64]:
        """The relative gap to the optimum, (objective - bound) / objective."""
        gap = np.maximum(self.objective - self.bound, 0.0)
        return np.divide(gap, self.objective, out=np.zeros_like(gap), where=self.objective > 0)

    def to_frame(self) -> Any:
        """Return the history as a data frame, one row per pass."""
        columns = (self.passes, self.objective, self.bound, self.gap)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return frame_of([dict(zip((*_COLUMNS, "gap"), row, strict=True)) for row in rows])

    @classmethod
    def sum_problems(cls, problems: Sequence[NDArray[np.float64]]) -> Self:
        """Return the sum of the histories of several problems.

        Parameters
        ----------
        problems : sequence of ndarray of shape (n_passes, 3)
            The passes, objectives and bounds of each problem. After the last pass of a problem, its last
            values are used.
        """
        first = max(problem[0, 0] for problem in problems)  # from this pass on, all problems have values
        passes = np.unique(np.concatenate([problem[:, 0] for problem in problems]))
        passes = _thin(passes[passes >= first])
        sums = np.zeros((len(passes), 2))
        for problem in problems:
            sums += problem[np.searchsorted(problem[:, 0], passes, side="right") - 1, 1:]
        return cls(passes.astype(np.int64), sums[:, 0], sums[:, 1])

    # --- In files -------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, list[float]]:
        """Return the history as a JSON object for a model's origin."""
        columns = (self.passes, self.objective, self.bound)
        return {name: column.tolist() for name, column in zip(_COLUMNS, columns, strict=True)}

    @classmethod
    def from_json(cls, stored: Any) -> Self | None:
        """Return the history in a JSON object; None if this is not a history."""
        columns: list[Any] = [stored.get(name) for name in _COLUMNS] if isinstance(stored, dict) else []
        if not columns or not all(_are_numbers(column) for column in columns):
            return None
        if len({len(column) for column in columns}) > 1 or not columns[0]:
            return None
        passes, objective, bound = (np.array(column, dtype=np.float64) for column in columns)
        return cls(passes.astype(np.int64), objective, bound)


def _are_numbers(column: Any) -> bool:
    return isinstance(column, list) and all(
        type(value) in (int, float) and abs(value) < 2.0**63 for value in column
    )


def _thin(passes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return at most ``_MAX_PASSES`` passes, denser at the beginning, including the first and the last."""
    if len(passes) <= _MAX_PASSES:
        return passes
    indices = np.geomspace(1, len(passes), _MAX_PASSES).round().astype(np.int64) - 1
    return passes[np.unique(indices)]
