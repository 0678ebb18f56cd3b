"""Options of training in the core."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class RowOptions:
    """Options of training under an l2 penalty, row by row."""

    loss: str
    C: float
    storage: str
    memory: float
    tolerance: float
    finish: str
    max_epochs: int
    seed: int
    threads: int


@dataclass(frozen=True)
class SparseOptions:
    """Options of training under a penalty with an l1 part, column by column."""

    loss: str
    l1: float
    l2: float
    C: float
    memory: float
    tolerance: float
    max_steps: int
    seed: int
    threads: int
    targets: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))  # by code, in regression
    epsilon: float = 0.0  # in regression, the largest error without a loss


@dataclass(frozen=True)
class OldModel:
    """The model that an update starts from, with its approximation of the loss of the old rows.

    Curvatures and slopes are second and first derivatives of this loss. Arrays without a comment have one row
    per key.
    """

    keys: NDArray[np.uint64]
    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]  # by score
    intercept_curvatures: NDArray[np.float64]  # by score
    feature_curvatures: NDArray[np.float64]  # one row per feature
    conjunction_curvatures: NDArray[np.float64]
    feature_slopes: NDArray[np.float64]  # one row per feature
    kept: float  # factor of the loss of the old rows
