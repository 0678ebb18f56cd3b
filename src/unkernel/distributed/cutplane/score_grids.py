"""The risk of pairs of rows, from counts of rows on a grid of scores.

The weight of a row between two edges of the grid is divided between them. The mean of the edges, with these
weights, is the score of the row. The risk computed from the counts is an upper bound of the true risk, and
its cuts are also cuts of the true risk (``cpp/unkernel/cutplane/score_grid.hpp`` explains why). The gap is
therefore certified on any grid; finer grids allow smaller gaps.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.distributed.cluster.packed_vectors import Vector

Table = NDArray[np.float64]  # ranks x edges


@dataclass(frozen=True)
class Grid:
    """Edges around a centre, evenly spaced up to `width`. On each further level, the spacing doubles."""

    centre: float
    width: float
    cells: int  # number of cells per level, on each side of the centre
    levels: int

    @property
    def size(self) -> int:
        """Number of edges."""
        return 2 * self.cells * self.levels + 1

    def edges(self) -> Vector:
        """Return the distances of the edges from the centre."""
        return _compute_edges(self.width, self.cells, self.levels)

    def coarser(self) -> Grid:
        """Return the grid of every other edge."""
        return replace(self, cells=self.cells // 2)


@functools.lru_cache(maxsize=8)  # most grids of a run differ only in their centres
def _compute_edges(width: float, cells: int, levels: int) -> Vector:
    level, cell = np.divmod(np.arange(cells * levels + 1), cells)
    distances = width * (np.exp2(level) * (1.0 + cell / cells) - 1.0)
    return np.concatenate([-distances[:0:-1], distances])


@dataclass(frozen=True, eq=False)
class GridRisk:
    """The risk of rows on the edges of a grid, and its cut: risk >= offset - (coefficients, scores)."""

    value: float
    offset: float
    coefficients: Table  # by rank and edge, for a row of weight 1

    def slope(self, changes: Table) -> float:
        """Return the slope of the risk; `changes` has the sums of weight times change of score."""
        return -compute_inner_product(self.coefficients, changes)


def compute_grid_risk(grid: Grid, counts: Table, pair_weights: NDArray[Any]) -> GridRisk:
    """Return the risk of all pairs that are less than a margin of 1 apart.

    Parameters
    ----------
    grid : Grid
    counts : ndarray of shape (ranks, edges)
    pair_weights : ndarray of shape (ranks, ranks)
        Entry (a, b) is the weight of a pair of rows of ranks a and b < a; it is 0 if b >= a.
    """
    used = _find_used_columns(counts)
    edges, used_counts = grid.edges()[used], counts[:, used]
    # A pair has no loss if the lower-ranked row is before the edge `first_misordered` of the other row.
    first_misordered = np.searchsorted(edges, edges - 1.0, side="right")
    last_misordered = np.searchsorted(first_misordered, np.arange(len(edges)), side="right")
    # For a row of each rank on each edge: the weight of its pairs that have a loss, with lower-ranked rows
    # (which are not far enough below it) and with higher-ranked rows.
    not_below = _sum_to_right(pair_weights @ used_counts)[:, first_misordered]
    not_above = _sum_to_left(pair_weights.T @ used_counts)[:, last_misordered]
    coefficients = np.zeros_like(counts)
    coefficients[:, used] = not_below - not_above
    offset = compute_inner_product(used_counts, not_below)
    correction = compute_inner_product((coefficients[:, used] * used_counts).sum(axis=0), edges)
    return GridRisk(offset - correction, offset, coefficients)


def compute_inner_product(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Return the inner product, without BLAS: its idle threads would occupy processors that workers need."""
    return float(np.einsum("i,i->", first.ravel(), second.ravel()))


def _find_used_columns(counts: Table) -> slice:
    """Return the range from the first to the last column with rows, often a small part of the grid."""
    used = np.flatnonzero(counts.any(axis=0))
    return slice(int(used[0]), int(used[-1]) + 1) if len(used) else slice(0, 0)


def coarsen_counts(counts: Table) -> Table:
    """Return the counts on every other edge; the count of a removed edge is split between its neighbours."""
    halves = 0.5 * counts[:, 1::2]
    result = counts[:, ::2].copy()
    result[:, :-1] += halves
    result[:, 1:] += halves
    return result


def _sum_to_right(table: Table) -> Table:
    """Return a table whose column k is the sum of the columns from k on, with a last column of zeros."""
    sums = np.cumsum(table[:, ::-1], axis=1)[:, ::-1]
    return np.concatenate([sums, np.zeros((len(table), 1))], axis=1)


def _sum_to_left(table: Table) -> Table:
    """Return a table whose column k is the sum of the first k columns."""
    return np.concatenate([np.zeros((len(table), 1)), np.cumsum(table, axis=1)], axis=1)
