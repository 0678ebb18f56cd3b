"""Compile a model into the fastest exact classifier that fits into the given memory.

The steps are: find the model of the source (``model_sources``), simplify it (``tables.builders``), choose
rows to measure on (``search.sample_rows``), build and measure candidates (``search.candidate_search``), and
choose the fastest (``search.candidates``).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from unkernel.data.threads import thread_count
from unkernel.engines.model_sources import Model, find_model, find_pipeline, replace_classes
from unkernel.engines.rows.answer_cache import check_cache
from unkernel.engines.rows.classifier import CompiledClassifier
from unkernel.engines.search.candidate_search import try_candidates
from unkernel.engines.search.candidates import Bench, Choice, choose
from unkernel.engines.search.options import (
    CompileOptions,
    OnProgress,
    check_options,
    check_tree_options,
    check_trie,
    check_unknown_keys,
    parse_memory,
)
from unkernel.engines.search.sample_rows import choose_rows
from unkernel.engines.tables.builders import simplify_for_engine
from unkernel.models import KernelModel, TreeModel

if TYPE_CHECKING:
    from unkernel.engines.records.classifier import RecordClassifier
    from unkernel.engines.trees.classifier import TreeClassifier


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
    """Compile a model into a classifier with an inference latency of microseconds.

    Scores and predictions equal the model's exactly, except for ``engine="pruned"``.

    Parameters
    ----------
    source : path, model, fitted estimator or fitted pipeline
        The model to compile:

        - a file of LIBSVM, LIBLINEAR, SVMlight, TinySVM, opal, SVM-light-TK or unkernel;
        - a model returned by ``read_model``;
        - a fitted scikit-learn estimator such as ``SVC``, ``NuSVC`` or ``LinearSVC``;
          :func:`~unkernel.models.from_estimator` lists all of them;
        - a fitted ``PolySVC`` or another estimator with a method ``to_model``;
        - a fitted scikit-learn ``Pipeline`` that ends with one of these estimators. Its transformers are
          compiled too. The predictions of the compiled pipeline are compared with the pipeline's on
          ``sample`` or, without it, on generated records;
        - a fitted ``ExplainableBoostingClassifier`` or ``ExplainableBoostingRegressor`` of interpret,
          alone or at the end of a pipeline.
    engine : {"auto", "inverted", "bitsliced", "expanded", "split", "pruned", "int16"}, default="auto"
        Engine that computes the scores.

        - "inverted" lists the support vectors of each feature. For any kernel and any values.
        - "bitsliced" stores one bit per feature and support vector, and counts common features for 64 or more
          support vectors at a time. For any kernel and binary features.
        - "expanded" stores one weight per conjunction. For polynomial kernels up to degree 4.
        - "split" stores conjunctions of frequent features and the support vectors of rare features. For
          polynomial kernels up to degree 4 and binary features.
        - "pruned" drops conjunctions with small weights. It is the only approximate engine.
        - "int16" stores weights of pairs in 16 bits. For models of weights with several scores, such as the
          models of online learners.
        - "auto" builds several exact engines, measures them and takes the fastest.

        Tree models have one engine, without options.
    memory : int or str, default=None
        Largest size of the tables in bytes, such as ``200_000_000`` or ``"200M"``; by default a quarter of
        the free memory. While tables are built, they may take two and a half times this memory.
    sample : rows or path, default=None
        Typical rows (for pipelines, records) to measure the engines on; by default the support vectors.
    rare : float, default=0.005
        For "split": a feature is rare if it occurs in fewer support vectors than this number. A value below
        1 is a share of the support vectors. This parameter affects memory and time, not the result.
    threshold : float, default=None
        For "pruned": conjunctions with a smaller absolute weight are dropped. Positive weights are compared
        with the threshold times the share of support vectors with positive coefficients, negative weights
        with the threshold times the share of the others.
    trie : rows or path, default=None
        Unlabelled rows to grow a prefix trie from, for conjunctions of binary features. A prefix trie stores
        the sums of frequent beginnings of rows. Tries of several sizes are measured on ``sample`` or on
        held-out rows. The fastest trie is kept if it is faster than no trie.
    trie_nodes : int, default=None
        Keep a trie of at most this number of nodes, without measuring its speed.
    measure : bool, default=True
        Whether to choose the engine by measured time. False chooses by rules: the same model and options then
        always give the same tables, although perhaps not the fastest. A trie then needs ``trie_nodes``.
    cache : int, default=None
        Number of rows whose scores are cached. This helps if most rows occur more than once. The cache is not
        stored in files: use ``unkernel.load(path).with_cache(n)``.
    classes : LabelEncoder, MultiLabelBinarizer or list, default=None
        The original labels, if a ``LabelEncoder`` replaced them by 0, 1, ... for training. The classifier
        then returns the original labels. For several labels per row: the names of the labels, in the order
        of the columns of the indicator matrix.
    unknown_keys : {"ignore", "error"}, default="ignore"
        For pipelines: whether keys of a record (columns of a table) that were not in training are ignored or
        raise an error. This choice is stored in the file.
    n_jobs : int, default=None
        Number of threads for building; None means 1 and -1 means all processors.
    on_progress : callable, default=None
        Called with a short description of each candidate before it is built.

    Returns
    -------
    CompiledClassifier, RecordClassifier or TreeClassifier
        A RecordClassifier for pipelines and boosting machines, a TreeClassifier for tree models.

    Raises
    ------
    MemoryError
        If no engine fits into ``memory``.
    ValueError
        If the model, a step of the pipeline or an option is not supported.

    See Also
    --------
    load : Load a compiled classifier from a file.
    CompiledClassifier : The compiled classifier of rows.
    unkernel.engines.RecordClassifier : The compiled classifier of records.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.svm import SVC
    >>> import unkernel
    >>> X, y = load_digits(n_class=3, return_X_y=True)
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
        memory=parse_memory(memory),
        trie_nodes=trie_nodes,
        measure=measure,
        cache=cache,
        threads=thread_count(n_jobs),
        on_progress=on_progress or (lambda _: None),
    )
    pipeline = find_pipeline(source)
    check_unknown_keys(unknown_keys, is_pipeline=pipeline is not None)
    if pipeline is None:
        return compile_model(replace_classes(find_model(source), classes), options, sample, trie)
    from unkernel.engines.records.pipelines import PipelineOptions, compile_pipeline

    pipeline_options = PipelineOptions(
        sample=sample, trie=trie, classes=classes, ignores_unknown_keys=unknown_keys == "ignore"
    )
    return compile_pipeline(pipeline, pipeline_options, partial(compile_model, options=options))


def compile_model(
    model: Model | TreeModel, options: CompileOptions, sample: Any, trie: Any
) -> CompiledClassifier | TreeClassifier:
    """Return the fastest classifier for a model, given options that have been checked."""
    if isinstance(model, TreeModel):
        from unkernel.engines.trees.classifier import TreeClassifier

        check_tree_options(options, sample, trie)
        return TreeClassifier(model)
    simplified = simplify_for_engine(model, options.engine)
    rows = choose_rows(simplified, sample, trie)
    trials = try_candidates(simplified, Bench(rows.sample, options), rows.trie)
    choice = choose(trials, trie_required=options.trie_nodes is not None)
    return make_chosen_classifier(model, choice, options)


def choose_default_engine(model: KernelModel) -> str:
    """Return the engine for a model of support vectors that was not compiled, chosen without measuring."""
    return "split" if model.binary else "inverted"


def make_chosen_classifier(model: Model, choice: Choice, options: CompileOptions) -> CompiledClassifier:
    """Return the classifier with the chosen tables and a list of all candidates."""
    if choice.fastest is None:
        memory = options.memory
        sizes = [trial.candidate.nbytes for trial in choice.trials]
        smallest = min((nbytes for nbytes in sizes if nbytes > memory), default=0)
        reason = (
            f"the smallest that was tried takes {smallest:,} bytes" if smallest else "the tables do not fit"
        )
        raise MemoryError(f"no engine fits into {memory:,.0f} bytes ({reason}); raise memory")
    table = [replace(trial.candidate, chosen=trial is choice.fastest) for trial in choice.trials]
    return CompiledClassifier(model, choice.fastest.tables, table, options.cache)
