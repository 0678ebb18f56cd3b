"""Choose layouts of conjunction tables to try: rare features, dense tables, fused and grouped features."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator

import numpy as np

from unkernel.engines.search.candidates import Bench, Candidate, Trial
from unkernel.engines.tables import builders
from unkernel.engines.tables.builders import Head, Machine
from unkernel.engines.tables.compiled_tables import Tables

MakeTables = Callable[[int, Head], Tables]  # takes the border of rare features and the head

_DENSE_BYTES = (1e6, 10e6, 100e6)  # sizes of the dense table to try
_RARE_BORDERS = (8, 32, 128)  # borders to try: features in fewer support vectors are rare
_FUSED_COUNTS = (4, 6)
# For each degree, pairs (number of grouped features, bytes of the sums of groups), the most promising first.
_GROUPED = {2: ((256, 8e6), (512, 32e6)), 3: ((128, 60e6), (96, 16e6)), 4: ((48, 32e6), (64, 60e6))}
# If features are grouped, only this number of the most frequent features have weights; all others are rare.
GROUPED_RANKS = (384, 256)
# If conjunctions occur more often than this in support vectors, full expansions were never the fastest.
_MAX_OCCURRENCES = 2e7
_PATIENCE_SECONDS = 2.0  # CPU time after which only the most promising layouts are tried


class LayoutSearch:
    """Tries layouts of conjunction tables, each at most once, and stores their times."""

    def __init__(self, bench: Bench, make: MakeTables) -> None:
        self._bench = bench
        self._make = make
        self._seconds: dict[tuple[int, Head], float] = {}
        # For each border, the size of the smallest dense table that contains all conjunctions.
        self._all_dense_bytes: dict[int, float] = {}
        self._began = time.process_time()  # CPU time, which does not depend on other processes

    def is_late(self) -> bool:
        """Return whether only the most promising of the remaining layouts should be tried."""
        return self._bench.is_timed and time.process_time() - self._began > _PATIENCE_SECONDS

    def try_layouts(self, borders: list[int], fused: list[int]) -> Iterator[Trial]:
        """Try all borders of rare features; then try heads of several sizes for the two fastest borders.

        `fused` lists the numbers of fused features to try.
        """
        heads = [size for size in _DENSE_BYTES if size <= self._bench.memory] or [self._bench.memory]
        if self.is_late():  # large models are fastest with a large dense table
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
        """Try the first layout, and further layouts while time is left."""
        for number, head in enumerate(heads):
            if number == 0 or not self.is_late():
                yield from self.try_layout(rare, head)

    def try_layout(self, rare: int, head: Head) -> Iterator[Trial]:
        """Try a layout, unless the same or an equivalent layout has been tried."""
        is_plain = not head.fused and not head.grouped
        is_too_large = is_plain and head.nbytes > self._all_dense_bytes.get(rare, np.inf)
        if (rare, head) in self._seconds or is_too_large:
            return
        engine = "split" if rare else "expanded"
        candidate = Candidate(engine, rare, float(head.nbytes), head.fused, head.grouped)
        trial = self._bench.try_candidate(candidate, lambda: self._make(rare, head))
        self._seconds[rare, head] = np.inf if trial.tables is None else trial.candidate.microseconds
        if trial.tables is not None and trial.tables.numbers["head"] == trial.tables.numbers["rare"]:
            self._all_dense_bytes[rare] = min(head.nbytes, self._all_dense_bytes.get(rare, np.inf))
        yield trial

    def find_fastest_borders(self, count: int) -> list[int]:
        """Return the borders of the fastest trials, the fastest first."""
        order = sorted(self._seconds, key=lambda layout: (layout[1].grouped > 0, self._seconds[layout]))
        return list(dict.fromkeys(rare for rare, _ in order))[:count]

    def find_fastest_head(self, rare: int) -> Head:
        """Return the head of the fastest trial with the border `rare`."""
        timed_heads = [(seconds, head) for (border, head), seconds in self._seconds.items() if border == rare]
        return min(timed_heads, key=lambda pair: pair[0])[1]


def get_largest_head(memory: float) -> Head:
    """Return the largest head to try within the memory."""
    return Head(min(_DENSE_BYTES[-1], memory))


def list_grouped_heads(degree: int, dense: float, memory: float) -> list[Head]:
    """Return heads with groups and a dense table of `dense` bytes, the most promising first."""
    return [
        Head(min(dense, memory), grouped=features, sum_bytes=min(sum_bytes, memory / 2))
        for features, sum_bytes in _GROUPED[degree]
    ]


def list_heads_beside_groups(machine: Machine, border: int, memory: float) -> list[Head]:
    """Return heads with groups and a dense table of all features that are not rare."""
    degree = machine.model.kernel.degree
    common = int((machine.frequencies >= border).sum())
    return list_grouped_heads(degree, compute_dense_bytes(common, degree, machine.model.n_scores), memory)


def compute_dense_bytes(ranks: int, degree: int, scores: int) -> float:
    """Return the bytes of a dense table of `ranks` features, or of ``GROUPED_RANKS[0]`` if there are more."""
    return 8.0 * scores * builders.count_dense_entries(min(ranks, GROUPED_RANKS[0]), degree)


def is_large(machine: Machine) -> bool:
    """Return whether there are so many conjunctions that groups are worth building."""
    fusable = machine.sets and machine.model.kernel.degree > 1
    return fusable and machine.count_occurrences() > _MAX_OCCURRENCES


def list_fused_counts(fusable: bool, used: int) -> list[int]:
    """Return the numbers of fused features to try."""
    return [count for count in _FUSED_COUNTS if fusable and count < used]


def list_rare_borders(machine: Machine, rare: float) -> list[int]:
    """Return the borders to try: features in fewer support vectors are rare; with 0, no feature is rare."""
    if not machine.sets:
        return [0]
    lowest = int(machine.frequencies.min()) if len(machine.frequencies) else 0
    candidates = {*_RARE_BORDERS, machine.find_rare_border(rare)}
    borders = sorted(border for border in candidates if border > max(lowest, 1))
    return borders if borders and machine.count_occurrences() > _MAX_OCCURRENCES else [0, *borders]
