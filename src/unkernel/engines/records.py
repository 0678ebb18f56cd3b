"""The compiled classifier of records: a plan and a compiled classifier of rows, in one file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import RecordScorer
from unkernel.data.threads import thread_count
from unkernel.engines.cache import CacheInfo
from unkernel.engines.classifier import CompiledClassifier, Model
from unkernel.engines.estimator import CompiledEstimator, available_if
from unkernel.engines.loading import classifier_from
from unkernel.errors import FormatError
from unkernel.models import Decision, container
from unkernel.records.plan import Plan
from unkernel.records.splitting import Part, split

if TYPE_CHECKING:
    from unkernel.engines.binding import BoundRecord
    from unkernel.engines.explaining import Explanation, Heavy

KIND = "records"  # of such files
_PLAN = "plan."  # before the names of the plan's arrays in a file
_ROWS = "rows."  # before the names of the classifier's arrays
_MOST_DIVISIONS = 16  # of a plan, that are kept


def _check_probabilities(self: RecordClassifier) -> None:
    _ = self.classifier.predict_proba  # which knows why there are none


class RecordClassifier(CompiledEstimator):
    """A pipeline, ready to classify raw records. Immutable.

    Made by :func:`unkernel.compile` from a fitted pipeline, and by :func:`unkernel.load`.

    Parameters
    ----------
    plan : Plan
        How a record becomes a row.
    classifier : CompiledClassifier
        What classifies the row.

    Attributes
    ----------
    plan : Plan
    classifier : CompiledClassifier
    classes_ : ndarray
    n_features_in_ : int
        The number of columns of records.
    feature_names_in_ : ndarray of str
        Their names.
    """

    _parameter_names = ("plan", "classifier")
    _takes_rows = False

    def __init__(self, plan: Plan, classifier: CompiledClassifier) -> None:
        self.plan = plan
        self.classifier = classifier

    # --- What it is -----------------------------------------------------------------------------------

    @property
    def decision(self) -> Decision:
        """How scores become answers."""
        return self.classifier.decision

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes."""
        return self.classifier.classes_

    @property
    def n_features_in_(self) -> int:
        """The number of columns of records."""
        return len(self.plan.columns)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of the columns of records."""
        return np.array(list(self.plan.columns), dtype=object)

    @property
    def engine(self) -> str:
        """Which engine answers."""
        return self.classifier.engine

    @property
    def nbytes(self) -> int:
        """Bytes of the compiled tables."""
        return self.classifier.nbytes

    # --- Many records ---------------------------------------------------------------------------------

    def decision_function(self, X: Any, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """The scores of each record, as the classifier of rows gives them.

        Parameters
        ----------
        X : frame, list of dicts, dict of columns, or array of two dimensions
        n_jobs : int, default=None
            Threads; None means one, -1 all cores.
        """
        return self.classifier.decision_function(self._rows(X, n_jobs), n_jobs=n_jobs)

    def predict(self, X: Any, *, n_jobs: int | None = None) -> NDArray[Any]:
        """The class of each record (for regression models: the value)."""
        return self.classifier.predict(self._rows(X, n_jobs), n_jobs=n_jobs)

    @available_if(_check_probabilities)
    def predict_proba(self, X: Any, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """The probability of each class for each record, where the model has parameters for them."""
        found: NDArray[np.float64] = self.classifier.predict_proba(self._rows(X, n_jobs), n_jobs=n_jobs)
        return found

    def transform(self, X: Any, *, n_jobs: int | None = None) -> Any:
        """The rows that the classifier is given, as a ``scipy.sparse.csr_matrix``."""
        return self._rows(X, n_jobs).to_scipy()

    def _rows(self, X: Any, n_jobs: int | None) -> Any:
        return self.plan.encode(X, thread_count(n_jobs))

    # --- One record -----------------------------------------------------------------------------------

    @cached_property
    def _scorer(self) -> RecordScorer:
        return RecordScorer(self.plan.native, self.classifier._engine)

    @cached_property
    def score_one(self) -> Callable[[Any], Any]:
        """``score_one(record)``: what ``decision_function`` says of one record, fast.

        A record is a dict, or a list of one value per column. Columns that the model does not know are
        ignored, or an error, as ``compile`` was told by `unknown_keys`.
        """
        return self._score_by(self._scorer)

    @cached_property
    def predict_one(self) -> Callable[[Any], Any]:
        """``predict_one(record)``: the class of one record, fast."""
        return self._predict_by(self._scorer)

    def _score_by(self, scorer: Any) -> Callable[[Any], Any]:
        score = scorer.score
        decision = self.decision
        if decision.decides_by_scores:
            found: Callable[[Any], Any] = score
            return found
        if decision.scheme == "one_vs_one":
            sums, count = scorer.sum_votes, len(self.classes_)
            return lambda record: sums(record, count)
        return lambda record: decision.decide(np.array([score(record)]).reshape(1, -1))[0].tolist()

    def _predict_by(self, scorer: Any) -> Callable[[Any], Any]:
        decision = self.decision
        if decision.scheme in ("binary", "one_vs_rest"):
            choose = scorer.choose
            classes = self.classes_.tolist()
            zero = bool(decision.zero_is_positive)
            return lambda record: classes[choose(record, zero)]
        if decision.scheme == "one_vs_one":
            by_pairs = scorer.choose_by_pairs
            classes, by_sums = self.classes_.tolist(), decision.breaks_ties
            return lambda record: classes[by_pairs(record, len(classes), by_sums)]
        score = scorer.score
        return lambda record: decision.choose(np.atleast_2d(np.asarray(score(record)))).tolist()[0]

    def bind(self, shared: Mapping[str, Any]) -> BoundRecord:
        """Sum once what some columns contribute, to score many records that share them.

        Parameters
        ----------
        shared : dict
            Columns that all records have in common.

        Returns
        -------
        BoundRecord
            Its ``score_one``, ``predict_one``, ``predict_proba_one`` and ``predict`` take the other columns.
            ``sums_once`` says what is summed.

        Examples
        --------
        >>> at_home = fast.bind({"user": "ann", "hour": 20})  # doctest: +SKIP
        >>> at_home.score_one({"film": "Ran", "price": 3})  # doctest: +SKIP
        """
        from unkernel.engines.binding import BoundRecord

        return BoundRecord(self, shared)

    def with_cache(self, rows: int | None) -> RecordClassifier:
        """The same classifier, which remembers the answers of at most this number of rows; None: of none.

        Records that become the same row have the same answer.
        """
        return RecordClassifier(self.plan, self.classifier.with_cache(rows))

    def cache_info(self) -> CacheInfo:
        """How many rows were found in the cache, and how many were not."""
        return self.classifier.cache_info()

    def cache_clear(self) -> None:
        """Forget all answers, and count from 0."""
        self.classifier.cache_clear()

    @cached_property
    def _parts_of_plan(self) -> Callable[[frozenset[str]], tuple[Part, Part] | None]:
        """The plan, divided by the names of shared columns: requests mostly bind the same ones."""
        return lru_cache(maxsize=_MOST_DIVISIONS)(partial(split, self.plan))

    @available_if(_check_probabilities)
    def predict_proba_one(self, record: Any) -> list[float]:
        """The probability of each class for one record."""
        scores = np.array([self._scorer.score(record)], dtype=np.float64).reshape(1, -1)
        probabilities: list[float] = self.decision.probabilities(scores)[0].tolist()
        return probabilities

    # --- Why ------------------------------------------------------------------------------------------

    def explain_one(self, record: Any, top: int | None = 10, *, of: Any = None) -> Explanation:
        """What decided, in the names and values of the record.

        Parameters
        ----------
        record : dict, or list of one value per column
        top : int, default=10
            How many conjunctions to list, the largest in size first; None lists all.
        of : class, default=None
            Explain the score of this class; None compares the winner with the runner-up.
        """
        ids, values = self.plan.encode_one(record)
        row = dict(zip(ids.tolist(), values.tolist(), strict=True))
        return self.classifier.explain(row, top, of=of, names=self.plan.feature_names)

    explain = explain_one

    def heaviest(self, top: int = 10) -> list[Heavy]:
        """The conjunctions with the largest weights, over all classes."""
        return self.classifier.heaviest(top)

    # --- Files ----------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write plan and classifier to one ``.uk`` file, whole or not at all."""
        container.write(path, *self.to_container())

    def to_container(self) -> tuple[str, dict[str, NDArray[Any]], dict[str, Any]]:
        """What a file holds of it: the kind, arrays and settings."""
        arrays, plan = self.plan.to_container(_PLAN)
        kind, rows, settings = self.classifier.to_container()
        settings = _without_names(settings)
        arrays |= {_ROWS + name: array for name, array in rows.items()}
        return KIND, arrays, {"plan": plan, "classifier": {"kind": kind, "settings": settings}}

    @classmethod
    def from_container(
        cls, name: str, arrays: dict[str, NDArray[Any]], settings: dict[str, Any]
    ) -> RecordClassifier:
        """Check what the file `name` holds and make a classifier of it."""
        inside = settings.get("classifier")
        if not isinstance(inside, dict) or not isinstance(inside.get("settings"), dict):
            raise FormatError(name, 0, 0, "the model of records has no classifier")
        plan = Plan.from_container(
            name, {key: array for key, array in arrays.items() if key.startswith(_PLAN)}, settings.get("plan")
        )
        rows = {key.removeprefix(_ROWS): array for key, array in arrays.items() if key.startswith(_ROWS)}
        classifier = classifier_from(name, rows, inside["settings"], kind=inside.get("kind"))
        if not isinstance(classifier, CompiledClassifier) or not _fit(plan, classifier.model):
            raise FormatError(name, 0, 0, "the plan does not fit the classifier")
        classifier.model.origin["feature_names"] = plan.feature_names
        return cls(plan, classifier)

    def check_model(self, file: str) -> RecordClassifier:
        """Look at all numbers of the model of rows; a ``FormatError`` of `file` if they cannot be."""
        self.classifier.check_model(file)
        return self

    def check_answers(self, file: str) -> None:
        """Compare engine and model on some rows; a ``FormatError`` of `file` if they differ."""
        self.classifier.check_answers(file)

    def to_model(self) -> Any:
        """The model of rows inside."""
        return self.classifier.to_model()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.plan, self.classifier)

    def __repr__(self) -> str:
        return f"RecordClassifier({len(self.plan.columns)} columns, {self.classifier!r})"


def _fit(plan: Plan, model: Model) -> bool:
    """Whether the rows of a plan are as wide as those that the model was trained on, as far as it knows."""
    known = model.n_features
    return plan.n_features == known if model.fixed_width else plan.n_features >= known


def _without_names(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a classifier, without the names of its features: the plan has them."""
    if "model" in settings:
        model = settings["model"]
        return settings | {"model": model | {"settings": _without_names(model["settings"])}}
    origin = {key: value for key, value in settings["origin"].items() if key != "feature_names"}
    return settings | {"origin": origin}
