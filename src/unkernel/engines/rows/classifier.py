"""The compiled classifier of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unkernel._core import Engine
from unkernel.data.rows.csr import CsrRows
from unkernel.data.rows.row_checks import check_rows
from unkernel.data.threads import thread_count
from unkernel.engines.estimator import CompiledEstimator, available_if, lazy_for_collections
from unkernel.engines.explain.linear_weights import LinearWeights
from unkernel.engines.rows.answer_cache import CacheInfo, check_cache, get_cache_info
from unkernel.engines.rows.single_row import OneRowScorer, RowCalls
from unkernel.engines.search.candidates import Candidate
from unkernel.engines.single_answers import make_predict_one, make_score_one
from unkernel.engines.tables.compiled_tables import CONJUNCTIONS, INT16, Tables
from unkernel.engines.tables.int16 import build_int16, find_int16_obstacle
from unkernel.engines.tables.prefix_trie import PrefixTrie, export_trie, read_limit, remove_trie
from unkernel.models import ConjunctionModel, KernelModel, LinearModel, Threshold
from unkernel.models.model_files import COMPILED, model_part
from unkernel.models.model_rows import check_width

if TYPE_CHECKING:
    from unkernel.engines.explain.contributions import Split
    from unkernel.engines.explain.explanation import Explanation, Heavy

Model = KernelModel | LinearModel | ConjunctionModel
_Value = TypeVar("_Value")
ENGINE = "engine."  # prefix of the tables in files
_MANY_SCORES = 1000  # models with more scores than this predict in batches
_MAX_SCORES_PER_BATCH = 1 << 24


def _check_probabilities(self: CompiledClassifier) -> None:
    if not self.decision.has_probabilities:
        raise AttributeError(
            "the model has no parameters of probabilities: train a log-linear model, or calibrate one "
            "(--calibrate of the command line, LIBSVM's -b 1), or wrap this classifier: "
            "CalibratedClassifierCV(FrozenEstimator(fast)).fit(X, y)"
        )


class CompiledClassifier(LinearWeights, CompiledEstimator):
    """Compiled classifier of rows: immutable and safe to use from many threads.

    :func:`unkernel.compile` and :func:`unkernel.load` return such classifiers. They have the methods of a
    scikit-learn classifier, and ``score_one`` and ``predict_one`` for single rows.

    All parameters are also attributes.

    Parameters
    ----------
    model : ConjunctionModel, KernelModel or LinearModel
        The model.
    tables : Tables, default=None
        The tables that ``compile`` made; models of weights need no tables.
    candidates : sequence of Candidate, default=()
        The engines that ``compile`` tried.
    cache : int, default=None
        Number of rows whose scores are cached; None disables the cache.

    See Also
    --------
    compile : Compile a model.
    unkernel.engines.RecordClassifier : Compiled classifier of raw records.
    TreeClassifier : Compiled classifier of trees.

    Examples
    --------
    >>> from unkernel import PolySVC, compile
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> fast = compile(PolySVC(C=10, gamma=1).fit(X, y))
    >>> fast.predict(X)
    array([0, 1, 1, 0])

    Predict one row, given as the list of its non-zero columns:

    >>> fast.predict_one([0])
    1
    >>> fast.score_one([0, 1]) < 0
    True
    """

    model: Model
    _parameter_names = ("model", "tables", "candidates", "cache")
    _unchecked_file: str | None = None  # the file of a model that has not been completely checked yet

    def __init__(
        self,
        model: Model,
        tables: Tables | None = None,
        candidates: Sequence[Candidate] = (),
        cache: int | None = None,
    ) -> None:
        self.model = model
        self.tables = tables
        self.candidates = candidates
        self.cache = cache

    # --- Properties -----------------------------------------------------------------------------------

    @property
    def n_features_in_(self) -> int:
        """Number of features of the training rows, if the model stores this number."""
        return self.model.n_features

    @property
    def chosen(self) -> Candidate | None:
        """The candidate that ``compile`` chose."""
        return next((candidate for candidate in self.candidates if candidate.chosen), None)

    @property
    def engine(self) -> str:
        """Name of the engine that computes the scores."""
        return self.chosen.engine if self.chosen else self._default_engine

    @cached_property
    def _default_engine(self) -> str:
        """Name of the engine if the classifier was not made by ``compile``."""
        if self.tables is not None:
            return INT16 if self.tables.layout == INT16 else "expanded"
        return INT16 if find_int16_obstacle(self.model) is None else "expanded"

    @property
    def exact(self) -> bool:
        """Whether the scores are exactly those of the model; false only for the engine ``"pruned"``."""
        return self.chosen.exact if self.chosen else True

    @property
    def nbytes(self) -> int:
        """Size of the compiled tables in memory, in bytes."""
        return int(self._engine.nbytes)

    @cached_property
    def _tables(self) -> Tables:
        """The tables of conjunctions, built on first use: an estimator that is only saved needs no tables."""
        if self.tables is not None and self.tables.layout != INT16:
            return self.tables
        from unkernel.engines.tables import builders

        if isinstance(self.model, LinearModel):
            return builders.build_linear(self.model)
        if isinstance(self.model, KernelModel):
            raise ValueError("a model of support vectors must be compiled by unkernel.compile")
        return builders.build_conjunctions(self.model, head=builders.choose_default_head(self.model))

    @property
    def _engine(self) -> Engine:
        engine: Engine = self._make_once("_made_engine", self._build_engine)
        return engine

    @property
    def trie(self) -> PrefixTrie | None:
        """The prefix trie, if ``compile(trie=...)`` kept one, otherwise None."""
        trie: PrefixTrie | None = self._make_once("_made_trie", self._make_trie)
        return trie

    def _build_engine(self) -> Engine:
        tables = build_int16(self.model, fits=self.chosen is None) if self.engine == INT16 else self._tables
        engine = tables.engine()
        check_cache(self.cache)
        return engine if self.cache is None else engine.cached(self.cache)

    def _make_trie(self) -> PrefixTrie | None:
        if self.tables is None:
            return None
        limit = read_limit(self.tables.arrays)
        return PrefixTrie(self._engine, limit, self._check_rows) if limit else None

    def _make_once(self, name: str, make: Callable[[], _Value]) -> _Value:
        """Return a value that is made on first use. All threads get the same value."""
        made: dict[str, _Value] = self.__dict__
        if name not in made:
            made.setdefault(name, make())  # setdefault is atomic: the value of the first thread is kept
        return made[name]

    @property
    def _checked_model(self) -> Model:
        """The model, after a check of all of its numbers; raises a ``FormatError`` for invalid numbers."""
        if self._unchecked_file is not None and isinstance(self.model, ConjunctionModel):
            self.model.check(self._unchecked_file)
            self._unchecked_file = None
        return self.model

    def check_model(self, file: str, *, largest: float = np.inf) -> CompiledClassifier:
        """Check all numbers of the model.

        Parameters
        ----------
        file : str
            Name of the file in error messages.
        largest : float, default=inf
            Larger models (in bytes) are checked only when they are first needed: to explain a score, to list
            weights, or to save or compile the model again.

        Returns
        -------
        CompiledClassifier
            The classifier itself.

        Raises
        ------
        FormatError
            If a number is invalid.
        """
        self._unchecked_file = file
        if self.model.nbytes <= largest:
            _ = self._checked_model
        return self

    def check_answers(self, file: str) -> None:
        """Compare the scores of the engine with the scores of the model on random rows.

        Approximate engines and engines with 16-bit weights are not compared.

        Parameters
        ----------
        file : str
            Name of the file in error messages.

        Raises
        ------
        FormatError
            If the scores differ.
        """
        from unkernel.engines.rows.table_check import check_answers

        if self.tables is not None and self.tables.layout != INT16 and self.exact:
            check_answers(self.to_model(), self._engine, file, np.random.default_rng())

    def validate(self) -> CompiledClassifier:
        """Build the engine now instead of at the first prediction.

        Returns
        -------
        CompiledClassifier
            The classifier itself.

        Raises
        ------
        ValueError
            If the tables are damaged.
        """
        _ = self._engine
        return self

    # --- Many rows ------------------------------------------------------------------------------------

    @lazy_for_collections
    def decision_function(self, X: ArrayLike, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        return self.decision.decide(self._raw_scores(X, n_jobs))

    @lazy_for_collections
    def predict(self, X: ArrayLike, *, n_jobs: int | None = None) -> NDArray[Any]:
        if self.model.n_scores > _MANY_SCORES:
            return self._predict_in_batches(self._check_rows(X), n_jobs)
        return self.decision.choose(self._raw_scores(X, n_jobs, until_decided=self.decision.chooses_largest))

    def _predict_in_batches(self, rows: CsrRows, n_jobs: int | None) -> NDArray[Any]:
        """Predict batch by batch, because the scores of all rows may not fit into memory."""
        step = max(1, _MAX_SCORES_PER_BATCH // self.model.n_scores)
        parts = [
            self.decision.choose(self.score_csr(rows[begin : begin + step], thread_count(n_jobs)))
            for begin in range(0, max(rows.shape[0], 1), step)
        ]
        return np.concatenate(parts)

    @available_if(_check_probabilities)
    @lazy_for_collections
    def predict_proba(self, X: ArrayLike, *, n_jobs: int | None = None) -> Any:
        """Predict the probability of each class, if the model has probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix, dask array, dask data frame} of shape (n_samples, n_features)
            The rows. If X is a Dask collection, the result is a lazy Dask array.
        n_jobs : int, default=None
            Number of threads; None means 1 and -1 means all processors.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or list of them
            The probabilities, in the order of ``classes_``. For several labels, one column per label;
            for several outputs, a list of one array per output, as in scikit-learn.
        """
        return self.decision.divide_probabilities(self.decision.probabilities(self._raw_scores(X, n_jobs)))

    def _raw_scores(
        self, X: ArrayLike, n_jobs: int | None, *, until_decided: bool = False
    ) -> NDArray[np.float64]:
        rows = self._check_rows(X)
        scores = self.score_csr(rows, thread_count(n_jobs), until_decided=until_decided)
        if self.trie is not None:
            self.trie.offer(rows)
        return scores

    def _check_rows(self, X: ArrayLike) -> CsrRows:
        """Return X as rows in canonical form with the model's number of columns."""
        self._check_names(X)
        rows = check_rows(X)
        check_width(rows, self.n_features_in_, self.model.fixed_width)
        return rows

    def _check_names(self, X: Any) -> None:
        """Check that a table, or a row of a table, has the column names of the training table."""
        training_names = self.model.origin.get("feature_names")
        is_row = getattr(X, "ndim", 2) == 1 and hasattr(X, "to_numpy")  # a Series of pandas
        given_names = getattr(X, "index" if is_row else "columns", None)
        if training_names is None or given_names is None:
            return
        if not all(isinstance(name, str) for name in given_names):
            return
        if list(given_names) != list(training_names):
            raise ValueError(
                "the columns of X do not have the names, in the order, that the model was trained with: "
                f"{', '.join(training_names[:5])}{', ...' if len(training_names) > 5 else ''}"
            )

    def score_csr(self, rows: CsrRows, threads: int, *, until_decided: bool = False) -> NDArray[np.float64]:
        """Compute the raw scores of rows in canonical form.

        Parameters
        ----------
        rows : CsrRows
            The rows.
        threads : int
            Number of threads.
        until_decided : bool, default=False
            Whether to stop as soon as the class is decided. If so, only the sign of a single score or the
            index of the largest score is correct.

        Returns
        -------
        ndarray of shape (n_samples, n_scores)
            The scores, all finite.
        """
        score = self._engine.score_until_decided if until_decided else self._engine.score
        scores = np.asarray(score(rows, threads))
        if not np.isfinite(scores).all():
            raise ValueError(
                "a score is not finite: the values of X are too large for the kernel; scale them"
            )
        return scores

    # --- One row --------------------------------------------------------------------------------------

    @cached_property
    def score_one(self) -> Callable[..., Any]:
        """Compute the decision function of one row: ``score_one(ids, values=None)``.

        ``ids`` lists the nonzero columns of the row, counted from 0, in any order. It is a list of int, or a
        buffer (NumPy array, ``array.array`` or bytes) of 32-bit or 64-bit integers, which is read without a
        copy. Columns that the model does not know are ignored. ``values`` lists the values of the columns; by
        default, all values are 1. A column that occurs twice counts once; with ``values``, its values are
        added up.

        The result is a float, or a list of floats if :meth:`decision_function` returns several scores per
        row.
        """
        return make_score_one(RowCalls(self._engine.one_row), self.decision)

    @cached_property
    def predict_one(self) -> Callable[..., Any]:
        """Predict the class of one row: ``predict_one(ids, values=None)``.

        The arguments are the same as for :attr:`score_one`. The result is the class as a Python object or,
        for regression models, the value. For several labels or outputs, it is a list, as a row of
        :meth:`predict`.
        """
        return make_predict_one(RowCalls(self._engine.one_row), self.decision)

    def worker(self) -> OneRowScorer:
        """Return a scorer of single rows with its own buffers, for use in one thread.

        Returns
        -------
        OneRowScorer
            The scorer.
        """
        return OneRowScorer(self._engine, self.decision)

    # --- Explanations ---------------------------------------------------------------------------------

    def _get_linear_model(self) -> Any:
        return self._checked_model

    def explain(self, row: Any, top: int | None = 10, *, of: Any = None, names: Any = None) -> Explanation:
        """Explain the score of one row by its features and conjunctions.

        Parameters
        ----------
        row : list of int, dict of int to float, or array or sparse matrix of shape (1, n_features)
            The row. A list of integers lists the columns with the value 1; a dict maps columns to values.
        top : int or None, default=10
            Number of contributions to list, largest first; None lists all.
        of : label, default=None
            The class whose score is explained. With None, the score of ``classes_[1]`` is explained if there
            are two classes; otherwise the predicted class is compared with the runner-up. For several labels,
            a label; None is the label with the largest score. For several outputs, the number of an output
            (None is 0), or a pair of this number and a class.
        names : sequence or mapping, default=None
            Names of the columns; by default, the names that the model stores.

        Returns
        -------
        Explanation
            The contributions; with ``rest`` and ``intercept`` they add up to the score.

        Raises
        ------
        ValueError
            If the engine is ``"pruned"``, whose scores are approximate.
        """
        from unkernel.engines.explain.explanation import read_row

        self._check_names(row)
        return self._explain_columns(*read_row(row, self._checked_model), top, of=of, names=names)

    def _explain_columns(
        self,
        columns: NDArray[np.int64],
        values: NDArray[np.float64],
        top: int | None,
        *,
        of: Any = None,
        names: Any = None,
    ) -> Explanation:
        """Explain the score of a row, given by distinct columns and their values."""
        from unkernel.engines.explain.explanation import explain

        if not self.exact:
            raise ValueError(
                "a pruned classifier answers approximately, so its contributions would not add up; explain "
                "with the exact model: unkernel.compile(fast.model)"
            )
        return explain(self._checked_model, (columns, values), self.split_scores, top, of=of, names=names)

    @cached_property
    def split_scores(self) -> Split:
        """A function that divides the scores of a row among its conjunctions.

        Its arguments are distinct columns of the row, and their values.
        """
        from unkernel.engines.explain.contributions import make_split

        return make_split(self._checked_model)

    def heaviest(self, top: int = 10) -> list[Heavy]:
        """List the features and conjunctions with the largest weights.

        Parameters
        ----------
        top : int, default=10
            Number of weights to list over all classes, largest absolute weight first.

        Returns
        -------
        list of Heavy
            The conjunctions, each with the names of its features, its weight and the class that it supports.
            For models of support vectors, only conjunctions in the tables are listed: "split" lacks those of
            rare features, and "pruned" lacks those with small weights.
        """
        from unkernel.engines.explain.explanation import list_heaviest

        tables = self.tables if isinstance(self.model, KernelModel) or not self.exact else None
        return list_heaviest(self._checked_model, tables, top)

    def heaviest_conjunctions(self, top: int) -> dict[str, Any]:
        """Return the conjunctions with the largest weights in the tables, as arrays.

        The result is empty for engines without conjunctions. Conjunctions of rare features that were not
        expanded are missing.

        Parameters
        ----------
        top : int
            Number of conjunctions to return.

        Returns
        -------
        dict
            ``counts``: the number of conjunctions of each size. ``columns`` and ``weights``: the conjunctions
            with the largest weights.
        """
        if self._tables.layout != CONJUNCTIONS:
            return {"counts": [0] * 5, "columns": np.empty((0, 4), np.int64), "weights": np.empty((0, 1))}
        return self._tables.heaviest_conjunctions(top)

    # --- The threshold --------------------------------------------------------------------------------

    def with_threshold(self, threshold: float | Threshold | None) -> CompiledClassifier:
        """Return a copy with another decision threshold, which is saved with the model.

        Parameters
        ----------
        threshold : float, Threshold or None
            The smallest probability of ``classes_[1]`` for which this class is predicted. A
            :class:`~unkernel.models.Threshold` applies to the other class, or to scores instead of
            probabilities. None removes the threshold.

        Returns
        -------
        CompiledClassifier
            A classifier that shares the model and the tables.

        Raises
        ------
        ValueError
            If the model does not have two classes with probabilities, or if the threshold is not between 0
            and 1.

        Examples
        --------
        >>> from unkernel import PolyLogisticRegression, compile
        >>> X, y = [[0], [1]], [0, 1]
        >>> fast = compile(PolyLogisticRegression(degree=1, C=10).fit(X, y))
        >>> fast.predict(X), fast.with_threshold(0.99).predict(X)
        (array([0, 1]), array([0, 0]))
        """
        return self._copy_with(model=self.model.with_threshold(threshold))

    def _copy_with(self, **changes: Any) -> CompiledClassifier:
        """Return a classifier with other parameters, and the current state of the trie."""
        tables = None if self.tables is None else self._add_trie(self.tables)
        parameters = {
            "model": self.model,
            "tables": tables,
            "candidates": self.candidates,
            "cache": self.cache,
        }
        classifier = CompiledClassifier(**(parameters | changes))
        classifier._unchecked_file = self._unchecked_file
        return classifier

    # --- The cache of scores --------------------------------------------------------------------------

    def with_cache(self, rows: int | None) -> CompiledClassifier:
        """Return this classifier with another cache of scores.

        A cached score is used if a row has the same columns and values; it equals the computed score to the
        last bit. Threads share the cache without locks. Files do not store the cache.

        Parameters
        ----------
        rows : int or None
            Number of rows to cache; None disables the cache.

        Returns
        -------
        CompiledClassifier
            A classifier that shares the model and the tables.
        """
        check_cache(rows)
        return self._copy_with(cache=rows)

    def cache_info(self) -> CacheInfo:
        """Return the statistics of the cache.

        Returns
        -------
        CacheInfo
            A named tuple with the fields hits, misses, maxsize and currsize.
        """
        return get_cache_info(self._engine)

    def cache_clear(self) -> None:
        """Empty the cache and reset its counters."""
        self._engine.clear_cache()

    # --- Files ----------------------------------------------------------------------------------------

    def to_container(self) -> tuple[str, dict[str, NDArray[Any]], dict[str, Any]]:
        if self.tables is None:
            return self.model.kind, *self.model.to_container()
        arrays, settings = model_part(self._checked_model)
        tables = self._add_trie(self.tables)
        arrays |= {ENGINE + name: array for name, array in tables.file_arrays.items()}
        settings |= {
            "tables": tables.to_json(),
            "candidates": [candidate.to_json() for candidate in self.candidates],
        }
        return COMPILED, arrays, settings

    def to_model(self) -> Model:
        return self._checked_model

    def _add_trie(self, tables: Tables) -> Tables:
        """Return the tables with the current state of the trie."""
        if self.trie is None:
            return tables
        return replace(tables, arrays=remove_trie(tables.arrays) | export_trie(self._engine, self.trie.limit))

    def __reduce__(self) -> tuple[Any, ...]:
        tables = None if self.tables is None else self._add_trie(self.tables)
        return type(self), (self._checked_model, tables, self.candidates, self.cache)

    def __repr__(self) -> str:
        approximate = "" if self.exact else ", approximate"
        classes = f", classes={len(self.classes_)}" if len(self.classes_) else ""
        if self.decision.outputs:
            classes = f", outputs={len(self.decision.outputs)}"
        return f"CompiledClassifier({self.model.kind} model{classes}, engine={self.engine!r}{approximate})"
