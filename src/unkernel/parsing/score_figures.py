"""Percentages and rates, for results of all kinds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def percentage(part: int, whole: int, *, of_none: float = float("nan")) -> float:
    """Return a share in percent; `of_none` if `whole` is 0.

    >>> percentage(3, 4)
    75.0
    """
    return 100.0 * int(part) / int(whole) if whole else of_none


def compute_percent_true(values: NDArray[np.bool_]) -> float:
    """Return the share of true values in percent; NaN if there are none."""
    return percentage(int(np.count_nonzero(values)), len(values))


def per_second(count: int, seconds: float) -> float:
    """Return a rate; NaN if the clock did not advance."""
    return count / seconds if seconds > 0 else float("nan")
