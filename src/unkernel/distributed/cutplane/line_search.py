"""Tabulate the losses on a line between two weight vectors: a line search then needs only one request.

Let a and b be the margin deficits of a row (1 - y s for the score s) at t = 0 and t = 1, the two ends of the
line. At t, the deficit is a + t (b - a), and the row has a loss if this is positive. The sum of the losses is
therefore a parabola in t between two neighbouring points at which the loss of any row begins or ends. The
table has the coefficients of these parabolas at t = 0, 1/1024, .., 1. The sum of the tables of all parts is
the table of all rows. Values and slopes at these t are exact. Tabulating takes O(rows + 1024) time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unkernel.distributed.cluster.packed_vectors import Vector

CELLS = 1024
# The line search divides [0, 1] into 32 intervals, and then divides one of them into 32. All these steps are
# in the table.
STEPS_AT_ONCE = 31


@dataclass(frozen=True, eq=False)
class MarginDeficits:
    """The margin deficits of rows at both ends of a line, and the costs of the rows."""

    here: Vector
    there: Vector
    costs: Vector

    @staticmethod
    def between(here: Vector, there: Vector, signed_costs: Vector) -> MarginDeficits:
        """Return the deficits 1 - y s for the scores s at both ends; the label y is the sign of the cost."""
        signs = np.sign(signed_costs)
        return MarginDeficits(1.0 - signs * here, 1.0 - signs * there, np.abs(signed_costs))

    def select(self, chosen: np.ndarray) -> MarginDeficits:
        """Return the deficits and costs of the chosen rows."""
        return MarginDeficits(self.here[chosen], self.there[chosen], self.costs[chosen])

    def parabolas(self, squared: bool) -> list[Vector]:
        """Return the coefficients of 1, t and, for squared losses, t^2: vectors with one entry per row."""
        change = self.there - self.here
        if not squared:
            return [self.costs * self.here, self.costs * change]
        return [self.costs * self.here**2, 2.0 * self.costs * self.here * change, self.costs * change**2]


def tabulate_line(deficits: MarginDeficits, squared: bool) -> Vector:
    """Return the coefficients of the parabolas: an array of shape (2 or 3, 1025), flattened in C order."""
    at_start, at_end = deficits.here > 0.0, deficits.there > 0.0
    falling, rising = deficits.select(at_start & ~at_end), deficits.select(~at_start & at_end)
    # The loss of a falling row ends on the line: `ends` is the number of grid points before its end. The loss
    # of a rising row begins on the line: `begins` is the index of the first grid point after its begin.
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
    """Return the t in [0, 1] at which each deficit is 0."""
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
    """Return the value and the slope at each step; None if a step is not in the table."""
    positions = steps * CELLS
    if not ((positions == np.round(positions)) & (positions >= 0) & (positions <= CELLS)).all():
        return None
    coefficients = table.reshape(-1, CELLS + 1)[:, positions.astype(np.intp)]
    square = coefficients[2] if len(coefficients) == 3 else 0.0
    values = coefficients[0] + steps * (coefficients[1] + steps * square)
    slopes = coefficients[1] + 2.0 * steps * square
    return list(zip(values.tolist(), slopes.tolist(), strict=True))
