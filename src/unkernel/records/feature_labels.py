"""Labels of features, such as "age 35–44"."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LARGEST_EXACT_FLOAT = 2.0**53  # floats represent every whole number up to this one
_MONTHS = [
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
]
_WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_VALUES_OF_PARTS = {
    "month": (1, _MONTHS),
    "weekday": (0, _WEEKDAYS),
    "hour": (0, [str(k) for k in range(24)]),
}


def make_interval_labels(name: str, edges: NDArray[np.float64], *, are_integers: bool = False) -> list[str]:
    """Return a label for each interval between ascending edges.

    Parameters
    ----------
    name : str
    edges : ndarray of float64
    are_integers : bool, default=False
        Whether all numbers are whole. If so, labels name the first and the last number of each interval.
    """
    if not len(edges):
        return [f"{name} is a number"]
    if are_integers and np.abs(edges).max() < _LARGEST_EXACT_FLOAT:
        return _label_whole_intervals(name, [math.ceil(edge) for edge in edges.tolist()])
    edge_texts = [f"{edge:.6g}" for edge in edges]
    inner = [f"{name} in [{low}, {high})" for low, high in pairwise(edge_texts)]
    return [f"{name} < {edge_texts[0]}", *inner, f"{name} >= {edge_texts[-1]}"]


def format_category(key: Any) -> str:
    """Return a category as text; whole numbers have no decimal point."""
    if isinstance(key, float) and key.is_integer():
        return str(int(key))
    return str(key)


def make_value_labels(name: str, part: str) -> tuple[NDArray[np.float64], list[str]]:
    """Return the edges between the values of a date part (month, weekday or hour), and a label per value."""
    first, value_names = _VALUES_OF_PARTS[part]
    return first + np.arange(1.0, len(value_names)), [f"{name} = {value}" for value in value_names]


def _label_whole_intervals(name: str, firsts: list[int]) -> list[str]:
    """Return a label for each interval of whole numbers.

    `firsts` has the first number of each interval except the lowest interval.
    """
    inner = [_label_interval(name, first, next_first - 1) for first, next_first in pairwise(firsts)]
    return [f"{name} <= {firsts[0] - 1}", *inner, f"{name} >= {firsts[-1]}"]


def _label_interval(name: str, first: int, last: int) -> str:
    if first >= last:
        return f"{name} = {first}"
    return f"{name} {first} to {last}" if first < 0 else f"{name} {first}–{last}"
