"""Compute percentages and rates for the results of evaluations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def compute_percentage(part: int, total: int, *, default: float = float("nan")) -> float:
    """Return `part` as a percentage of `total`; `default` if `total` is 0.

    >>> compute_percentage(3, 4)
    75.0
    """
    return 100.0 * int(part) / int(total) if total else default


def compute_percent_true(values: NDArray[np.bool_]) -> float:
    """Return the percentage of true values; NaN if there are no values."""
    return compute_percentage(int(np.count_nonzero(values)), len(values))


def compute_rate(count: int, seconds: float) -> float:
    """Return `count` per second; NaN if `seconds` is 0."""
    return count / seconds if seconds > 0 else float("nan")
