"""Thresholds that turn the scores of a ranking into ordinal classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def find_thresholds(
    scores: NDArray[np.float64], ranks: NDArray[Any], weights: NDArray[np.float64], count: int
) -> NDArray[np.float64]:
    """Find, for each border between ranks, the score with the least weight on its wrong side.

    The absolute error in ranks is the sum of these weights over all borders. So each border can be chosen
    independently, and the best borders ascend.
    """
    order = np.argsort(scores, kind="stable")
    sorted_scores, sorted_ranks, sorted_weights = scores[order], ranks[order], weights[order]
    # A border may lie before all rows, after all rows, or between two rows of different score.
    places = np.flatnonzero(np.diff(sorted_scores) > 0) + 1
    places = np.concatenate([[0], places, [len(scores)]])
    borders = _compute_midpoints(sorted_scores, places)
    thresholds = np.empty(count - 1)
    first = 0
    for rank in range(count - 1):
        above = sorted_ranks > rank
        wrong_below = np.concatenate([[0.0], np.cumsum(sorted_weights * above)])
        wrong_above = np.concatenate([np.cumsum((sorted_weights * ~above)[::-1])[::-1], [0.0]])
        errors = (wrong_below + wrong_above)[places]
        first += int(np.argmin(errors[first:]))
        thresholds[rank] = borders[first]
    return thresholds


def _compute_midpoints(scores: NDArray[np.float64], places: NDArray[np.intp]) -> NDArray[np.float64]:
    low, high = scores[places[1:-1] - 1], scores[places[1:-1]]
    middle = (low + high) / 2
    # A score on a border counts as below it. Two neighbouring floats have no number between them.
    middle = np.where(middle < high, middle, low)
    margin = 1.0 + abs(scores[0]) + abs(scores[-1])
    return np.concatenate([[scores[0] - margin], middle, [scores[-1] + margin]])


def are_whole(labels: NDArray[Any]) -> bool:
    """Whether all labels are whole numbers that int64 can hold exactly."""
    return bool(np.array_equal(labels, np.round(labels)) and np.abs(labels).max() < 2**53)
