"""The tasks of ranking problems: losses of pairs within a part, and counts for pairs across parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import RowsOnGrid, count_pairs, ordinal_oracle
from unkernel.cutplane.rankings import PairWeight, encode_ranking
from unkernel.distributed.cluster.packed_vectors import Answer, PackedVector, Vector, pack_vector
from unkernel.distributed.cluster.row_parts import Part
from unkernel.distributed.cutplane.round_tasks import Round, find_state
from unkernel.distributed.cutplane.score_grids import Grid

Point = tuple[float, Grid]  # a step on the line, and the grid on which rows are counted at this step


@dataclass(frozen=True, eq=False)
class RankedRows:
    """An ungrouped ranking of all rows, with few distinct ranks.

    Each part counts its own rows on grids of scores.

    Attributes
    ----------
    name : str
        Unique name of the problem.
    labels : ndarray
        All labels in ascending order.
    ranks : ndarray of int32
        The rank of each label.
    pair_weights : ndarray of shape (ranks, ranks)
        Entry (a, b) is the weight of a pair of rows of ranks a and b < a, times the scale of the risk; it is
        0 if b >= a.
    accuracy : float
        Largest overestimate of the risk, as a share of the objective.
    """

    name: str
    labels: NDArray[Any]
    ranks: NDArray[np.int32]
    pair_weights: NDArray[np.float64]
    accuracy: float

    @property
    def rank_count(self) -> int:
        """Number of ranks."""
        return len(self.pair_weights)

    def losses_of(self, part: Part) -> RowsOnGrid:
        """Return the rows of a part in the form in which the core counts them."""
        ranks = self.ranks[np.searchsorted(self.labels, part.labels)]
        weights = np.empty(0) if part.weights is None else part.weights
        return RowsOnGrid(ranks, rank_count=self.rank_count, weights=weights)


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """Rows in groups. Each group is in a single part, which finds its pairs.

    Attributes
    ----------
    name : str
        Unique name of the problem.
    pair_weight : dict, str or None
        The parameter of the estimator.
    scale : float
        Factor of the sum over pairs.
    accuracy : float
        Largest relative overestimate of the risk.
    """

    name: str
    pair_weight: PairWeight | None
    scale: float
    accuracy: float

    def losses_of(self, part: Part) -> PairLosses:
        ranking = encode_ranking(part.labels, part.groups, part.weights, self.pair_weight)
        return PairLosses(ranking, self.scale, self.accuracy)


class PairLosses:
    """The losses of pairs within a part, with the methods of an oracle."""

    def __init__(self, ranking: dict[str, Any], scale: float, accuracy: float) -> None:
        total, pairs = sum_weights(ranking)
        self._oracle = ordinal_oracle(**ranking, accuracy=accuracy) if pairs > 0 else None
        # The oracle multiplies by total / pairs of this part; the factor replaces this by `scale`.
        self._factor = scale * pairs / total if pairs > 0 else 0.0

    def along(self, here: Vector, there: Vector, step: float, threads: int) -> tuple[float, float]:
        """Return the value and the slope of the losses at a step on the line."""
        if self._oracle is None:
            return 0.0, 0.0
        value, slope = self._oracle.along(here, there, step, threads)
        return self._factor * value, self._factor * slope

    def cut(self, here: Vector, there: Vector, step: float, threads: int) -> tuple[float, Vector]:
        """Return the offset and the coefficients of the cut at a step on the line."""
        if self._oracle is None:
            return 0.0, np.zeros(len(here))
        offset, coefficients = self._oracle.cut(here, there, step, threads)
        return self._factor * offset, self._factor * coefficients


def sum_weights(ranking: dict[str, Any]) -> tuple[float, float]:
    """Return the total weight of the rows, and the total weight of their pairs."""
    rows = len(ranking["ranks"])
    total = float(ranking["weights"].sum()) if len(ranking["weights"]) else float(rows)
    return total, float(count_pairs(**ranking, scores=np.zeros(rows))[0])


def sum_part_weights(part: Part, pair_weight: PairWeight | None) -> Answer:
    """Return the total weight of the part's rows, and the total weight of the pairs in its groups."""
    ranking = encode_ranking(part.labels, part.groups, part.weights, pair_weight)
    return Answer(pack_vector(np.array(sum_weights(ranking))))


def sum_rows(part: Part) -> Answer:
    """Return the weighted sum of the rows, followed by the sum of the weights."""
    weights = np.ones(len(part.labels)) if part.weights is None else part.weights
    return Answer(pack_vector(np.append(part.combine(weights), weights.sum())))


def count_rows(
    part: Part, now: Round, points: list[Point], with_changes: bool, there: PackedVector | None = None
) -> Answer:
    """Count the rows of a part on the grids of several points. New weights `there` begin a round.

    For each point, the response has the number of rows outside the grid, the weights of the rows by rank and
    edge and, if `with_changes`, the sums of weight times change of score.
    """
    with part.lock:
        state = find_state(part, now, there)
        if state is None:
            return Answer(None, (part.number,))
        counts: list[Vector] = []
        for step, grid in points:
            outside, weights, changes = state.losses.count(
                state.here, state.there, step=step, grid=grid, threads=part.threads
            )
            counts += [np.array([float(outside)]), weights, *([changes] if with_changes else [])]
        return Answer(pack_vector(np.concatenate(counts)))


def compute_grid_gradient(part: Part, now: Round, point: Point, coefficients: PackedVector) -> Answer:
    """Return the gradient of the cut with these coefficients on the grid."""
    with part.lock:
        state = find_state(part, now)
        if state is None:
            return Answer(None, (part.number,))
        step, grid = point
        row_coefficients = state.losses.interpolate(
            state.here,
            state.there,
            step=step,
            grid=grid,
            table=coefficients.unpack(),
            threads=part.threads,
        )
        return Answer(pack_vector(part.combine(np.asarray(row_coefficients))))
