"""What workers do for rankings: pairs of rows in the same part, and counts for pairs in different parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import RowsOnGrid, count_pairs, ordinal_oracle
from unkernel.cutplane.rankings import PairWeight, encode_ranking
from unkernel.distributed.cluster.packed_vectors import Answer, PackedVector, Vector, packed
from unkernel.distributed.cluster.row_tasks import Part, Round, state_in
from unkernel.distributed.cutplane.score_grids import Grid

Point = tuple[float, Grid]  # a step on the line, and where rows are counted there


@dataclass(frozen=True, eq=False)
class RankedRows:
    """Rows of one group in all parts, with few ranks: parts count them on grids of scores.

    Attributes
    ----------
    name : str
        Tells it from others.
    labels : ndarray
        All of them, ascending.
    ranks : ndarray of int32
        The rank of each label.
    pair_weights : ndarray of shape (ranks, ranks)
        Of a row of the first rank above one of the second, the scale of the risk included; else 0.
    accuracy : float
        By how much of the objective the risk may be overestimated.
    """

    name: str
    labels: NDArray[Any]
    ranks: NDArray[np.int32]
    pair_weights: NDArray[np.float64]
    accuracy: float

    @property
    def rank_count(self) -> int:
        """How many ranks there are."""
        return len(self.pair_weights)

    def losses_of(self, part: Part) -> RowsOnGrid:
        """The rows, to be counted."""
        ranks = self.ranks[np.searchsorted(self.labels, part.labels)]
        weights = np.empty(0) if part.weights is None else part.weights
        return RowsOnGrid(ranks, rank_count=self.rank_count, weights=weights)


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """Rows in groups, each of which is whole in some part: parts find their pairs themselves.

    Attributes
    ----------
    name : str
        Tells it from others.
    pair_weight : dict, str or None
        As the estimator has it.
    scale : float
        Of the sum over pairs.
    accuracy : float
        By how much of itself the risk may be overestimated.
    """

    name: str
    pair_weight: PairWeight | None
    scale: float
    accuracy: float

    def losses_of(self, part: Part) -> PairLosses:
        """The part's pairs."""
        ranking = encode_ranking(part.labels, part.groups, part.weights, self.pair_weight)
        return PairLosses(ranking, self.scale, self.accuracy)


class PairLosses:
    """The losses of pairs within a part, asked for as an oracle's are."""

    def __init__(self, ranking: dict[str, Any], scale: float, accuracy: float) -> None:
        total, pairs = totals_of(ranking)
        self._oracle = ordinal_oracle(**ranking, accuracy=accuracy) if pairs > 0 else None
        # An oracle scales by its own total / pairs.
        self._factor = scale * pairs / total if pairs > 0 else 0.0

    def along(self, here: Vector, there: Vector, step: float, threads: int) -> tuple[float, float]:
        """Value and slope."""
        if self._oracle is None:
            return 0.0, 0.0
        value, slope = self._oracle.along(here, there, step, threads)
        return self._factor * value, self._factor * slope

    def cut(self, here: Vector, there: Vector, step: float, threads: int) -> tuple[float, Vector]:
        """Offset and coefficients."""
        if self._oracle is None:
            return 0.0, np.zeros(len(here))
        offset, coefficients = self._oracle.cut(here, there, step, threads)
        return self._factor * offset, self._factor * coefficients


def totals_of(ranking: dict[str, Any]) -> tuple[float, float]:
    """The weight of the rows, and of their pairs."""
    rows = len(ranking["ranks"])
    total = float(ranking["weights"].sum()) if len(ranking["weights"]) else float(rows)
    return total, float(count_pairs(**ranking, scores=np.zeros(rows))[0])


def pair_totals(part: Part, pair_weight: PairWeight | None) -> Answer:
    """The weight of the part's rows, and of the pairs in its groups."""
    ranking = encode_ranking(part.labels, part.groups, part.weights, pair_weight)
    return Answer(packed(np.array(totals_of(ranking))))


def mean_row(part: Part) -> Answer:
    """The weighted sum of the rows, and after it the sum of the weights."""
    weights = np.ones(len(part.labels)) if part.weights is None else part.weights
    return Answer(packed(np.append(part.transposed(weights), weights.sum())))


def count_rows(
    part: Part, now: Round, points: list[Point], with_changes: bool, there: PackedVector | None = None
) -> Answer:
    """For each point: how many rows are outside of the grid, their weights on it, and their changes.

    New weights begin a round.
    """
    with part.lock:
        state = state_in(part, now, there)
        if state is None:
            return Answer(None, (part.number,))
        found: list[Vector] = []
        for step, grid in points:
            outside, weights, changes = state.losses.count(
                state.here, state.there, step=step, grid=grid, threads=part.threads
            )
            found += [np.array([float(outside)]), weights, *([changes] if with_changes else [])]
        return Answer(packed(np.concatenate(found)))


def gradient_on_grid(part: Part, now: Round, point: Point, coefficients: PackedVector) -> Answer:
    """The gradient of the cut that has these coefficients on the grid."""
    with part.lock:
        state = state_in(part, now)
        if state is None:
            return Answer(None, (part.number,))
        step, grid = point
        of_rows = state.losses.interpolate(
            state.here,
            state.there,
            step=step,
            grid=grid,
            table=coefficients.unpacked(),
            threads=part.threads,
        )
        return Answer(packed(part.transposed(np.asarray(of_rows))))
