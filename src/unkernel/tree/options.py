"""Options of training in the core."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ExactOptions:
    """Options of exact training."""

    imbalance: float
    tolerance: float
    max_rounds: int
    fit_intercept: bool
    memory: int  # bytes for kernel values
    threads: int


@dataclass(frozen=True)
class SampledOptions:
    """Options of training one of several problems with sampled cuts."""

    imbalance: float
    C: float
    epsilon: float
    max_rounds: int
    sample_size: int
    fit_intercept: bool
    seed: int
    method: str  # how cuts are computed: "forest" or "kernels"
    threads: int
    problem: int = 0
    problems: int = 1
