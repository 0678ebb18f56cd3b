"""``compile``: any model becomes the fastest exact classifier that fits into the given memory.

The way of a model, one function per step: source, model, rows to measure on, candidates, the measured choice,
classifier. :func:`compile` calls them in this order.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unkernel.data.rows.csr import canonical_rows
from unkernel.data.threads import thread_count
from unkernel.engines.build import check_precomputed, simplified
from unkernel.engines.candidates import Bench, Trial, sample_rows
from unkernel.engines.classifier import CompiledClassifier
from unkernel.engines.compile_options import (
    CompileOptions,
    OnProgress,
    check_options,
    check_trie,
    memory_bytes,
)
from unkernel.engines.search import candidates
from unkernel.engines.trees import TreeClassifier
from unkernel.models import (
    ConjunctionModel,
    KernelModel,
    LinearModel,
    TreeModel,
    rows,
)

Model = KernelModel | LinearModel | ConjunctionModel

_LEFT_OUT = 10  # of the rows for a trie, one in this many is measured on instead


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
    on_progress: OnProgress | None = None,
) -> CompiledClassifier | TreeClassifier:
    """Turn a model into a classifier that answers in microseconds.

    Parameters
    ----------
    source : path, model or fitted estimator
        A file of LIBSVM, LIBLINEAR, SVMlight, TinySVM, opal, SVM-light-TK or unkernel; what ``read_model``
        returned; a fitted scikit-learn ``SVC``, ``NuSVC``, ``LinearSVC`` and others; a ``PolySVC`` or
        anything else that has ``to_model()``. Models of trees have an engine of their own, without options.
    engine : str, default="auto"
        ``"inverted"``: for each feature the support vectors that have it; any kernel, any values.
        ``"bitsliced"``: overlaps with all support vectors counted bit by bit; any kernel, binary features.
        ``"expanded"``: one weight per conjunction; polynomial kernels up to degree 4.
        ``"split"``: conjunctions of common features, support vectors of rare ones; polynomial kernels up to
        degree 4, binary features.
        ``"pruned"``: conjunctions of small weight are dropped. The only one that is approximate.
        ``"int16"``: weights of pairs in 16 bits each; models of weights with several scores, as online
        learners train them.
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
        Rows of the task, without labels, to grow a prefix trie from: the sums of their frequent beginnings
        are then looked up at once. For models of conjunctions of binary features. Tries of several sizes
        are measured, on ``sample`` or on some of these rows that are left out, and none is kept where none
        pays.
    trie_nodes : int, default=None
        Keep a trie of at most this number of nodes, whether it pays or not.
    measure : bool, default=True
        False chooses by rules instead of measured times: the same model and options then always give the
        same tables, which may not be the fastest ones. A trie then needs `trie_nodes`.
    n_jobs : int, default=None
        Threads for building; None means one, -1 all cores.
    on_progress : callable, default=None
        Called with a short description of each candidate before it is built.

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
    check_trie(engine, trie, trie_nodes, measure=measure)
    options = CompileOptions(
        engine=engine,
        rare=rare,
        threshold=threshold,
        memory=memory_bytes(memory),
        trie_nodes=trie_nodes,
        measure=measure,
        threads=thread_count(n_jobs),
        on_progress=on_progress or (lambda _: None),
    )
    model = model_of(source)
    if isinstance(model, TreeModel):
        return tree_classifier(model, engine, sample, trie)
    expandable = simplest_form(model, engine)
    measured = rows_to_measure_on(expandable, sample, trie)
    tried = candidates(expandable, Bench(measured.sample, options), measured.trie)
    choice = choose(tried, trie_required=trie_nodes is not None)
    return classifier(model, choice, options.memory)


def model_of(source: Any) -> Model | TreeModel:
    """The plain model behind a path, a model or an estimator."""
    if isinstance(source, str | os.PathLike):
        from unkernel.models.formats import read_model

        return read_model(source)
    if isinstance(source, KernelModel | LinearModel | ConjunctionModel | TreeModel):
        return source
    if hasattr(source, "to_model"):
        found: Model | TreeModel = source.to_model()
        return found
    from unkernel.models.sklearn import from_estimator

    return from_estimator(source)


def tree_classifier(model: TreeModel, engine: str, sample: Any, trie: Any) -> TreeClassifier:
    """Models of trees have one engine; there is nothing to choose."""
    if engine != "auto" or sample is not None or trie is not None:
        raise ValueError("models of trees have one engine: leave out engine, sample and trie")
    return TreeClassifier(model)


def simplest_form(model: Model, engine: str) -> Model:
    """A kernel model that is linear becomes one, unless an engine of support vectors was asked for."""
    form: Model = simplified(model) if engine in ("auto", "expanded") else check_precomputed(model)
    return form


# --- Rows to measure on ------------------------------------------------------------------------------


@dataclass(frozen=True)
class MeasuredRows:
    """Canonical CSR rows: `sample` is scored by every candidate, `trie` is what tries grow from."""

    sample: Any = None
    trie: Any = None


def rows_to_measure_on(model: Model, sample: Any, trie: Any) -> MeasuredRows:
    """The rows that were given; without a sample, some of the rows for the trie, or the support vectors.

    Models of weights have no rows of their own: without any given, nothing is measured.
    """
    grown = None if trie is None else _as_rows(trie, model)
    if grown is not None and grown.shape[0] == 0:
        raise ValueError("trie has no rows to grow from")
    if sample is not None:
        typical = _as_rows(sample, model)
        if typical.shape[0] == 0:
            raise ValueError("the sample has no rows to measure on")
    elif grown is not None:
        grown, typical = _leave_out(grown)
    elif isinstance(model, KernelModel):
        typical = model.vectors
    else:
        return MeasuredRows()
    return MeasuredRows(sample_rows(typical), grown)


def _as_rows(given: Any, model: Model) -> Any:
    """The rows of an array, a matrix or a file, with the model's columns."""
    if isinstance(given, str | os.PathLike):
        return canonical_rows(rows.read_for(model, given).X)
    return rows.checked(given, model.n_features, model.fixed_width)


def _leave_out(given: Any) -> tuple[Any, Any]:
    """Rows to grow a trie from, and others to measure it on."""
    if given.shape[0] < 2:
        raise ValueError("trie needs at least 2 rows, to grow from and to measure on; or give a sample")
    places = np.arange(given.shape[0])
    out = places % _LEFT_OUT == _LEFT_OUT // 2 if len(places) >= _LEFT_OUT else places == len(places) - 1
    return given[~out], given[out]


# --- The measured choice -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Choice:
    """All trials, and the fastest of them; None where nothing fits into the memory."""

    trials: list[Trial]
    fastest: Trial | None


def choose(trials: Iterable[Trial], *, trie_required: bool = False) -> Choice:
    """Take the fastest, the first of equally fast ones; only its tables are kept, since all may be large."""
    kept: list[Trial] = []
    best: int | None = None
    for trial in trials:
        eligible = trial.tables is not None and (trial.tables.has_trie or not trie_required)
        if eligible and (best is None or trial.candidate.microseconds < kept[best].candidate.microseconds):
            if best is not None:
                kept[best] = replace(kept[best], tables=None)
            best = len(kept)
            kept.append(trial)
        else:
            kept.append(replace(trial, tables=None))
    return Choice(kept, None if best is None else kept[best])


def classifier(model: Model, choice: Choice, memory: float) -> CompiledClassifier:
    """The classifier with the tables that were chosen, and a record of all that were tried."""
    if choice.fastest is None:
        tried = [trial.candidate.nbytes for trial in choice.trials]
        least = min((nbytes for nbytes in tried if nbytes > memory), default=0)
        needs = f"the smallest that was tried takes {least:,} bytes" if least else "the tables do not fit"
        raise MemoryError(f"no engine fits into {memory:,.0f} bytes ({needs}); raise memory")
    table = [replace(trial.candidate, chosen=trial is choice.fastest) for trial in choice.trials]
    return CompiledClassifier(model, choice.fastest.tables, table)
