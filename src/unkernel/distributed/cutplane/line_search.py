"""Tabulate the losses on a line between two weight vectors, so that a line search needs one request.

A row whose margin has the deficit a at one end and b at the other has the deficit a + t (b - a) at t, and a
loss if the deficit is positive. So the sum of the losses is a parabola in t between any two points at which
the loss of a row begins or ends. The table has the coefficients of these parabolas at t = 0, 1/1024, .., 1.
The sum of the tables of all parts is the table of all rows, and values and slopes at these t are exact.
Tabulating takes O(rows + 1024).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unkernel.distributed.cluster.packed_vectors import Vector

CELLS = 1024
# The line search divides [0, 1] into 32 intervals, and one of these again; the table contains all these
# steps.
STEPS_AT_ONCE = 31


@dataclass(frozen=True, eq=False)
class MarginDeficits:
    """The margin deficits of rows at both ends of a line, and their costs."""

    here: Vector
    there: Vector
    costs: Vector

    @staticmethod
    def of(here: Vector, there: Vector, signed_costs: Vector) -> MarginDeficits:
        """Return 1 - y s for the scores s at both ends, where y is the sign of the cost."""
        signs = np.sign(signed_costs)
        return MarginDeficits(1.0 - signs * here, 1.0 - signs * there, np.abs(signed_costs))

    def select(self, chosen: np.ndarray) -> MarginDeficits:
        """Return the deficits of the chosen rows."""
        return MarginDeficits(self.here[chosen], self.there[chosen], self.costs[chosen])

    def parabolas(self, squared: bool) -> list[Vector]:
        """Return the coefficients of 1, t and, for squared losses, t^2, one per row."""
        change = self.there - self.here
        if not squared:
            return [self.costs * self.here, self.costs * change]
        return [self.costs * self.here**2, 2.0 * self.costs * self.here * change, self.costs * change**2]


def tabulate_line(deficits: MarginDeficits, squared: bool) -> Vector:
    """Return the coefficients of the parabolas, of shape (2 or 3, 1025), flat in C order."""
    at_start, at_end = deficits.here > 0.0, deficits.there > 0.0
    falling, rising = deficits.select(at_start & ~at_end), deficits.select(~at_start & at_end)
    # For falling rows, the number of grid points before the end of the loss; for rising rows, the number up
    # to its begin.
    ends = np.ceil(_find_crossings(falling) * CELLS).astype(np.intp)
    begins = np.floor(_find_crossings(rising) * CELLS).astype(np.intp) + 1
    always = deficits.select(at_start & at_end).parabolas(squared)
    table = [
        constant.sum() + _sum_from_right(fall, ends) + _sum_from_left(rise, begins)
        for constant, fall, rise in zip(
            always, falling.parabolas(squared), rising.parabolas(squared), strict=True
        )
    ]
    return np.concatenate(table)


def _find_crossings(deficits: MarginDeficits) -> Vector:
    return np.clip(deficits.here / (deficits.here - deficits.there), 0.0, 1.0)


def _sum_from_right(values: Vector, ends: np.ndarray) -> Vector:
    """Return, for grid point k, the sum of the values whose end is after k."""
    sums = np.bincount(ends, weights=values, minlength=CELLS + 2)
    return np.asarray(np.cumsum(sums[::-1])[::-1][1:])


def _sum_from_left(values: Vector, begins: np.ndarray) -> Vector:
    """Return, for grid point k, the sum of the values that begin at or before k."""
    sums = np.bincount(begins, weights=values, minlength=CELLS + 2)
    return np.asarray(np.cumsum(sums)[:-1])


def look_up_steps(table: Vector, steps: Vector) -> list[tuple[float, float]] | None:
    """Return value and slope at each step; None if a step is not in the table."""
    positions = steps * CELLS
    if not ((positions == np.round(positions)) & (positions >= 0) & (positions <= CELLS)).all():
        return None
    coefficients = table.reshape(-1, CELLS + 1)[:, positions.astype(np.intp)]
    square = coefficients[2] if len(coefficients) == 3 else 0.0
    values = coefficients[0] + steps * (coefficients[1] + steps * square)
    slopes = coefficients[1] + 2.0 * steps * square
    return list(zip(values.tolist(), slopes.tolist(), strict=True))
