"""``compile``: any model becomes the fastest exact classifier that fits into the given memory.

:func:`compile` takes the steps one by one, each a function in a module of its own: the model behind the
source (``sources``), its simplest form (``build``), the rows to measure on (``measured_rows``), the
candidates, built and measured (``search``), the choice among them (``candidates``), and the classifier.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from unkernel.data.threads import thread_count
from unkernel.engines.build import simplest_form
from unkernel.engines.cache import check_cache
from unkernel.engines.candidates import Bench, Choice, choose
from unkernel.engines.classifier import CompiledClassifier
from unkernel.engines.compile_options import (
    CompileOptions,
    OnProgress,
    check_options,
    check_tree_options,
    check_trie,
    check_unknown_keys,
    memory_bytes,
)
from unkernel.engines.measured_rows import rows_to_measure_on
from unkernel.engines.search import candidates
from unkernel.engines.sources import Model, model_of, pipeline_of, with_classes
from unkernel.models import KernelModel, TreeModel

if TYPE_CHECKING:
    from unkernel.engines.records import RecordClassifier
    from unkernel.engines.trees import TreeClassifier


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
    cache: int | None = None,
    classes: Any = None,
    unknown_keys: str = "ignore",
    n_jobs: int | None = None,
    on_progress: OnProgress | None = None,
) -> CompiledClassifier | TreeClassifier | RecordClassifier:
    """Turn a model into a classifier that answers in microseconds.

    Parameters
    ----------
    source : path, model, fitted estimator or fitted pipeline
        A file of LIBSVM, LIBLINEAR, SVMlight, TinySVM, opal, SVM-light-TK or unkernel; what ``read_model``
        returned; a fitted scikit-learn ``SVC``, ``NuSVC``, ``LinearSVC`` and others; a ``PolySVC`` or
        anything else that has ``to_model()``; a scikit-learn ``Pipeline`` that ends with one of these, whose
        transformers become a plan: `sample` and `trie` are then records, and the answers on `sample`, or else
        on records that are made up, are compared with the pipeline's own. Models of trees have an engine of
        their own, without options.
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
        is free. While they are built, up to two and a half times as much is in use.
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
    cache : int, default=None
        Remember the answers of at most this number of rows, and look up rows that are asked about again. It
        pays where most rows were seen before; answers are the same to the last bit. Not stored in files:
        ``unkernel.load(path).with_cache(n)`` has one again. ``cache_info()`` tells how often it helped.
    classes : LabelEncoder or list, default=None
        What the labels 0, 1, ... of the model stand for, where a ``LabelEncoder`` made them: answers are then
        the original labels.
    unknown_keys : str, default="ignore"
        For pipelines: what to do with keys of a record, or columns of a table, that the model does not know:
        ``"ignore"`` them, or raise an ``"error"`` that names the key. Stored in the file.
    n_jobs : int, default=None
        Threads for building; None means one, -1 all cores.
    on_progress : callable, default=None
        Called with a short description of each candidate before it is built.

    Returns
    -------
    CompiledClassifier, RecordClassifier for pipelines, or TreeClassifier for models of trees

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
    check_cache(cache)
    options = CompileOptions(
        engine=engine,
        rare=rare,
        threshold=threshold,
        memory=memory_bytes(memory),
        trie_nodes=trie_nodes,
        measure=measure,
        cache=cache,
        threads=thread_count(n_jobs),
        on_progress=on_progress or (lambda _: None),
    )
    pipeline = pipeline_of(source)
    check_unknown_keys(unknown_keys, is_pipeline=pipeline is not None)
    if pipeline is None:
        return compile_model(with_classes(model_of(source), classes), options, sample, trie)
    from unkernel.engines.pipelines import PipelineOptions, compile_pipeline

    given = PipelineOptions(
        sample=sample, trie=trie, classes=classes, ignores_unknown_keys=unknown_keys == "ignore"
    )
    return compile_pipeline(pipeline, given, partial(compile_model, options=options))


def compile_model(
    model: Model | TreeModel, options: CompileOptions, sample: Any, trie: Any
) -> CompiledClassifier | TreeClassifier:
    """The fastest classifier of a model, by options that have been checked."""
    if isinstance(model, TreeModel):
        from unkernel.engines.trees import TreeClassifier

        check_tree_options(options, sample, trie)
        return TreeClassifier(model)
    form = simplest_form(model, options.engine)
    rows = rows_to_measure_on(form, sample, trie)
    trials = candidates(form, Bench(rows.sample, options), rows.trie)
    choice = choose(trials, trie_required=options.trie_nodes is not None)
    return classifier(model, choice, options)


def engine_without_measuring(model: KernelModel) -> str:
    """The engine for support vectors that learners and their files take: it is good for most of them."""
    return "split" if model.binary else "inverted"


def classifier(model: Model, choice: Choice, options: CompileOptions) -> CompiledClassifier:
    """The classifier with the tables that were chosen, and a record of all that were tried."""
    if choice.fastest is None:
        memory = options.memory
        tried = [trial.candidate.nbytes for trial in choice.trials]
        least = min((nbytes for nbytes in tried if nbytes > memory), default=0)
        needs = f"the smallest that was tried takes {least:,} bytes" if least else "the tables do not fit"
        raise MemoryError(f"no engine fits into {memory:,.0f} bytes ({needs}); raise memory")
    table = [replace(trial.candidate, chosen=trial is choice.fastest) for trial in choice.trials]
    return CompiledClassifier(model, choice.fastest.tables, table, options.cache)
