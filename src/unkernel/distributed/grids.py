"""Pairs of rows of which only counts on a grid of scores are known.

A row between two edges of the grid counts at both, in shares whose mean is its score. The risk of pairs that
stand on the edges is an upper bound of the risk, and the cut that belongs to it is a cut of the risk itself:
``cpp/unkernel/cutplane/score_grid.hpp`` says why. So both ends of the gap stay true, whatever the grid; a
finer one brings them closer together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.distributed.wire import Vector

Table = NDArray[np.float64]  # ranks x edges


@dataclass(frozen=True)
class Grid:
    """Edges around a centre: evenly up to the width, and each level further out twice as far apart."""

    centre: float
    width: float
    cells: int  # of a level, to either side
    levels: int

    @property
    def size(self) -> int:
        """The number of edges."""
        return 2 * self.cells * self.levels + 1

    def edges(self) -> Vector:
        """Where they are, from the centre."""
        level, within = np.divmod(np.arange(self.cells * self.levels + 1), self.cells)
        distances = self.width * (np.exp2(level) * (1.0 + within / self.cells) - 1.0)
        return np.concatenate([-distances[:0:-1], distances])

    def coarser(self) -> Grid:
        """Every other edge."""
        return replace(self, cells=self.cells // 2)


@dataclass(frozen=True, eq=False)
class GridRisk:
    """The risk of rows on the edges of a grid, and its cut: risk >= offset - coefficients'scores."""

    value: float
    offset: float
    coefficients: Table  # of a row of weight 1

    def slope(self, changes: Table) -> float:
        """How the risk changes when rows move; weight times change, by rank and edge."""
        return -float(np.vdot(self.coefficients, changes))


def risk_on_grid(grid: Grid, counts: Table, pair_weights: NDArray[Any]) -> GridRisk:
    """The pairs that are not a margin of 1 apart.

    Parameters
    ----------
    grid : Grid
    counts : ndarray of shape (ranks, edges)
    pair_weights : ndarray of shape (ranks, ranks)
        Of a row of the first rank above one of the second; 0 where it is not above.
    """
    edges = grid.edges()
    # Pairs are in order iff the lower row is before this edge: both sums below must see it alike.
    first_misordered = np.searchsorted(edges, edges - 1.0, side="right")
    last_misordered = np.searchsorted(first_misordered, np.arange(len(edges)), side="right")
    lower, higher = pair_weights @ counts, pair_weights.T @ counts
    not_below = _sums_to_right(lower)[:, first_misordered]
    not_above = _sums_to_left(higher)[:, last_misordered]
    coefficients = not_below - not_above
    offset = float(np.vdot(counts, not_below))
    return GridRisk(offset - float(np.sum(coefficients * counts @ edges)), offset, coefficients)


def coarser_counts(counts: Table) -> Table:
    """The counts on every other edge: rows of an edge between two of them are divided."""
    halves = 0.5 * counts[:, 1::2]
    result = counts[:, ::2].copy()
    result[:, :-1] += halves
    result[:, 1:] += halves
    return result


def _sums_to_right(table: Table) -> Table:
    """At k, the sum of columns k and beyond; 0 after the last."""
    sums = np.cumsum(table[:, ::-1], axis=1)[:, ::-1]
    return np.concatenate([sums, np.zeros((len(table), 1))], axis=1)


def _sums_to_left(table: Table) -> Table:
    """At k, the sum of the first k columns."""
    return np.concatenate([np.zeros((len(table), 1)), np.cumsum(table, axis=1)], axis=1)
