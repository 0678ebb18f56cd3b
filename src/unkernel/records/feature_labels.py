"""Labels of features for people."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

_LARGEST_EXACT_FLOAT = 2.0**53  # up to this size, a float holds every whole number exactly
_MONTHS = [
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
]
_WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_PART_VALUES = {"month": (1, _MONTHS), "weekday": (0, _WEEKDAYS), "hour": (0, [str(k) for k in range(24)])}


def interval_labels(name: str, edges: NDArray[np.float64], *, whole: bool = False) -> list[str]:
    """Return a label for each interval between ascending edges.

    Parameters
    ----------
    name : str
    edges : ndarray of float64
    whole : bool, default=False
        Whether the numbers are whole. If so, labels name the first and the last number of each interval.
    """
    if not len(edges):
        return [f"{name} is a number"]
    if whole and np.abs(edges).max() < _LARGEST_EXACT_FLOAT:
        return _label_whole_intervals(name, [math.ceil(edge) for edge in edges.tolist()])
    shown = [f"{edge:.6g}" for edge in edges]
    inner = [f"{name} in [{low}, {high})" for low, high in pairwise(shown)]
    return [f"{name} < {shown[0]}", *inner, f"{name} >= {shown[-1]}"]


def value_labels(name: str, part: str) -> tuple[NDArray[np.float64], list[str]]:
    """Return the edges between the values of a part of dates with few values, and a label for each value."""
    first, words = _PART_VALUES[part]
    return first + np.arange(1.0, len(words)), [f"{name} = {word}" for word in words]


def _label_whole_intervals(name: str, firsts: list[int]) -> list[str]:
    """Return a label for each interval of whole numbers: `firsts` are the first numbers of all
    intervals except the lowest.
    """
    inner = [_label_interval(name, first, after - 1) for first, after in pairwise(firsts)]
    return [f"{name} <= {firsts[0] - 1}", *inner, f"{name} >= {firsts[-1]}"]


def _label_interval(name: str, first: int, last: int) -> str:
    if first >= last:
        return f"{name} = {first}"
    return f"{name} {first} to {last}" if first < 0 else f"{name} {first}–{last}"
