"""Labels of features, for people."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray


def interval_labels(name: str, edges: NDArray[np.float64]) -> list[str]:
    """A label for each interval between ascending edges."""
    if not len(edges):
        return [f"{name} is a number"]
    shown = [f"{edge:.6g}" for edge in edges]
    inner = [f"{name} in [{low}, {high})" for low, high in pairwise(shown)]
    return [f"{name} < {shown[0]}", *inner, f"{name} >= {shown[-1]}"]
