"""Measure contenders in turns, because the speed of a machine changes over time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Work = Callable[[], object]
Clock = Callable[[Work], float]


@dataclass
class Times:
    """The times of repeated runs of one contender, in seconds or in the unit of the figure."""

    values: list[float] = field(default_factory=list)

    @property
    def best(self) -> float:
        return min(self.values)

    @property
    def spread(self) -> float:
        """Return the relative difference between the median and the best time."""
        return statistics.median(self.values) / self.best - 1.0 if self.best > 0 else 0.0

    def scaled(self, factor: float) -> Times:
        return Times([factor * value for value in self.values])


class Timed(NamedTuple):
    """The result of some work, and its time in seconds."""

    result: Any
    cpu: float
    wall: float


def timed(work: Work) -> Timed:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return Timed(result, time.process_time() - cpu, time.perf_counter() - wall)


def cpu_seconds(work: Work) -> float:
    """Return the processor time of some work in this process and its threads."""
    return timed(work).cpu


def wall_seconds(work: Work) -> float:
    return timed(work).wall


def take_turns(contenders: Mapping[str, Work], rounds: int, clock: Clock = cpu_seconds) -> dict[str, Times]:
    """Run each contender once per round. Each round begins with another contender."""
    times = {name: Times() for name in contenders}
    order = list(contenders)
    for turn in range(rounds):
        for name in order[turn % len(order) :] + order[: turn % len(order)]:
            times[name].values.append(clock(contenders[name]))
    return times
