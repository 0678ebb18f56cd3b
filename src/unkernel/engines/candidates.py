"""Which engine is fastest: build some, measure them, compare."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from unkernel.engines import build
from unkernel.engines.build import Head, Machine
from unkernel.engines.prefix_trie import grow, stored_trie, without_trie
from unkernel.engines.tables import Tables
from unkernel.models import ConjunctionModel

Make = Callable[[int, Head], Tables]  # of a border and a dense part

_MEASURED_SECONDS = 0.02  # of scoring, per candidate and repetition
_REPETITIONS = 5
_MOST_SAMPLE_ROWS = 20_000
# More conjunctions than this, repeats counted, and only splits are tried: they were never slower then.
_MOST_OCCURRENCES = 2e7
_MANY_WEIGHTS = 1_000_000  # of trained models: groups are tried first
_HEADS = (1e6, 10e6, 100e6)
_RARE = (8, 32, 128)
_FUSED = (4, 6)
# Features to group by degree, and the bytes of their sums, the most promising first.
_GROUPED = {2: ((256, 8e6), (512, 32e6)), 3: ((128, 60e6), (96, 16e6)), 4: ((48, 32e6), (64, 60e6))}
# Ranks that have weights of their own beside groups; the others' support vectors are passed over.
_GROUPED_RANKS = (384, 256)
_TRIE_SIZES = (3_000_000, 1_000_000, 300_000, 100_000, 30_000, 10_000)
_PATIENCE_SECONDS = 2.0
_NEWER = ("grouped", "trie_nodes")  # fields that the first files did not have
_HOPELESS = 10  # conjunctions of a row for each support vector: passing over those is faster then


@dataclass(frozen=True)
class Candidate:
    """An engine that was tried.

    Attributes
    ----------
    engine : str
    rare : int
        Features of fewer support vectors than this were not expanded (``split``).
    head_bytes, fused
        The size of the dense table that was asked for, and the features that were fused into one.
    grouped : int
        Frequent features that were grouped: sums over the states of groups stand for their conjunctions.
    trie_nodes : int
        Nodes of the prefix trie.
    nbytes : int
        Bytes of the tables; -1 if they were not built.
    microseconds : float
        Per row of the sample, on one thread; -1 if not measured.
    exact : bool
    chosen : bool
    note : str
    """

    engine: str
    rare: int = 0
    head_bytes: float = 0.0
    fused: int = 0
    grouped: int = 0
    trie_nodes: int = 0
    nbytes: int = -1
    microseconds: float = -1.0
    exact: bool = True
    chosen: bool = False
    note: str = ""

    def untimed(self) -> Candidate:
        """The same without what a clock said."""
        return replace(self, microseconds=-1.0)

    def to_json(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Any) -> Candidate:
        """Check what a file says; a ``ValueError`` if it is not what :meth:`to_json` wrote."""
        types = {field.name: type(field.default) for field in fields(cls) if field.name != "engine"}
        if not isinstance(stored, dict) or {*stored, *_NEWER} != {*types, "engine"}:
            raise ValueError("the table of candidate engines is damaged")
        for name, value in stored.items():
            kind = types.get(name, str)
            if not isinstance(value, (int, float) if kind is float else kind):
                raise ValueError("the table of candidate engines is damaged")
        return cls(**stored)


@dataclass(frozen=True, eq=False)
class Trial:
    """A candidate with the tables that were built for it."""

    candidate: Candidate
    tables: Tables | None


@dataclass(frozen=True, eq=False)
class Bench:
    """Where candidates are measured: rows to score (or None), the memory they may take, and who watches.

    Without a clock they are only built.
    """

    sample: Any
    memory: float
    threads: int
    on_progress: Callable[[str], None]
    timed: bool = True

    def trial(self, candidate: Candidate, make: Callable[[], Tables]) -> Trial:
        """Build and measure, or say why not."""
        self.on_progress(words(candidate))
        try:
            tables = make()
        except MemoryError:
            return Trial(replace(candidate, note="does not fit into the memory it was given"), None)
        engine = tables.engine()
        built = replace(candidate, nbytes=int(engine.nbytes))
        if built.nbytes > self.memory:
            return Trial(replace(built, note="takes more than the memory it was given"), None)
        if self.timed:
            built = replace(built, microseconds=measure(engine, self.sample))
        return Trial(built, tables)


def words(candidate: Candidate) -> str:
    """A candidate in a few words."""
    parts = [candidate.engine]
    if candidate.rare:
        parts.append(f"rare < {candidate.rare}")
    if candidate.head_bytes:
        parts.append(f"dense {candidate.head_bytes / 1e6:g} MB")
    if candidate.fused:
        parts.append(f"{candidate.fused} fused")
    if candidate.grouped:
        parts.append(f"{candidate.grouped} grouped")
    if candidate.trie_nodes:
        parts.append(f"trie of {candidate.trie_nodes:,}")
    return ", ".join(parts)


def measure(engine: Any, rows: Any, seconds: float = _MEASURED_SECONDS) -> float:
    """Microseconds per row on one thread: the best of a few runs, on as many rows as there is time for."""
    if rows is None or rows.shape[0] == 0:
        return -1.0
    count = min(16, rows.shape[0])
    while True:
        spent = _seconds(engine, rows[:count])
        if spent > seconds / 4 or count == rows.shape[0]:
            break
        count = min(rows.shape[0], 4 * count)
    best = min(_seconds(engine, rows[:count]) for _ in range(_REPETITIONS if spent < 10 * seconds else 1))
    return float(1e6 * min(best, spent) / count)


def _seconds(engine: Any, rows: Any) -> float:
    begin = time.thread_time()
    engine.score(rows.indptr, rows.indices, rows.data, 1)
    return time.thread_time() - begin


def by_rule(machine: Machine, bench: Bench, rare: float) -> Iterator[Trial]:
    """Engines for a kernel model, the most promising first: whoever does not measure takes what fits."""
    hopeless = machine.conjunctions_of(bench.sample) > _HOPELESS * machine.model.n_support
    if machine.expandable and not hopeless:
        search = _Search(bench, _expanding(machine, bench))
        if is_large(machine):
            yield from _try_groups(machine, bench, search)
        for border in _rare_to_try(machine, rare):
            yield from search.attempt(border, Head(min(_HEADS[-1], bench.memory)))
    if machine.binary:
        yield bench.trial(Candidate("bitsliced"), lambda: build.bitsliced(machine))
    yield bench.trial(Candidate("inverted"), lambda: build.inverted(machine))


def try_all(machine: Machine, bench: Bench, rare: float) -> Iterator[Trial]:
    """Engines for a kernel model, in the order in which knowing one helps to choose the next."""
    yield bench.trial(Candidate("inverted"), lambda: build.inverted(machine))
    if machine.binary:
        yield bench.trial(Candidate("bitsliced"), lambda: build.bitsliced(machine))
    if not machine.expandable:
        return
    per_row = machine.conjunctions_of(bench.sample)
    if per_row > _HOPELESS * machine.model.n_support:
        note = (
            f"not tried: a row has {per_row:,.0f} conjunctions, the model {machine.model.n_support:,} vectors"
        )
        yield Trial(Candidate("expanded", note=note), None)
    else:
        yield from _try_expansions(machine, bench, rare)


def _expanding(machine: Machine, bench: Bench) -> Make:
    def make(border: int, head: Head) -> Tables:
        memory, threads = bench.memory, bench.threads
        return build.expanded(machine, head=head, rare_below=border, most_bytes=memory, threads=threads)

    return make


def _try_expansions(machine: Machine, bench: Bench, rare: float) -> Iterator[Trial]:
    search = _Search(bench, _expanding(machine, bench))
    fusable = machine.sets and machine.model.kernel.degree > 1
    if is_large(machine):
        yield from _try_groups(machine, bench, search)
        borders = _rare_to_try(machine, rare)
        # Of higher degrees each takes seconds to build, and groups were never slower.
        wait = machine.model.kernel.degree > 2 and search.is_late()
        yield from search.try_layouts(borders[-1:] if wait else borders, [])
        return
    yield from search.try_layouts(_rare_to_try(machine, rare), _fusable(fusable, len(machine.used)))
    if fusable and not search.is_late():
        border = search.fastest_borders(1)[0]
        dense = search.head_of(border).nbytes
        yield from search.attempt_several(
            border, grouped_heads(machine.model.kernel.degree, dense, bench.memory)
        )


def _try_groups(machine: Machine, bench: Bench, search: _Search) -> Iterator[Trial]:
    """Large models: all features that are not grouped or next to that are rare."""
    ordered = np.sort(machine.frequencies)[::-1]
    for ranks in _GROUPED_RANKS:
        if ranks < len(ordered) and not search.is_late():
            border = int(ordered[ranks - 1]) + 1
            yield from search.attempt_several(border, heads_beside_groups(machine, border, bench.memory))


def heads_beside_groups(machine: Machine, border: int, memory: float) -> list[Head]:
    """Groups, and a dense table of the features that are not below the border, as far as it pays."""
    degree = machine.model.kernel.degree
    common = int((machine.frequencies >= border).sum())
    return grouped_heads(degree, _dense_bytes(common, degree, machine.model.n_scores), memory)


def grouped_heads(degree: int, dense: float, memory: float) -> list[Head]:
    """Groups of several sizes beside a dense table of so many bytes, the most promising first."""
    return [
        Head(min(dense, memory), grouped=features, sum_bytes=min(sum_bytes, memory / 2))
        for features, sum_bytes in _GROUPED[degree]
    ]


def _dense_bytes(ranks: int, degree: int, scores: int) -> float:
    return 8.0 * scores * build.dense_entries(min(ranks, _GROUPED_RANKS[0]), degree)


def is_large(machine: Machine) -> bool:
    """Whether there are so many conjunctions that groups are worth their building."""
    fusable = machine.sets and machine.model.kernel.degree > 1
    return fusable and machine.occurrences() > _MOST_OCCURRENCES


def _fusable(fusable: bool, used: int) -> list[int]:
    return [count for count in _FUSED if fusable and count < used]


def try_weights(model: ConjunctionModel, bench: Bench) -> Iterator[Trial]:
    """Layouts for a model that has weights already; only one where there are no rows to measure on."""

    def make(_: int, head: Head) -> Tables:
        return build.conjunctions(model, head=head, sample=bench.sample, threads=bench.threads)

    search = _Search(bench, make)
    default = Head(min(build.default_head(model).nbytes, bench.memory))
    fusable = model.sets and model.degree > 1
    groups: list[Head] = []
    if fusable and len(model.keys) > _MANY_WEIGHTS and bench.sample is not None:
        near = _dense_bytes(len(model.columns), model.degree, len(model.constants))
        groups = grouped_heads(model.degree, near, bench.memory)
    if not bench.timed:  # the most promising first
        yield from search.attempt_several(0, [*groups, default])
        return
    yield from search.attempt(0, default)
    if bench.sample is not None:
        yield from search.attempt_several(0, groups)
        yield from search.try_layouts([0], _fusable(fusable, len(model.columns)))
        if fusable and not search.is_late():
            near = search.head_of(0).nbytes
            yield from search.attempt_several(0, grouped_heads(model.degree, near, bench.memory))


def try_tries(tables: Tables, base: Candidate, rows: Any, nodes: int | None, bench: Bench) -> Iterator[Trial]:
    """The prefix trie of these rows on tables that go by frequency: of so many nodes, or of several sizes."""
    engine = tables.engine()
    limit = nodes or _TRIE_SIZES[0]
    bench.on_progress(f"{words(base)}, growing a trie")
    grow(engine, rows, limit, "counted", bench.threads)
    sizes = [limit] if nodes else [size for size in _TRIE_SIZES if size <= engine.trie_nodes] or [limit]
    for size in sizes:
        engine.prune_trie(most_nodes=size, saving="counted")
        candidate = replace(base, trie_nodes=int(engine.trie_nodes))
        grown = replace(tables, arrays=without_trie(tables.arrays) | stored_trie(engine, size))
        yield bench.trial(candidate, partial(_itself, grown))


def _itself(tables: Tables) -> Tables:
    return tables


class _Search:
    """Tries layouts of conjunctions, each once, and remembers how fast they were."""

    def __init__(self, bench: Bench, make: Make) -> None:
        self._bench = bench
        self._make = make
        self._seconds: dict[tuple[int, Head], float] = {}
        self._all_dense: dict[int, float] = {}  # by border, the size from which on nothing changes
        self._began = time.process_time()  # what others do on the machine is not ours to wait for

    def is_late(self) -> bool:
        """Whether models are so large that what is left to gain is not worth the wait."""
        return self._bench.timed and time.process_time() - self._began > _PATIENCE_SECONDS

    def try_layouts(self, borders: list[int], fused: list[int]) -> Iterator[Trial]:
        """Where rare features begin; for the best two, how large the dense part is; then what is fused."""
        heads = [size for size in _HEADS if size <= self._bench.memory] or [self._bench.memory]
        if self.is_late():  # of a large model, a large part is wanted
            heads = heads[-1:]
        for border in borders:
            yield from self.attempt(border, Head(heads[len(heads) // 2]))
        best = self.fastest_borders(1 if self.is_late() else 2)
        for border, size in itertools.product(best, heads):
            yield from self.attempt(border, Head(size))
        for border, count in itertools.product(best, fused):
            if not self.is_late():
                yield from self.attempt(border, Head(self.head_of(border).nbytes, count))

    def attempt_several(self, rare: int, heads: list[Head]) -> Iterator[Trial]:
        """The first, and the others while there is time."""
        for tried, head in enumerate(heads):
            if not tried or not self.is_late():
                yield from self.attempt(rare, head)

    def attempt(self, rare: int, head: Head) -> Iterator[Trial]:
        """A trial, unless it was made before or could not differ from one that was."""
        if (rare, head) in self._seconds or (
            not head.fused and not head.grouped and head.nbytes > self._all_dense.get(rare, np.inf)
        ):
            return
        engine = "split" if rare else "expanded"
        candidate = Candidate(engine, rare, float(head.nbytes), head.fused, head.grouped)
        trial = self._bench.trial(candidate, lambda: self._make(rare, head))
        self._seconds[rare, head] = np.inf if trial.tables is None else trial.candidate.microseconds
        if trial.tables is not None and trial.tables.numbers["head"] == trial.tables.numbers["rare"]:
            self._all_dense[rare] = min(head.nbytes, self._all_dense.get(rare, np.inf))
        yield trial

    def fastest_borders(self, count: int) -> list[int]:
        """The borders of the fastest trials, the fastest first."""
        order = sorted(self._seconds, key=lambda tried: (tried[1].grouped > 0, self._seconds[tried]))
        return list(dict.fromkeys(rare for rare, _ in order))[:count]

    def head_of(self, rare: int) -> Head:
        """The dense part of the fastest trial with that border."""
        tried = [(seconds, head) for (border, head), seconds in self._seconds.items() if border == rare]
        return min(tried, key=lambda pair: pair[0])[1]


def _rare_to_try(machine: Machine, rare: float) -> list[int]:
    """Numbers of support vectors below which a feature is not expanded; 0 expands all."""
    if not machine.sets:
        return [0]
    several = {below for below in (*_RARE, machine.rare_below(rare)) if below > 1}
    least = int(machine.frequencies.min()) if len(machine.frequencies) else 0
    tried = sorted(below for below in several if below > least)
    return tried if tried and machine.occurrences() > _MOST_OCCURRENCES else [0, *tried]


def sample_rows(rows: Any) -> Any:
    """At most as many rows as are worth measuring, spread over all."""
    if rows.shape[0] <= _MOST_SAMPLE_ROWS:
        return rows
    chosen = np.linspace(0, rows.shape[0] - 1, _MOST_SAMPLE_ROWS).astype(np.int64)
    return rows[chosen]
