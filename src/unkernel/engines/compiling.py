"""``compile``: any model becomes the fastest exact classifier that fits the memory it is given."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from unkernel.data.memory import available_bytes
from unkernel.data.threads import thread_count
from unkernel.engines import build
from unkernel.engines.build import Head, Machine, check_precomputed, simplified
from unkernel.engines.candidates import (
    Bench,
    Candidate,
    Trial,
    by_rule,
    heads_beside_groups,
    is_large,
    sample_rows,
    try_all,
    try_tries,
    try_weights,
)
from unkernel.engines.classifier import CompiledClassifier, canonical_csr
from unkernel.engines.prefix_trie import check_limit
from unkernel.engines.tables import Tables
from unkernel.engines.trees import TreeClassifier
from unkernel.models import (
    ConjunctionModel,
    KernelModel,
    LinearModel,
    TreeModel,
    from_estimator,
    read_model,
    rows,
)

ENGINES = ("auto", "inverted", "bitsliced", "expanded", "pruned", "split")
Model = KernelModel | LinearModel | ConjunctionModel
Watch = Callable[[str], None]

_SHARE_OF_MEMORY = 4  # a quarter of what is free, unless told otherwise
_NEAR, _LARGE = 4e6, 32e6
_MOST_SORTED = 64e6  # of a dense table beside a trie
_LEFT_OUT = 10  # every so-manyth row for a trie is measured on instead
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def compile(
    source: Any,
    engine: str = "auto",
    *,
    memory: int | str | None = None,
    sample: Any = None,
    rare: float = 0.005,
    threshold: float | None = None,
    trie: Any = None,
    trie_nodes: int | None = None,
    measure: bool = True,
    n_jobs: int | None = None,
    watch: Watch | None = None,
) -> CompiledClassifier | TreeClassifier:
    """Turn a model into a classifier that answers in microseconds.

    Parameters
    ----------
    source : path, model or fitted estimator
        A file of LIBSVM, LIBLINEAR, SVMlight, TinySVM, opal, SVM-light-TK or unkernel; what ``read_model``
        gave; a fitted scikit-learn ``SVC``, ``NuSVC``, ``LinearSVC`` and others; a ``PolySVC`` or anything
        else that has ``to_model()``. Models of trees have an engine of their own, without options.
    engine : str, default="auto"
        ``"inverted"``: for each feature the support vectors that have it; any kernel, any values.
        ``"bitsliced"``: overlaps with all support vectors counted bit by bit; any kernel, binary features.
        ``"expanded"``: a weight for each conjunction; polynomial kernels up to degree 4.
        ``"split"``: conjunctions of common features, support vectors of rare ones; polynomial kernels up to
        degree 4, binary features.
        ``"pruned"``: conjunctions of small weight are dropped. The only one that is approximate.
        ``"auto"`` builds several exact ones, measures them and takes the fastest.
    memory : int or str, default=None
        Bytes that the tables may take, such as ``200_000_000`` or ``"200M"``; by default a quarter of what
        is free.
    sample : rows or path, default=None
        Typical rows to measure on; by default the support vectors themselves.
    rare : float, default=0.005
        For ``"split"``: features of fewer support vectors than this are rare. Below 1 it is a share of them.
        Memory and time depend on it, the result does not.
    threshold : float, default=None
        For ``"pruned"``: conjunctions whose weight is smaller in size are dropped; for positive and negative
        weights it is scaled by the share of support vectors of that sign.
    trie : rows or path, default=None
        Rows of the task, without labels, to grow a prefix trie from: what their frequent beginnings add up
        to is then looked up at once. For models of conjunctions of binary features. Tries of several sizes
        are measured, on ``sample`` or on some of these rows that are left out, and none is kept where none
        pays.
    trie_nodes : int, default=None
        Keep a trie of at most so many nodes, whether it pays or not.
    measure : bool, default=True
        False chooses by rules instead of the clock: the same model and options then give the same tables,
        always, which may not be the fastest ones. A trie then needs `trie_nodes`.
    n_jobs : int, default=None
        Threads for building; None means one, -1 all cores.
    watch : callable, default=None
        Told what is being tried, in words.

    Returns
    -------
    CompiledClassifier, or TreeClassifier for models of trees

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.svm import SVC
    >>> import unkernel
    >>> X, y = load_digits(return_X_y=True)
    >>> svc = SVC(kernel="poly", degree=2, coef0=1).fit(X > 7, y)
    >>> fast = unkernel.compile(svc)
    >>> bool((fast.predict(X > 7) == svc.predict(X > 7)).all())
    True
    """
    check_options(engine, rare, threshold)
    check_trie(engine, trie, trie_nodes)
    if trie is not None and trie_nodes is None and not measure:
        raise ValueError("measure=False needs trie_nodes: whether a trie pays is measured")
    model = model_of(source)
    if isinstance(model, TreeModel):
        if engine != "auto" or sample is not None or trie is not None:
            raise ValueError("models of trees have one engine: leave out engine, sample and trie")
        return TreeClassifier(model)
    budget = memory_bytes(memory)
    tell = watch or (lambda _: None)
    threads = thread_count(n_jobs)
    # Who asks for an engine of support vectors gets one, also where the model is a linear one.
    simple = simplified(model) if engine in ("auto", "expanded") else check_precomputed(model)
    source_rows = None if trie is None else _rows(trie, simple)
    if source_rows is not None and source_rows.shape[0] == 0:
        raise ValueError("trie has no rows to grow from")
    if source_rows is not None and sample is None:
        source_rows, left_out = _left_out(source_rows)
        measured = canonical_csr(sample_rows(left_out))
    else:
        measured = _sample(sample, simple)
    bench = Bench(measured, budget, threads, tell, timed=measure)
    maker = _Maker(simple, engine, bench, rare, threshold)
    trials = _with_best_tables(maker.trials() if measure else _until_one_fits(maker.trials()))
    if source_rows is not None:
        with_trie = maker.tries(trials, source_rows, trie_nodes)
        others = [replace(trial, tables=None) for trial in trials] if trie_nodes else trials
        trials = _with_best_tables(itertools.chain(others, with_trie))
    return _best(model, trials, budget)


def model_of(source: Any) -> Model | TreeModel:
    """The plain model behind a path, a model or an estimator."""
    if isinstance(source, str | os.PathLike):
        return read_model(source)
    if isinstance(source, KernelModel | LinearModel | ConjunctionModel | TreeModel):
        return source
    if hasattr(source, "to_model"):
        found: Model | TreeModel = source.to_model()
        return found
    return from_estimator(source)


def check_options(engine: str, rare: float, threshold: float | None) -> None:
    """Refuse options that are none, or that do not go together."""
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
    if not _is_number(rare) or not 0 <= rare < np.inf:
        raise ValueError(f"rare must be a share below 1 or a number of support vectors, got {rare!r}")
    if (threshold is None) == (engine == "pruned"):
        raise ValueError("engine='pruned' needs a threshold above 0, and the exact engines have none")
    if threshold is not None and (not _is_number(threshold) or not 0 < threshold < np.inf):
        raise ValueError(f"threshold must be above 0, got {threshold!r}")


def check_trie(engine: str, trie: Any, nodes: int | None) -> None:
    """Refuse options of tries that do not go together."""
    if trie is None:
        if nodes is not None:
            raise ValueError("trie_nodes needs rows to grow a trie from: give them as trie")
        return
    if engine in ("inverted", "bitsliced"):
        raise ValueError(f"engine={engine!r} has no conjunctions, and so no prefix trie; leave out trie")
    if nodes is not None:
        check_limit(nodes, "trie_nodes")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def memory_bytes(memory: int | str | None) -> float:
    """Bytes that tables may take."""
    if memory is None:
        free = available_bytes()
        return free / _SHARE_OF_MEMORY if free else 1e9
    if isinstance(memory, str):
        return parse_bytes(memory)
    if isinstance(memory, bool) or not memory > 0:
        raise ValueError(f"memory must be a number of bytes above 0, or such as '200M', got {memory!r}")
    return float(memory)


def parse_bytes(words: str) -> float:
    """Bytes from such as ``200M``, ``1.5 GB`` or ``1000000``; K, M, G and T are powers of 1000."""
    found = re.fullmatch(
        r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([KMGT]?)B?\s*", words, re.ASCII | re.IGNORECASE
    )
    amount = float(found[1]) * _UNITS[found[2].upper()] if found else 0.0
    if not 0 < amount < np.inf:
        raise ValueError(f"memory must be bytes, such as 200M, 1.5G or 1000000, got {words!r}")
    return amount


def _sample(sample: Any, model: Model) -> Any:
    """Rows to measure on; few, as CSR. None where there are none to be had."""
    if sample is None:
        if not isinstance(model, KernelModel):
            return None
        return canonical_csr(sample_rows(model.support_vectors))
    given = _rows(sample, model)
    if given.shape[0] == 0:
        raise ValueError("the sample has no rows to measure on")
    return canonical_csr(sample_rows(given))


def _rows(given: Any, model: Model) -> Any:
    """Rows of an array, a matrix or a file, as the model takes them."""
    if isinstance(given, str | os.PathLike):
        given = rows.read_for(model, given).X
    else:
        given = rows.checked(given, model.n_features, model.fixed_width)
    return canonical_csr(rows.canonical(given))


def _left_out(given: Any) -> tuple[Any, Any]:
    """Rows to grow a trie from, and some others to measure it on."""
    if given.shape[0] < 2:
        raise ValueError("trie needs at least 2 rows, to grow from and to measure on; or give a sample")
    places = np.arange(given.shape[0])
    out = places % _LEFT_OUT == _LEFT_OUT // 2 if len(places) >= _LEFT_OUT else places == len(places) - 1
    return given[~out], given[out]


@dataclass(frozen=True)
class _Maker:
    """Makes tables of one model, as the options of ``compile`` say."""

    model: Model
    engine: str
    bench: Bench
    rare: float
    threshold: float | None

    @cached_property
    def machine(self) -> Machine:
        assert isinstance(self.model, KernelModel)
        return Machine(self.model)

    def trials(self) -> Iterable[Trial]:
        """The engines that were asked for, measured."""
        if not isinstance(self.model, KernelModel):
            return _weight_trials(self.model, self.engine, self.bench)
        machine, bench = self.machine, self.bench
        if self.engine == "auto":
            tried = try_all if bench.timed else by_rule
            return tried(machine, bench, self.rare)
        if self.engine == "inverted":
            return [bench.trial(Candidate("inverted"), lambda: build.inverted(machine))]
        if self.engine == "bitsliced":
            return [bench.trial(Candidate("bitsliced"), lambda: build.bitsliced(machine))]
        return [_expansion(machine, self.engine, bench, self.rare, self.threshold)]

    def tries(self, trials: list[Trial], rows: Any, nodes: int | None) -> Iterator[Trial]:
        """Prefix tries over the engine that was best, or over an expansion where that was no such engine."""
        best = next((trial.candidate for trial in trials if trial.tables is not None), Candidate("expanded"))
        if best.engine not in ("expanded", "split", "pruned"):
            best = Candidate("split", self.machine.rare_below(self.rare))
        size = min(max(best.head_bytes, _NEAR), _MOST_SORTED, self.bench.memory)
        base = replace(best, head_bytes=size, fused=0, grouped=0, nbytes=-1, microseconds=-1.0, chosen=False)
        self.bench.on_progress(f"{base.engine} by frequency")
        try:
            tables = self._by_frequency(Head(size, by_frequency=True), base)
        except MemoryError:
            yield Trial(replace(base, note="does not fit into the memory it was given"), None)
            return
        if tables.arrays["columns"].max(initial=0) >= np.iinfo(np.int32).max:
            raise ValueError("a prefix trie needs columns below 2,147,483,647; leave out trie")
        if not nodes:
            yield self.bench.trial(base, lambda: tables)
        yield from try_tries(tables, base, rows, nodes, self.bench)

    def _by_frequency(self, head: Head, base: Candidate) -> Tables:
        threads = self.bench.threads
        if isinstance(self.model, ConjunctionModel) and self.model.sets:
            return build.conjunctions(self.model, head=head, threads=threads)
        if not isinstance(self.model, KernelModel) or not self.machine.expandable or not self.machine.sets:
            raise ValueError(
                "a prefix trie needs conjunctions of binary features: a polynomial kernel of degree 2 to "
                f"{build.LARGEST_EXPANDED_DEGREE} over support vectors whose values are all 1, or a model "
                "that was trained on binary rows; leave out trie"
            )
        return build.expanded(
            self.machine,
            head=head,
            rare_below=base.rare,
            threshold=self.threshold or 0.0,
            most_bytes=self.bench.memory,
            threads=threads,
        )


def _until_one_fits(trials: Iterable[Trial]) -> Iterator[Trial]:
    for trial in trials:
        yield trial
        if trial.tables is not None:
            return


def _with_best_tables(trials: Iterable[Trial]) -> list[Trial]:
    """All trials, of which only the fastest so far keeps its tables: together they would be large."""
    kept: list[Trial] = []
    best: int | None = None
    for trial in trials:
        if trial.tables is not None:
            if best is None or trial.candidate.microseconds < kept[best].candidate.microseconds:
                if best is not None:
                    kept[best] = replace(kept[best], tables=None)
                best = len(kept)
            else:
                trial = replace(trial, tables=None)  # noqa: PLW2901 (the same trial, without its tables)
        kept.append(trial)
    return kept


def _expansion(machine: Machine, engine: str, bench: Bench, rare: float, threshold: float | None) -> Trial:
    kernel = machine.model.kernel
    if not machine.expandable:
        raise ValueError(
            f"engine={engine!r} needs a polynomial kernel of degree 1 to {build.LARGEST_EXPANDED_DEGREE}, "
            f"and this one is {kernel.words()}; use engine='inverted' or 'bitsliced'"
        )
    if engine in ("split", "pruned") and not machine.sets:
        raise ValueError(
            f"engine={engine!r} needs support vectors whose values are all 1, and a kernel whose gamma and "
            "coef0 are not negative; use engine='expanded' or 'inverted'"
        )
    below = machine.rare_below(rare) if engine == "split" else 0
    head = Head(min(_LARGE if machine.occurrences() > _LARGE / 8 else _NEAR, bench.memory))
    if engine == "split" and is_large(machine):
        head = heads_beside_groups(machine, below, bench.memory)[0]
    candidate = Candidate(engine, below, float(head.nbytes), grouped=head.grouped, exact=engine != "pruned")
    trial = bench.trial(
        candidate,
        lambda: build.expanded(
            machine,
            head=head,
            rare_below=below,
            threshold=threshold or 0.0,
            most_bytes=bench.memory,
            threads=bench.threads,
        ),
    )
    return trial if candidate.exact else _with_agreement(trial, machine, bench.sample)


def _with_agreement(trial: Trial, machine: Machine, sample: Any) -> Trial:
    """What an approximate engine costs: how many labels of the sample are still the model's."""
    if trial.tables is None:
        return trial
    if sample.shape[0] == 0:
        return Trial(replace(trial.candidate, note="there are no rows to compare on"), trial.tables)
    decision = machine.model.decision
    given, right = (
        np.asarray(engine.score(sample.indptr, sample.indices, sample.data, 1))
        for engine in (trial.tables.engine(), build.inverted(machine).engine())
    )
    if decision.scheme == "regression":
        note = f"values of the sample are off by at most {np.abs(given - right).max():.3g}"
    else:
        same = float(np.mean(decision.choose(given) == decision.choose(right)))
        note = f"{100 * same:.2f} % of {sample.shape[0]:,} sample labels are the exact model's"
    return Trial(replace(trial.candidate, note=note), trial.tables)


def _weight_trials(model: LinearModel | ConjunctionModel, engine: str, bench: Bench) -> Iterable[Trial]:
    """Models that have weights already: only how they are laid out is open."""
    if engine not in ("auto", "expanded"):
        raise ValueError(
            f"engine={engine!r} needs support vectors, and this model has weights; use engine='auto'"
        )
    if isinstance(model, LinearModel):
        return [bench.trial(Candidate("expanded"), lambda: build.linear(model))]
    return try_weights(model, bench)


def _best(model: Model, trials: list[Trial], budget: float) -> CompiledClassifier:
    """The one trial that has kept its tables."""
    chosen = next((trial for trial in trials if trial.tables is not None), None)
    if chosen is None or chosen.tables is None:
        least = min((t.candidate.nbytes for t in trials if t.candidate.nbytes > budget), default=0)
        needs = f"the smallest that was tried takes {least:,} bytes" if least else "the tables do not fit"
        raise MemoryError(f"no engine fits into {budget:,.0f} bytes ({needs}); raise memory")
    table = [replace(t.candidate, chosen=t is chosen) for t in trials]
    return CompiledClassifier(model, chosen.tables, table)
