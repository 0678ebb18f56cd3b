"""Finds a quantile of the scores of all parts by counting: no message grows with the rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unkernel.distributed.cluster.coordinator import Cluster
from unkernel.distributed.cluster.packed_vectors import Answer, PackedVector, Vector, pack_vector
from unkernel.distributed.cluster.row_parts import Part

_RANGE_CELLS = 1 << 12
_MAX_FETCHED_ROWS = 1 << 14
_MAX_DIVISIONS = 4  # of the range: 48 bits of a score, after which only equal scores stay together


def find_score_quantile(cluster: Cluster, weights: Vector, below: int) -> float:
    """Return a score with this number of rows below: the middle between the nearest two rows.

    There must be a row on either side. One pass over the rows finds the range of their scores, further passes
    count rows in smaller and smaller parts of it, and the last pass fetches the few remaining distinct
    scores.
    """
    message = cluster.broadcast(weights, "weights")

    def count_below(edges: Vector) -> Vector:
        return cluster.sum_answers(count_rows_below, lambda _: (message, edges), "counts")

    ranges = cluster.ask(find_score_range, lambda _: (message,))
    low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
    within, before = sum(cluster.rows), 0
    for _ in range(_MAX_DIVISIONS):
        if within <= _MAX_FETCHED_ROWS:
            break
        edges = np.linspace(low, high, _RANGE_CELLS + 1)
        counts = count_below(edges)
        first = int(np.searchsorted(counts, below - 1, side="right")) - 1
        last = min(int(np.searchsorted(counts, below, side="right")), _RANGE_CELLS)
        low, high = edges[first], edges[last]
        before, within = int(counts[first]), int(counts[last] - counts[first])
    return _find_middle(cluster.ask(count_scores_within, lambda _: (message, low, high)), below - before)


def _find_middle(found: list[tuple[Vector, NDArray[np.int64]]], below: int) -> float:
    """Return the middle between the rows number `below - 1` and `below`."""
    scores, counts = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    order = np.argsort(scores)
    ends = np.cumsum(counts[order])
    lower, upper = scores[order][np.searchsorted(ends, [below - 1, below], side="right")]
    return float(lower + upper) / 2


# --- Tasks -----------------------------------------------------------------------------------------------


def find_score_range(part: Part, weights: PackedVector) -> tuple[float, float]:
    """Return the lowest and the highest score."""
    scores = part.scores(weights.unpack())
    return float(scores.min(initial=np.inf)), float(scores.max(initial=-np.inf))


def count_rows_below(part: Part, weights: PackedVector, edges: Vector) -> Answer:
    """Return the number of rows with lower scores than each of the edges."""
    scores = np.sort(part.scores(weights.unpack()))
    return Answer(pack_vector(np.searchsorted(scores, edges).astype(np.float64)))


def count_scores_within(
    part: Part, weights: PackedVector, low: float, high: float
) -> tuple[Vector, NDArray[np.int64]]:
    """Return the distinct scores in a range, and the number of rows with each."""
    scores = part.scores(weights.unpack())
    return np.unique(scores[(scores >= low) & (scores <= high)], return_counts=True)
