"""The losses of rows on a line between two weight vectors, tabled: one question answers a whole line search.

A row that lacks the margin a at one end and b at the other lacks a + t (b - a) at t, and has a loss where
that is positive. So the sum of the losses is a parabola between any two of the points where rows begin or
cease to have a loss. The table has its coefficients at t = 0, 1/1024, .., 1: the sums of them over parts are
the table of all rows, and values and slopes at these t are exact. O(rows + 1024).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unkernel.distributed.cluster.packed_vectors import Vector

CELLS = 1024
# The loop divides [0, 1] by this much, and the piece it chose once more: all that it asks is in the table.
STEPS_AT_ONCE = 31


@dataclass(frozen=True, eq=False)
class Lacks:
    """The margins that rows lack at both ends, and what they cost."""

    here: Vector
    there: Vector
    costs: Vector

    @staticmethod
    def of(here: Vector, there: Vector, signed_costs: Vector) -> Lacks:
        """1 - y s for the scores s at both ends, y being the sign of the cost."""
        signs = np.sign(signed_costs)
        return Lacks(1.0 - signs * here, 1.0 - signs * there, np.abs(signed_costs))

    def of_rows(self, chosen: np.ndarray) -> Lacks:
        """Some of the rows."""
        return Lacks(self.here[chosen], self.there[chosen], self.costs[chosen])

    def parabolas(self, squared: bool) -> list[Vector]:
        """Coefficients of 1, t and, if need be, t^2, one per row."""
        change = self.there - self.here
        if not squared:
            return [self.costs * self.here, self.costs * change]
        return [self.costs * self.here**2, 2.0 * self.costs * self.here * change, self.costs * change**2]


def line_table(lacks: Lacks, squared: bool) -> Vector:
    """Coefficients of the parabolas, of shape (2 or 3, 1025), flat."""
    at_start, at_end = lacks.here > 0.0, lacks.there > 0.0
    falling, rising = lacks.of_rows(at_start & ~at_end), lacks.of_rows(~at_start & at_end)
    # The number of grid points before a falling row's end, and up to a rising row's begin.
    ends = np.ceil(_crossings(falling) * CELLS).astype(np.intp)
    begins = np.floor(_crossings(rising) * CELLS).astype(np.intp) + 1
    always = lacks.of_rows(at_start & at_end).parabolas(squared)
    table = [
        constant.sum() + _sums_from_right(fall, ends) + _sums_from_left(rise, begins)
        for constant, fall, rise in zip(
            always, falling.parabolas(squared), rising.parabolas(squared), strict=True
        )
    ]
    return np.concatenate(table)


def _crossings(lacks: Lacks) -> Vector:
    return np.clip(lacks.here / (lacks.here - lacks.there), 0.0, 1.0)


def _sums_from_right(values: Vector, ends: np.ndarray) -> Vector:
    """At grid point k, the sum of the values whose end is beyond k."""
    sums = np.bincount(ends, weights=values, minlength=CELLS + 2)
    return np.asarray(np.cumsum(sums[::-1])[::-1][1:])


def _sums_from_left(values: Vector, begins: np.ndarray) -> Vector:
    """At grid point k, the sum of the values that begin at k or before."""
    sums = np.bincount(begins, weights=values, minlength=CELLS + 2)
    return np.asarray(np.cumsum(sums)[:-1])


def points_in_table(table: Vector, steps: Vector) -> list[tuple[float, float]] | None:
    """Value and slope at each step; None where a step is not in the table."""
    places = steps * CELLS
    if not ((places == np.round(places)) & (places >= 0) & (places <= CELLS)).all():
        return None
    coefficients = table.reshape(-1, CELLS + 1)[:, places.astype(np.intp)]
    square = coefficients[2] if len(coefficients) == 3 else 0.0
    values = coefficients[0] + steps * (coefficients[1] + steps * square)
    slopes = coefficients[1] + 2.0 * steps * square
    return list(zip(values.tolist(), slopes.tolist(), strict=True))
