"""Find a quantile of the scores of all parts by counting, with messages of a fixed size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unkernel.distributed.cluster.coordinator import Cluster
from unkernel.distributed.cluster.packed_vectors import Answer, PackedVector, Vector, pack_vector
from unkernel.distributed.cluster.row_parts import Part

_RANGE_CELLS = 1 << 12
_MAX_FETCHED_ROWS = 1 << 14
_MAX_DIVISIONS = 4  # divisions of the range; then 48 bits of each score are known, and a cell is tiny


def find_score_quantile(cluster: Cluster, weights: Vector, below: int) -> float:
    """Return the score halfway between the row number `below` and the next, in ascending order of scores.

    There must be rows on both sides. One pass over the rows finds the range of their scores, further passes
    count rows in smaller and smaller parts of the range, and the last pass fetches the distinct scores that
    remain.
    """
    message = cluster.broadcast(weights, "weights")

    def count_below(edges: Vector) -> Vector:
        return cluster.sum_answers(count_rows_below, lambda _: (message, edges), "counts")

    ranges = cluster.ask(find_score_range, lambda _: (message,))
    low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
    n_within, n_before = sum(cluster.rows), 0
    for _ in range(_MAX_DIVISIONS):
        if n_within <= _MAX_FETCHED_ROWS:
            break
        edges = np.linspace(low, high, _RANGE_CELLS + 1)
        counts = count_below(edges)
        first = int(np.searchsorted(counts, below - 1, side="right")) - 1
        last = min(int(np.searchsorted(counts, below, side="right")), _RANGE_CELLS)
        low, high = edges[first], edges[last]
        n_before, n_within = int(counts[first]), int(counts[last] - counts[first])
    return _find_middle(cluster.ask(count_scores_within, lambda _: (message, low, high)), below - n_before)


def _find_middle(counted_scores: list[tuple[Vector, NDArray[np.int64]]], below: int) -> float:
    """Return the middle between the scores with the indices `below - 1` and `below` in ascending order."""
    scores, counts = (np.concatenate(arrays) for arrays in zip(*counted_scores, strict=True))
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
    """Return, for each edge, the number of rows with lower scores."""
    scores = np.sort(part.scores(weights.unpack()))
    return Answer(pack_vector(np.searchsorted(scores, edges).astype(np.float64)))


def count_scores_within(
    part: Part, weights: PackedVector, low: float, high: float
) -> tuple[Vector, NDArray[np.int64]]:
    """Return the distinct scores in a range, and the number of rows with each score."""
    scores = part.scores(weights.unpack())
    return np.unique(scores[(scores >= low) & (scores <= high)], return_counts=True)
