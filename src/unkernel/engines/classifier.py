"""The compiled classifier of rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unkernel._core import Engine
from unkernel.data.rows.checking import checked_rows
from unkernel.data.rows.csr import CsrRows
from unkernel.data.threads import thread_count
from unkernel.engines.cache import CacheInfo, cache_info_of, check_cache
from unkernel.engines.candidates import Candidate
from unkernel.engines.estimator import CompiledEstimator, available_if
from unkernel.engines.int16 import int16_obstacle, int16_tables
from unkernel.engines.one_row import OneRowScorer, predict_by, score_by
from unkernel.engines.prefix_trie import PrefixTrie, limit_of, stored_trie, without_trie
from unkernel.engines.tables import CONJUNCTIONS, INT16, Tables
from unkernel.models import ConjunctionModel, KernelModel, LinearModel, container
from unkernel.models.load import COMPILED, model_part
from unkernel.models.rows import check_width

if TYPE_CHECKING:
    from unkernel.engines.explaining import Explanation, Heavy

Model = KernelModel | LinearModel | ConjunctionModel
_Made = TypeVar("_Made")
ENGINE = "engine."  # before the names of the tables in a file
_BY_LARGEST = ("binary", "one_class", "one_vs_rest")  # schemes where the sign or the largest score decides
_MANY_SCORES = 1000  # classes one against one: rows are then classified some at a time
_SCORES_AT_ONCE = 1 << 24


def _check_probabilities(self: CompiledClassifier) -> None:
    if self.decision.probability is None:
        raise AttributeError(
            "the model has no parameters of probabilities: train it with them (LIBSVM's -b 1), or wrap this "
            "classifier: CalibratedClassifierCV(FrozenEstimator(fast)).fit(X, y)"
        )


class CompiledClassifier(CompiledEstimator):
    """A model, ready to classify. Immutable, and safe to use from many threads.

    Made by :func:`unkernel.compile` and :func:`unkernel.load`.

    Parameters
    ----------
    model : ConjunctionModel, KernelModel or LinearModel
        What a learner's ``to_model()`` or ``read_model`` gives.
    tables : Tables, default=None
        What ``compile`` made of it. Models of weights can do without.
    candidates : sequence of Candidate
        The engines among which it was chosen.
    cache : int, default=None
        Remember the answers of at most this number of rows; None remembers none.

    Attributes
    ----------
    model : ConjunctionModel, KernelModel or LinearModel
    engine : str
        Which engine answers.
    exact : bool
        Whether it gives the model's own scores; False only for ``"pruned"``.
    candidates : sequence of Candidate
    classes_ : ndarray
    n_features_in_ : int
    nbytes : int
        Bytes that the compiled tables take.
    trie : PrefixTrie or None
        What frequent beginnings of rows add up to, where ``compile(trie=...)`` kept that.

    Examples
    --------
    >>> from unkernel import PolySVC
    >>> clf = PolySVC(degree=2).fit([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0])
    >>> fast = CompiledClassifier(clf.to_model())
    >>> fast.predict([[1, 0]])
    array([1])
    >>> fast.score_one([0, 1]) < 0  # the row that has columns 0 and 1
    True
    """

    model: Model
    _parameter_names = ("model", "tables", "candidates", "cache")
    _unchecked_file: str | None = None  # where the model is from, until all of it was looked at

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

    # --- What it is -----------------------------------------------------------------------------------

    @property
    def n_features_in_(self) -> int:
        """Columns of the training rows, as far as the model knows them."""
        return self.model.n_features

    @property
    def chosen(self) -> Candidate | None:
        """What was chosen among the candidates."""
        return next((candidate for candidate in self.candidates if candidate.chosen), None)

    @property
    def engine(self) -> str:
        """Which engine answers."""
        return self.chosen.engine if self.chosen else self._default_engine

    @cached_property
    def _default_engine(self) -> str:
        """The engine of a classifier that ``compile`` did not make."""
        if self.tables is not None:
            return INT16 if self.tables.layout == INT16 else "expanded"
        return INT16 if int16_obstacle(self.model) is None else "expanded"

    @property
    def exact(self) -> bool:
        """Whether the scores are the model's own."""
        return self.chosen.exact if self.chosen else True

    @property
    def nbytes(self) -> int:
        """Bytes of the compiled tables, and of what the engine builds from them in memory."""
        return int(self._engine.nbytes)

    @cached_property
    def _tables(self) -> Tables:
        """Tables that can list conjunctions; made when first needed: a fit that is only saved needs none."""
        if self.tables is not None and self.tables.layout != INT16:
            return self.tables
        from unkernel.engines import build

        if isinstance(self.model, LinearModel):
            return build.linear(self.model)
        if isinstance(self.model, KernelModel):
            raise ValueError("a model of support vectors is made ready by unkernel.compile")
        return build.conjunctions(self.model, head=build.default_head(self.model))

    @property
    def _engine(self) -> Engine:
        engine: Engine = self._once("_made_engine", self._make_engine)
        return engine

    @property
    def trie(self) -> PrefixTrie | None:
        """The prefix trie, where ``compile(trie=...)`` found that one pays, or was told to keep it."""
        trie: PrefixTrie | None = self._once("_made_trie", self._make_trie)
        return trie

    def _make_engine(self) -> Engine:
        tables = int16_tables(self.model, fits=self.chosen is None) if self.engine == INT16 else self._tables
        engine = tables.engine()
        check_cache(self.cache)
        return engine if self.cache is None else engine.cached(self.cache)

    def _make_trie(self) -> PrefixTrie | None:
        if self.tables is None:
            return None
        limit = limit_of(self.tables.arrays)
        return PrefixTrie(self._engine, limit, self._checked_rows) if limit else None

    def _once(self, name: str, make: Callable[[], _Made]) -> _Made:
        """Make a value when it is first needed. Threads that ask at the same time all get the same one."""
        made: dict[str, _Made] = self.__dict__
        return made[name] if name in made else made.setdefault(name, make())

    @property
    def _checked_model(self) -> Model:
        """The model, after a look at all of it where loading left that out; may raise a ``FormatError``."""
        if self._unchecked_file is not None and isinstance(self.model, ConjunctionModel):
            self.model.check(self._unchecked_file)
            self._unchecked_file = None
        return self.model

    def check_model(self, file: str, *, largest: float = np.inf) -> CompiledClassifier:
        """Look at all numbers of the model that `file` holds; a ``FormatError`` if they cannot be.

        Engines read tables of their own. A model of more than `largest` bytes is looked at when it is first
        needed: to explain, to list weights, to be saved or compiled again.
        """
        self._unchecked_file = file
        if self.model.nbytes <= largest:
            _ = self._checked_model
        return self

    def check_answers(self, file: str) -> None:
        """Compare engine and model on some rows; a ``FormatError`` of `file` if they differ.

        An engine that says that it is approximate has no scores to compare with, and one of 16-bit weights
        has no tables of its own.
        """
        from unkernel.engines.verifying import check_answers

        if self.tables is not None and self.tables.layout != INT16 and self.exact:
            check_answers(self.to_model(), self._engine, file, np.random.default_rng())

    def validate(self) -> CompiledClassifier:
        """Build the engine now; damaged tables raise a ``ValueError``."""
        _ = self._engine
        return self

    # --- Many rows ------------------------------------------------------------------------------------

    def decision_function(self, X: ArrayLike, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Scores of each row.

        One number per row for two classes; one per class; or, for models of LIBSVM with more classes, one per
        pair of classes, in LIBSVM's order. Those of a scikit-learn ``SVC`` have the shape that its
        ``decision_function_shape`` says.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Models from files that do not say how wide rows are take any number of columns.
        n_jobs : int, default=None
            Threads; None means one, -1 all cores. The scores do not depend on it.
        """
        return self.decision.decide(self._raw_scores(X, n_jobs))

    def predict(self, X: ArrayLike, *, n_jobs: int | None = None) -> NDArray[Any]:
        """The class of each row (for regression models: the value).

        Engines stop adding as soon as nothing that is left can change the class, so this may take less time
        than ``decision_function``; the classes are the same.
        """
        if self.model.n_scores > _MANY_SCORES:
            return self._predict_some_at_a_time(self._checked_rows(X), n_jobs)
        return self.decision.choose(
            self._raw_scores(X, n_jobs, until_decided=self.decision.scheme in _BY_LARGEST)
        )

    def _predict_some_at_a_time(self, rows: CsrRows, n_jobs: int | None) -> NDArray[Any]:
        """The classes of rows whose scores would not fit into memory together."""
        step = max(1, _SCORES_AT_ONCE // self.model.n_scores)
        parts = [
            self.decision.choose(self.score_csr(rows[begin : begin + step], thread_count(n_jobs)))
            for begin in range(0, max(rows.shape[0], 1), step)
        ]
        return np.concatenate(parts)

    @available_if(_check_probabilities)
    def predict_proba(self, X: ArrayLike, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """The probability of each class, where the model has parameters for them."""
        return self.decision.probabilities(self._raw_scores(X, n_jobs))

    def _raw_scores(
        self, X: ArrayLike, n_jobs: int | None, *, until_decided: bool = False
    ) -> NDArray[np.float64]:
        rows = self._checked_rows(X)
        scores = self.score_csr(rows, thread_count(n_jobs), until_decided=until_decided)
        if self.trie is not None:
            self.trie.offer(rows)
        return scores

    def _checked_rows(self, X: ArrayLike) -> CsrRows:
        """X as canonical rows, with the columns that the model's rows have."""
        self._check_names(X)
        rows = checked_rows(X)
        check_width(rows, self.n_features_in_, self.model.fixed_width)
        return rows

    def _check_names(self, X: Any) -> None:
        """Check that a table, or one of its rows, has the column names of training, in the same order."""
        trained = self.model.origin.get("feature_names")
        is_row = getattr(X, "ndim", 2) == 1 and hasattr(X, "to_numpy")  # a Series of pandas
        given = getattr(X, "index" if is_row else "columns", None)
        if trained is None or given is None or not all(isinstance(name, str) for name in given):
            return
        if list(given) != list(trained):
            raise ValueError(
                "the columns of X do not have the names, in the order, that the model was trained with: "
                f"{', '.join(trained[:5])}{', ...' if len(trained) > 5 else ''}"
            )

    def score_csr(self, rows: CsrRows, threads: int, *, until_decided: bool = False) -> NDArray[np.float64]:
        """The (rows, scores) of canonical rows, all finite.

        With ``until_decided``, only the sign of a single score and the largest of several are right.
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
        """``score_one(ids, values=None)``: the scores of one row, fast.

        Parameters
        ----------
        ids : list of int, or buffer of int32 or int64
            The columns that the row has, counted from 0, in any order; a numpy array, ``array.array`` or
            bytes that hold 32-bit ints are read in place. Columns that the model does not know are welcome;
            one that occurs twice counts once, unless there are values, which add up.
        values : sequence of float, default=None
            Theirs; all 1 by default.

        Returns
        -------
        float, or list of floats
            What ``decision_function`` says of the row.
        """
        return score_by(self._engine.one_row, self.decision)

    @cached_property
    def predict_one(self) -> Callable[..., Any]:
        """``predict_one(ids, values=None)``: the class of one row (for regression models: the value), fast.

        Takes what ``score_one`` takes, and gives what ``predict`` says of the row, as a number or a str of
        Python.
        """
        return predict_by(self._engine.one_row, self.decision)

    def worker(self) -> OneRowScorer:
        """A scorer of single rows with memory of its own, for loops in a thread."""
        return OneRowScorer(self._engine, self.decision)

    # --- Remembered answers ---------------------------------------------------------------------------

    def with_cache(self, rows: int | None) -> CompiledClassifier:
        """The same classifier, which remembers the answers of at most this number of rows; None: of none.

        Answers are found again for rows that are equal in all columns and values, and are the same to the
        last bit. Threads share them without waiting for each other. Files do not hold them.
        """
        check_cache(rows)
        tables = None if self.tables is None else self._grown_tables(self.tables)
        made = CompiledClassifier(self.model, tables, self.candidates, rows)
        made._unchecked_file = self._unchecked_file
        return made

    def cache_info(self) -> CacheInfo:
        """How many rows were found in the cache, and how many were not."""
        return cache_info_of(self._engine)

    def cache_clear(self) -> None:
        """Forget all answers, and count from 0."""
        self._engine.clear_cache()

    # --- Why ------------------------------------------------------------------------------------------

    def explain(self, row: Any, top: int | None = 10, *, of: Any = None, names: Any = None) -> Explanation:
        """The conjunctions that made the decision, with what each added to the score.

        Parameters
        ----------
        row : list of int, mapping of int to float, or array or sparse matrix of one row
            The columns that the row has, counted from 0, or the row itself.
        top : int, default=10
            How many to list, the largest in size first; None lists all.
        of : class, default=None
            Explain the score of this class. None compares the winner with the runner-up where there are
            more than two classes; the one score of two classes speaks for ``classes_[1]``.
        names : sequence or mapping, default=None
            A name for each column; None takes the names that the model holds.

        Returns
        -------
        Explanation
            Its contributions, what is not listed (``rest``) and the ``intercept`` add up to ``score``.
        """
        if not self.exact:
            raise ValueError(
                "a pruned classifier answers approximately, so its contributions would not add up; explain "
                "with the exact model: unkernel.compile(fast.model)"
            )
        from unkernel.engines.explaining import explain

        self._check_names(row)
        return explain(self._checked_model, row, top, of=of, names=names)

    def heaviest(self, top: int = 10) -> list[Heavy]:
        """The conjunctions with the largest weights, over all classes.

        Parameters
        ----------
        top : int, default=10
            How many to list, the largest in size first.

        Returns
        -------
        list of Heavy
            Each with the names of its features, its weight and the class that it speaks for. Where tables
            stand for support vectors, conjunctions that are not in them (those of rare features for
            ``"split"``, small ones for ``"pruned"``) are not listed.
        """
        from unkernel.engines.explaining import heaviest

        from_tables = isinstance(self.model, KernelModel) or not self.exact
        return heaviest(self._checked_model, self.tables if from_tables else None, top)

    def heaviest_conjunctions(self, top: int) -> dict[str, Any]:
        """The conjunctions with the largest weights in the tables, as arrays, and how many of each size.

        Conjunctions of rare features that an engine did not expand are not among them; engines that keep
        support vectors alone have none.
        """
        if self._tables.layout != CONJUNCTIONS:
            return {"counts": [0] * 5, "columns": np.empty((0, 4), np.int64), "weights": np.empty((0, 1))}
        return self._tables.heaviest_conjunctions(top)

    @property
    def coef_(self) -> NDArray[np.float64]:
        """One row of weights per score; only where the model is linear."""
        return self._linear_weights()[0]

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """What is added to each score; only where the model is linear."""
        return self._linear_weights()[1]

    def _linear_weights(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        from unkernel.engines.explaining import linear_weights

        weights = linear_weights(self._checked_model)
        if weights is None:
            raise AttributeError("the model is not linear, so it has no coef_; heaviest lists its weights")
        return weights

    # --- Files ----------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the compiled model to a ``.uk`` file, whole or not at all; ``unkernel.load`` maps it.

        A model that ``compile`` never saw is written as it is, without tables.
        """
        container.write(path, *self.to_container())

    def to_container(self) -> tuple[str, dict[str, NDArray[Any]], dict[str, Any]]:
        """What a file holds of it: the kind, arrays and settings."""
        if self.tables is None:
            return self.model.kind, *self.model.to_container()
        arrays, settings = model_part(self._checked_model)
        tables = self._grown_tables(self.tables)
        arrays |= {ENGINE + name: array for name, array in tables.stored_arrays.items()}
        settings |= {
            "tables": tables.to_json(),
            "candidates": [candidate.to_json() for candidate in self.candidates],
        }
        return COMPILED, arrays, settings

    def to_model(self) -> Model:
        """The model that this was compiled from."""
        return self._checked_model

    def _grown_tables(self, tables: Tables) -> Tables:
        """The tables, with the present state of the trie."""
        if self.trie is None:
            return tables
        return replace(
            tables, arrays=without_trie(tables.arrays) | stored_trie(self._engine, self.trie.limit)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        tables = None if self.tables is None else self._grown_tables(self.tables)
        return type(self), (self._checked_model, tables, self.candidates, self.cache)

    def __repr__(self) -> str:
        about = "" if self.exact else ", approximate"
        classes = f", classes={len(self.classes_)}" if len(self.classes_) else ""
        return f"CompiledClassifier({self.model.kind} model{classes}, engine={self.engine!r}{about})"
