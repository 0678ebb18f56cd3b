"""Options of training in the core."""

from __future__ import annotations

from dataclasses import dataclass


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
