"""Build and measure candidate engines, and choose the fastest."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from unkernel.data import file_memory_limit

if TYPE_CHECKING:
    from unkernel.engines.search.options import CompileOptions
    from unkernel.engines.tables.compiled_tables import Tables

_FIRST_ROWS = 16  # number of rows that the first run scores
_SECONDS_PER_REPETITION = 0.02
_REPETITIONS = 5
_MAX_BUILD_RATIO = 2.5  # peak memory while tables are built, divided by the size of the tables
_NEGLIGIBLE_BYTES = float(1 << 20)
_ADDED_FIELDS = ("grouped", "trie_nodes")  # fields that files of early versions lack


@dataclass(frozen=True)
class Candidate:
    """An engine that ``compile`` tried, with its size and its measured time.

    Attributes
    ----------
    engine : str
        Name of the engine.
    rare : int, default=0
        For "split": features in fewer support vectors than this number were not expanded.
    head_bytes : float, default=0.0
        Requested size of the dense table in bytes.
    fused : int, default=0
        Number of features that were fused into one.
    grouped : int, default=0
        Number of frequent features in groups. For each group, the sum of each state of its features is stored
        instead of their conjunctions.
    trie_nodes : int, default=0
        Number of nodes of the prefix trie.
    nbytes : int, default=-1
        Size of the tables in bytes; -1 if they were not built.
    microseconds : float, default=-1.0
        Time per row of the sample on one thread; -1 if it was not measured.
    exact : bool, default=True
        Whether the scores are exact.
    chosen : bool, default=False
        Whether this engine was chosen.
    note : str, default=""
        Reason why the engine was not built.

    See Also
    --------
    unkernel.compile : Compile a model.
    unkernel.CompiledClassifier : Its attribute ``candidates`` lists the tried engines.

    Examples
    --------
    >>> from unkernel import PolySVC, compile
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> fast = compile(PolySVC(C=10, gamma=1).fit(X, y), engine="expanded", measure=False)
    >>> [(candidate.engine, candidate.exact) for candidate in fast.candidates if candidate.chosen]
    [('expanded', True)]
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

    def without_time(self) -> Candidate:
        """Return the candidate without its measured time.

        Returns
        -------
        Candidate
            A copy.
        """
        return replace(self, microseconds=-1.0)

    def to_json(self) -> dict[str, Any]:
        """Return the candidate as a JSON object.

        Returns
        -------
        dict
            The fields by name.
        """
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Any) -> Candidate:
        """Make a candidate from the JSON object in a file, and check it.

        Parameters
        ----------
        stored : dict
            The JSON object.

        Returns
        -------
        Candidate
            The candidate.

        Raises
        ------
        ValueError
            If the JSON object is not a candidate.
        """
        types = {field.name: type(field.default) for field in fields(cls) if field.name != "engine"}
        if not isinstance(stored, dict) or {*stored, *_ADDED_FIELDS} != {*types, "engine"}:
            raise ValueError("the table of candidate engines is damaged")
        for name, value in stored.items():
            kind = types.get(name, str)
            if not isinstance(value, (int, float) if kind is float else kind):
                raise ValueError("the table of candidate engines is damaged")
        return cls(**stored)


@dataclass(frozen=True, eq=False)
class Trial:
    """A candidate, and the tables that were built for it, or None."""

    candidate: Candidate
    tables: Tables | None


@dataclass(frozen=True, eq=False)
class Bench:
    """Builds and measures candidates.

    Attributes
    ----------
    sample : CSR matrix or None
        Rows to measure on.
    options : CompileOptions
    """

    sample: Any
    options: CompileOptions

    @property
    def memory(self) -> float:
        """Number of bytes that tables may take."""
        return self.options.memory

    @property
    def is_timed(self) -> bool:
        """Whether candidates are measured; otherwise they are only built."""
        return self.options.measure

    def try_candidate(self, candidate: Candidate, make: Callable[[], Tables]) -> Trial:
        """Build and measure a candidate, or note why this was not possible."""
        self.options.on_progress(describe(candidate))
        try:
            with file_memory_limit.limit_tables(_MAX_BUILD_RATIO * self.memory + _NEGLIGIBLE_BYTES):
                tables = make()
                engine = tables.engine()
        except MemoryError:
            return Trial(replace(candidate, note="does not fit into the memory it was given"), None)
        built = replace(candidate, nbytes=int(engine.nbytes))
        if built.nbytes > self.memory:
            return Trial(replace(built, note="takes more than the memory it was given"), None)
        if self.is_timed:
            built = replace(built, microseconds=measure(engine, self.sample))
        return Trial(built, tables)


def describe(candidate: Candidate) -> str:
    """Describe a candidate in a few words."""
    return ", ".join(filter(None, (candidate.engine, describe_layout(candidate))))


def describe_layout(candidate: Candidate) -> str:
    """Describe the layout of a candidate's engine."""
    parts = [f"rare < {candidate.rare:,}"] if candidate.rare else []
    if candidate.head_bytes:
        parts.append(f"dense {candidate.head_bytes / 1e6:.3g} MB")
    if candidate.fused:
        parts.append(f"{candidate.fused} fused")
    if candidate.grouped:
        parts.append(f"{candidate.grouped} grouped")
    if candidate.trie_nodes:
        parts.append(f"trie of {candidate.trie_nodes:,}")
    return ", ".join(parts)


def measure(engine: Any, rows: Any, seconds: float = _SECONDS_PER_REPETITION) -> float:
    """Return the microseconds per row on one thread: the minimum of several runs; -1 if there are no rows."""
    if rows is None or rows.shape[0] == 0:
        return -1.0
    count = min(_FIRST_ROWS, rows.shape[0])
    while True:
        elapsed = _time_scoring(engine, rows[:count])
        if elapsed > seconds / 4 or count == rows.shape[0]:
            break
        count = min(rows.shape[0], 4 * count)
    repetitions = _REPETITIONS if elapsed < 10 * seconds else 1
    best = min(_time_scoring(engine, rows[:count]) for _ in range(repetitions))
    return float(1e6 * min(best, elapsed) / count)


def _time_scoring(engine: Any, rows: Any) -> float:
    """Return the CPU time of all threads; the core scores large batches in threads of its own."""
    begin = time.process_time()
    engine.score(rows, 1)
    return time.process_time() - begin


@dataclass(frozen=True)
class Choice:
    """All trials, and the fastest of them, which is None if nothing fits into the memory."""

    trials: list[Trial]
    fastest: Trial | None


def choose(trials: Iterable[Trial], *, trie_required: bool = False) -> Choice:
    """Return all trials and the fastest one; drop the tables of all others to save memory."""
    finished: list[Trial] = []
    best: int | None = None
    for trial in trials:
        eligible = trial.tables is not None and (trial.tables.has_trie or not trie_required)
        if eligible and (
            best is None or trial.candidate.microseconds < finished[best].candidate.microseconds
        ):
            if best is not None:
                finished[best] = replace(finished[best], tables=None)
            best = len(finished)
            finished.append(trial)
        else:
            finished.append(replace(trial, tables=None))
    return Choice(finished, None if best is None else finished[best])
