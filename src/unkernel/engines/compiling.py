"""``compile``: any model becomes the fastest exact classifier that fits the memory it is given."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from unkernel.data.memory import available_bytes
from unkernel.engines import build
from unkernel.engines.build import Head, Machine, refuse_precomputed, simplified
from unkernel.engines.candidates import Bench, Candidate, Trial, sample_rows, try_all, try_weights
from unkernel.engines.classifier import CompiledClassifier, canonical_csr
from unkernel.engines.threads import thread_count
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
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def compile(
    source: Any,
    engine: str = "auto",
    *,
    memory: int | str | None = None,
    sample: Any = None,
    rare: float = 0.005,
    threshold: float | None = None,
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
    n_jobs : int, default=None
        Threads for building; None and -1 mean all cores.
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
    _check_options(engine, rare, threshold)
    model = model_of(source)
    if isinstance(model, TreeModel):
        if engine != "auto" or sample is not None:
            raise ValueError("models of trees have one engine: leave out engine and sample")
        return TreeClassifier(model)
    budget = _memory_bytes(memory)
    tell = watch or (lambda _: None)
    threads = thread_count(n_jobs)
    # Who asks for an engine of support vectors gets one, also where the model is a linear one.
    simple = simplified(model) if engine in ("auto", "expanded") else refuse_precomputed(model)
    bench = Bench(_sample(sample, simple), budget, threads, tell)
    if isinstance(simple, KernelModel):
        trials = _kernel_trials(Machine(simple), engine, bench, rare, threshold)
    else:
        trials = _weight_trials(simple, engine, bench)
    return _best(model, _with_best_tables(trials), budget)


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


def _check_options(engine: str, rare: float, threshold: float | None) -> None:
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
    if not _is_number(rare) or not 0 <= rare < np.inf:
        raise ValueError(f"rare must be a share below 1 or a number of support vectors, got {rare!r}")
    if (threshold is None) == (engine == "pruned"):
        raise ValueError("engine='pruned' needs a threshold above 0, and the exact engines have none")
    if threshold is not None and (not _is_number(threshold) or not 0 < threshold < np.inf):
        raise ValueError(f"threshold must be above 0, got {threshold!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _memory_bytes(memory: int | str | None) -> float:
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
    if isinstance(sample, str | os.PathLike):
        sample = rows.read_for(model, sample).X
    else:
        sample = rows.checked(sample, model.n_features, model.fixed_width)
    if sample.shape[0] == 0:
        raise ValueError("the sample has no rows to measure on")
    return canonical_csr(sample_rows(rows.canonical(sample)))


def _kernel_trials(
    machine: Machine, engine: str, bench: Bench, rare: float, threshold: float | None
) -> Iterable[Trial]:
    if engine == "auto":
        return try_all(machine, bench, rare)
    if engine == "inverted":
        return [bench.trial(Candidate("inverted"), lambda: build.inverted(machine))]
    if engine == "bitsliced":
        return [bench.trial(Candidate("bitsliced"), lambda: build.bitsliced(machine))]
    return [_expansion(machine, engine, bench, rare, threshold)]


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
    candidate = Candidate(engine, below, float(head.nbytes), exact=engine != "pruned")
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
        least = min((t.candidate.nbytes for t in trials if t.candidate.nbytes > 0), default=0)
        needs = f"the smallest that was tried takes {least:,} bytes" if least else "the tables do not fit"
        raise MemoryError(f"no engine fits into {budget:,.0f} bytes ({needs}); raise memory")
    table = [replace(t.candidate, chosen=t is chosen) for t in trials]
    return CompiledClassifier(model, chosen.tables, table)
