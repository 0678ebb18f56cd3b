"""Layouts of conjunction tables: the sizes of their parts that are worth trying, and their order."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator

import numpy as np

from unkernel.engines.search.candidates import Bench, Candidate, Trial
from unkernel.engines.tables import builders
from unkernel.engines.tables.builders import Head, Machine
from unkernel.engines.tables.compiled_tables import Tables

MakeTables = Callable[[int, Head], Tables]  # takes the border of rare features, and the dense part

_DENSE_BYTES = (1e6, 10e6, 100e6)  # sizes of the dense table
_RARE_BORDERS = (8, 32, 128)  # a feature is rare if it occurs in fewer support vectors than this
_FUSED_COUNTS = (4, 6)
# By degree: the number of features to group and the bytes of their sums, the most promising first.
_GROUPED = {2: ((256, 8e6), (512, 32e6)), 3: ((128, 60e6), (96, 16e6)), 4: ((48, 32e6), (64, 60e6))}
# Beside groups, this number of the most frequent features have weights; support vectors serve the rest.
GROUPED_RANKS = (384, 256)
# With more conjunctions than this, counting repeats, only splits are tried: no expansion was faster.
_MOST_OCCURRENCES = 2e7
_PATIENCE_SECONDS = 2.0  # CPU time after which only the most promising layouts are tried


class LayoutSearch:
    """Tries layouts of conjunction tables, each at most once, and remembers how fast they were."""

    def __init__(self, bench: Bench, make: MakeTables) -> None:
        self._bench = bench
        self._make = make
        self._seconds: dict[tuple[int, Head], float] = {}
        self._all_dense: dict[
            int, float
        ] = {}  # by border: the smallest size at which all conjunctions are dense
        self._began = time.process_time()  # CPU time, so that other processes on the machine do not count

    def is_late(self) -> bool:
        """Whether so much time is spent that a further gain is not worth more."""
        return self._bench.is_timed and time.process_time() - self._began > _PATIENCE_SECONDS

    def try_layouts(self, borders: list[int], fused: list[int]) -> Iterator[Trial]:
        """Vary the border of rare features; then, for the two fastest borders, the dense part and the fused
        features.
        """
        heads = [size for size in _DENSE_BYTES if size <= self._bench.memory] or [self._bench.memory]
        if self.is_late():  # a large model is fastest with a large dense part
            heads = heads[-1:]
        for border in borders:
            yield from self.try_layout(border, Head(heads[len(heads) // 2]))
        best = self.find_fastest_borders(1 if self.is_late() else 2)
        for border, size in itertools.product(best, heads):
            yield from self.try_layout(border, Head(size))
        for border, count in itertools.product(best, fused):
            if not self.is_late():
                yield from self.try_layout(border, Head(self.find_fastest_head(border).nbytes, count))

    def try_several(self, rare: int, heads: list[Head]) -> Iterator[Trial]:
        """Try the first layout, and more layouts while there is time."""
        for tried, head in enumerate(heads):
            if not tried or not self.is_late():
                yield from self.try_layout(rare, head)

    def try_layout(self, rare: int, head: Head) -> Iterator[Trial]:
        """Make one trial, unless this layout or an equivalent one has been tried."""
        if (rare, head) in self._seconds or (
            not head.fused and not head.grouped and head.nbytes > self._all_dense.get(rare, np.inf)
        ):
            return
        engine = "split" if rare else "expanded"
        candidate = Candidate(engine, rare, float(head.nbytes), head.fused, head.grouped)
        trial = self._bench.try_candidate(candidate, lambda: self._make(rare, head))
        self._seconds[rare, head] = np.inf if trial.tables is None else trial.candidate.microseconds
        if trial.tables is not None and trial.tables.numbers["head"] == trial.tables.numbers["rare"]:
            self._all_dense[rare] = min(head.nbytes, self._all_dense.get(rare, np.inf))
        yield trial

    def find_fastest_borders(self, count: int) -> list[int]:
        """Return the borders of the fastest trials, the fastest first."""
        order = sorted(self._seconds, key=lambda tried: (tried[1].grouped > 0, self._seconds[tried]))
        return list(dict.fromkeys(rare for rare, _ in order))[:count]

    def find_fastest_head(self, rare: int) -> Head:
        """Return the dense part of the fastest trial with that border."""
        tried = [(seconds, head) for (border, head), seconds in self._seconds.items() if border == rare]
        return min(tried, key=lambda pair: pair[0])[1]


def largest_head(memory: float) -> Head:
    """Return the largest dense part that is tried within the memory."""
    return Head(min(_DENSE_BYTES[-1], memory))


def list_grouped_heads(degree: int, dense: float, memory: float) -> list[Head]:
    """List groups of several sizes beside a dense table of `dense` bytes, the most promising first."""
    return [
        Head(min(dense, memory), grouped=features, sum_bytes=min(sum_bytes, memory / 2))
        for features, sum_bytes in _GROUPED[degree]
    ]


def list_heads_beside_groups(machine: Machine, border: int, memory: float) -> list[Head]:
    """List groups beside a dense table of the features that are not rare."""
    degree = machine.model.kernel.degree
    common = int((machine.frequencies >= border).sum())
    return list_grouped_heads(degree, dense_bytes(common, degree, machine.model.n_scores), memory)


def dense_bytes(ranks: int, degree: int, scores: int) -> float:
    """Return the size of a dense table of `ranks` features, or of the most that are used beside groups."""
    return 8.0 * scores * builders.count_dense_entries(min(ranks, GROUPED_RANKS[0]), degree)


def is_large(machine: Machine) -> bool:
    """Whether there are so many conjunctions that groups are worth building."""
    fusable = machine.sets and machine.model.kernel.degree > 1
    return fusable and machine.occurrences() > _MOST_OCCURRENCES


def list_fused_counts(fusable: bool, used: int) -> list[int]:
    """List the numbers of fused features to try."""
    return [count for count in _FUSED_COUNTS if fusable and count < used]


def list_rare_borders(machine: Machine, rare: float) -> list[int]:
    """List the numbers of support vectors below which a feature is not expanded; 0 expands all."""
    if not machine.sets:
        return [0]
    borders = {below for below in (*_RARE_BORDERS, machine.rare_below(rare)) if below > 1}
    least = int(machine.frequencies.min()) if len(machine.frequencies) else 0
    tried = sorted(below for below in borders if below > least)
    return tried if tried and machine.occurrences() > _MOST_OCCURRENCES else [0, *tried]
