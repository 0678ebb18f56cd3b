"""Find thresholds that divide the scores of a ranking into ordinal classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def find_thresholds(
    scores: NDArray[np.float64], ranks: NDArray[Any], weights: NDArray[np.float64], count: int
) -> NDArray[np.float64]:
    """Find, for each pair of adjacent ranks, the threshold with the least weight of rows on the wrong side.

    The absolute error in ranks is the sum of these weights over all thresholds. Each threshold can therefore
    be chosen independently, and the best thresholds are in ascending order.
    """
    order = np.argsort(scores, kind="stable")
    sorted_scores, sorted_ranks, sorted_weights = scores[order], ranks[order], weights[order]
    # Possible thresholds: below all scores, above all scores, and between any two adjacent different scores.
    positions = np.flatnonzero(np.diff(sorted_scores) > 0) + 1
    positions = np.concatenate([[0], positions, [len(scores)]])
    borders = _compute_midpoints(sorted_scores, positions)
    thresholds = np.empty(count - 1)
    first = 0
    for rank in range(count - 1):
        is_above = sorted_ranks > rank
        wrong_below = np.concatenate([[0.0], np.cumsum(sorted_weights * is_above)])
        wrong_above = np.concatenate([np.cumsum((sorted_weights * ~is_above)[::-1])[::-1], [0.0]])
        errors = (wrong_below + wrong_above)[positions]
        first += int(np.argmin(errors[first:]))
        thresholds[rank] = borders[first]
    return thresholds


def _compute_midpoints(scores: NDArray[np.float64], positions: NDArray[np.intp]) -> NDArray[np.float64]:
    low, high = scores[positions[1:-1] - 1], scores[positions[1:-1]]
    middle = (low + high) / 2
    # A score equal to a threshold counts as below it. Between two adjacent floats, take the lower one.
    middle = np.where(middle < high, middle, low)
    margin = 1.0 + abs(scores[0]) + abs(scores[-1])
    return np.concatenate([[scores[0] - margin], middle, [scores[-1] + margin]])


def are_whole(labels: NDArray[Any]) -> bool:
    """Return whether all labels are whole numbers that int64 represents exactly."""
    return bool(np.array_equal(labels, np.round(labels)) and np.abs(labels).max() < 2**53)
