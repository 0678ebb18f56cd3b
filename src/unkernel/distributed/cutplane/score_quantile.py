"""Where the scores of all parts are divided in two, from counts: nothing that is sent grows with the rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unkernel.distributed.cluster.coordinator import Cluster, Spread
from unkernel.distributed.cluster.packed_vectors import Answer, PackedVector, Vector, packed
from unkernel.distributed.cluster.row_tasks import Part

_CELLS = 1 << 12  # that a range of scores is divided into
_FEW_SCORES = 1 << 14  # that are looked at one by one
_MOST_DIVISIONS = 4  # 48 bits of a score, unless many rows are equal and stay together anyway


def score_above(cluster: Cluster, weights: Vector, below: int) -> float:
    """A score that so many rows are below: the middle between the nearest two rows.

    There must be a row on either side. A pass over the rows finds the range of their scores, some more count
    rows in ever smaller parts of it, and the last one fetches the few different scores that are left.
    """
    message = cluster.spread(weights, "weights")
    ranges = cluster.each(range_of_scores, lambda _: (message,))
    low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
    within, before = sum(cluster.rows), 0
    for _ in range(_MOST_DIVISIONS):
        if within <= _FEW_SCORES:
            break
        edges = np.linspace(low, high, _CELLS + 1)
        counts = _rows_below(cluster, message, edges)
        first = int(np.searchsorted(counts, below - 1, side="right")) - 1
        last = min(int(np.searchsorted(counts, below, side="right")), _CELLS)
        low, high = edges[first], edges[last]
        before, within = int(counts[first]), int(counts[last] - counts[first])
    return _middle(cluster.each(scores_within, lambda _: (message, low, high)), below - before)


def _rows_below(cluster: Cluster, weights: Spread, edges: Vector) -> Vector:
    answer = cluster.sums(rows_below, lambda _: (weights, edges), "counts")
    assert answer.vector is not None
    return answer.vector.unpacked()


def _middle(found: list[tuple[Vector, NDArray[np.int64]]], below: int) -> float:
    """Between the rows that are `below - 1` and `below` from the first of these."""
    scores, counts = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    order = np.argsort(scores)
    ends = np.cumsum(counts[order])
    lower, upper = scores[order][np.searchsorted(ends, [below - 1, below], side="right")]
    return float(lower + upper) / 2


# --- Tasks -----------------------------------------------------------------------------------------------


def range_of_scores(part: Part, weights: PackedVector) -> tuple[float, float]:
    """The lowest and the highest one."""
    scores = part.scores(weights.unpacked())
    return float(scores.min(initial=np.inf)), float(scores.max(initial=-np.inf))


def rows_below(part: Part, weights: PackedVector, edges: Vector) -> Answer:
    """How many rows have lower scores than each of the edges."""
    scores = np.sort(part.scores(weights.unpacked()))
    return Answer(packed(np.searchsorted(scores, edges).astype(np.float64)))


def scores_within(
    part: Part, weights: PackedVector, low: float, high: float
) -> tuple[Vector, NDArray[np.int64]]:
    """The different scores between these, and how many rows have them."""
    scores = part.scores(weights.unpacked())
    return np.unique(scores[(scores >= low) & (scores <= high)], return_counts=True)
