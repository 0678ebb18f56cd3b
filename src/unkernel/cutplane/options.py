"""Options of the solvers in the core."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LoopOptions:
    """Options of the one-slack loop, for one of several problems."""

    C: float
    tolerance: float
    max_rounds: int
    threads: int
    problem: int = 0
    problems: int = 1


@dataclass(frozen=True)
class MapOptions:
    """Options for storing mapped rows.

    `vectors_per_row` is the number of vectors with one entry per row that the solver keeps beside them.
    """

    storage: str
    memory: float
    threads: int
    vectors_per_row: int


@dataclass(frozen=True)
class DualOptions:
    """Options of dual coordinate descent, for one of several problems."""

    tolerance: float
    max_epochs: int
    seed: int
    threads: int
    problem: int = 0
    problems: int = 1
