"""Targets of the one-versus-rest problems, and labels of files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class OneVsRestTargets:
    """The targets of the rows in one of several one-versus-rest problems.

    Attributes
    ----------
    codes : ndarray of int32
        The class of each row.
    costs : ndarray, or None
        The weight of each row; None means that all weights are 1.
    place : (int, int)
        Number of the problem, and the number of problems.
    """

    codes: NDArray[np.int32]
    costs: NDArray[np.float64] | None
    place: tuple[int, int]

    def positive(self) -> NDArray[np.bool_]:
        """Return, for each row, whether it belongs to the positive class."""
        problem, problems = self.place
        return np.asarray(self.codes == (1 if problems == 1 else problem))

    def signed_costs(self) -> NDArray[np.float64]:
        """Return the weight of each row, with a negative sign for rows of other classes."""
        return np.where(self.positive(), 1.0, -1.0) * (1.0 if self.costs is None else self.costs)


def to_whole_labels(labels: NDArray[np.float64]) -> NDArray[Any]:
    """Convert the labels of a file to integers if all of them are whole numbers."""
    integers = labels.astype(np.int64)
    return integers if np.array_equal(integers, labels) else labels
