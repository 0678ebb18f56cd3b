"""The compiled classifier of records: a plan and a compiled classifier of rows, in one file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import RecordScorer
from unkernel.data.repr_html import ask
from unkernel.data.threads import thread_count
from unkernel.engines.classifier_files import make_classifier
from unkernel.engines.delegation import delegate, delegate_property
from unkernel.engines.estimator import CompiledEstimator, available_if, lazy_for_collections
from unkernel.engines.records.bound_records import BoundRecord
from unkernel.engines.records.single_record import RecordAnswers, check_probabilities
from unkernel.engines.rows.classifier import CompiledClassifier, Model
from unkernel.errors import FormatError
from unkernel.models import Decision, Threshold
from unkernel.models.saved_object import RestoredObject
from unkernel.records.column_split import Part, split
from unkernel.records.plan import Plan

if TYPE_CHECKING:
    from unkernel.engines.explain.explanation import Explanation
    from unkernel.engines.explain.importances import Importances

KIND = "records"  # the kind in the metadata of files
_PLAN = "plan."  # prefix of the plan's arrays in files
_ROWS = "rows."  # prefix of the classifier's arrays in files
_MAX_CACHED_SPLITS = 16


class RecordClassifier(RecordAnswers, CompiledEstimator, RestoredObject):
    """Compiled pipeline: an immutable classifier of raw records.

    :func:`unkernel.compile` returns such a classifier for a fitted pipeline, and :func:`unkernel.load` reads
    it from a file.

    All parameters are also attributes.

    Parameters
    ----------
    plan : Plan
        The encoding of records as rows.
    classifier : CompiledClassifier
        The classifier of the rows.

    See Also
    --------
    unkernel.compile : Compile a pipeline.
    unkernel.RecordEncoder : Encoder for pipelines.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from unkernel import PolySVC, RecordEncoder, compile
    >>> people = [{"job": job, "city": city} for job in ("clerk", "pilot") for city in ("Rome", "Oslo")]
    >>> encoder = RecordEncoder(min_count=1)
    >>> pipeline = make_pipeline(encoder, PolySVC(C=10, gamma=1)).fit(people, ["no", "yes", "yes", "no"])
    >>> fast = compile(pipeline)
    >>> fast.predict_one({"job": "clerk", "city": "Oslo"})
    'yes'
    """

    _parameter_names = ("plan", "classifier")
    _takes_rows = False

    def __init__(self, plan: Plan, classifier: CompiledClassifier) -> None:
        self.plan = plan
        self.classifier = classifier

    @property
    def _row_classifier(self) -> CompiledClassifier:
        return self.classifier

    # --- Properties -----------------------------------------------------------------------------------

    decision: Decision = delegate_property(
        "decision", "The rule that turns scores into predictions.", to="classifier"
    )

    @property
    def n_features_in_(self) -> int:
        """Number of columns of a record."""
        return len(self.plan.columns)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the columns of a record."""
        return np.array(list(self.plan.columns), dtype=object)

    engine: str = delegate_property("engine", "Name of the engine that computes the scores.", to="classifier")
    nbytes: int = delegate_property("nbytes", "Size of the compiled tables in bytes.", to="classifier")

    # --- Many records ---------------------------------------------------------------------------------

    @lazy_for_collections
    def decision_function(self, X: Any, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        return self.classifier.decision_function(self._encode(X, n_jobs), n_jobs=n_jobs)

    @lazy_for_collections
    def predict(self, X: Any, *, n_jobs: int | None = None) -> NDArray[Any]:
        return self.classifier.predict(self._encode(X, n_jobs), n_jobs=n_jobs)

    @available_if(check_probabilities)
    @lazy_for_collections
    def predict_proba(self, X: Any, *, n_jobs: int | None = None) -> Any:
        """Predict the probability of each class, if the model has probabilities.

        Parameters
        ----------
        X : DataFrame, Arrow table, list of dicts, dict of columns, or array of shape (n_records, n_columns)
            The records. For a Dask data frame, the result is a lazy Dask array.
        n_jobs : int, default=None
            Number of threads; None means 1 and -1 means all processors.

        Returns
        -------
        ndarray of shape (n_records, n_classes), or list of them
            The probabilities, in the order of ``classes_``. For several labels, one column per label;
            for several outputs, a list of one array per output, as in scikit-learn.
        """
        return self.classifier.predict_proba(self._encode(X, n_jobs), n_jobs=n_jobs)

    def transform(self, X: Any, *, n_jobs: int | None = None) -> Any:
        """Encode records as the rows that the classifier scores.

        Parameters
        ----------
        X : DataFrame, Arrow table, list of dicts, dict of columns, or array of shape (n_records, n_columns)
            The records.
        n_jobs : int, default=None
            Number of threads; None means 1 and -1 means all processors.

        Returns
        -------
        scipy.sparse.csr_matrix of shape (n_records, n_features)
            The rows.
        """
        return self._encode(X, n_jobs).to_scipy()

    def _encode(self, X: Any, n_jobs: int | None) -> Any:
        return self.plan.encode(X, thread_count(n_jobs))

    # --- One record -----------------------------------------------------------------------------------

    @cached_property
    def _scorer(self) -> RecordScorer:
        return RecordScorer(self.plan.native, self.classifier._engine)

    def bind(self, shared: Mapping[str, Any]) -> BoundRecord:
        """Fix some columns, in order to score many records that share these columns faster.

        Parameters
        ----------
        shared : dict
            The columns that all records share.

        Returns
        -------
        BoundRecord
            A scorer. Its methods ``score_one``, ``predict_one``, ``predict_proba_one`` and ``predict`` take
            the remaining columns. Its attribute ``sums_once`` names the work that is done only once.

        Examples
        --------
        >>> from sklearn.pipeline import make_pipeline
        >>> from unkernel import PolySVC, RecordEncoder, compile
        >>> people = [{"job": job, "city": city} for job in ("clerk", "pilot") for city in ("Rome", "Oslo")]
        >>> encoder = RecordEncoder(min_count=1)
        >>> fast = compile(make_pipeline(encoder, PolySVC(C=10, gamma=1)).fit(people, [0, 1, 1, 0]))
        >>> pilot = fast.bind({"job": "pilot"})
        >>> pilot.predict_one({"city": "Rome"}), pilot.predict_one({"city": "Oslo"})
        (1, 0)
        """
        return BoundRecord(self, shared)

    def with_threshold(self, threshold: float | Threshold | None) -> RecordClassifier:
        """Return a copy with another decision threshold, which is saved with the model.

        Parameters
        ----------
        threshold : float, Threshold or None
            The smallest probability of ``classes_[1]`` for which this class is predicted. A
            :class:`~unkernel.models.Threshold` applies to the other class, or to scores instead of
            probabilities. None removes the threshold.

        Returns
        -------
        RecordClassifier
            A classifier that shares the model and the tables.
        """
        return RecordClassifier(self.plan, self.classifier.with_threshold(threshold))

    def with_cache(self, rows: int | None) -> RecordClassifier:
        """Return this classifier with another cache of scores.

        Records that are encoded as the same row share a cache entry.

        Parameters
        ----------
        rows : int or None
            Number of rows to cache; None disables the cache.

        Returns
        -------
        RecordClassifier
            A classifier that shares the model and the tables.
        """
        return RecordClassifier(self.plan, self.classifier.with_cache(rows))

    cache_info = delegate(CompiledClassifier.cache_info, to="classifier")
    cache_clear = delegate(CompiledClassifier.cache_clear, to="classifier")

    @cached_property
    def _split_plan(self) -> Callable[[frozenset[str]], tuple[Part, Part] | None]:
        """A function that splits the plan by columns; its results are cached."""
        return lru_cache(maxsize=_MAX_CACHED_SPLITS)(partial(split, self.plan))

    # --- Explanations ---------------------------------------------------------------------------------

    def explain_one(self, record: Any, top: int | None = 10, *, of: Any = None) -> Explanation:
        """Explain the score of one record by its columns and their conjunctions.

        Parameters
        ----------
        record : dict, or list of one value per column
            The record.
        top : int or None, default=10
            Number of contributions to list, largest first; None lists all.
        of : label, default=None
            The class whose score is explained. With None, the score of ``classes_[1]`` is explained if there
            are two classes; otherwise the predicted class is compared with the runner-up. For several labels,
            a label; None is the label with the largest score. For several outputs, the number of an output
            (None is 0), or a pair of this number and a class.

        Returns
        -------
        Explanation
            The contributions, with the names and values of the record.
        """
        ids, values = self.plan.encode_one(record)
        return self.classifier._explain_columns(
            ids.astype(np.int64), values, top, of=of, names=self.plan.feature_names
        )

    explain = explain_one

    heaviest = delegate(CompiledClassifier.heaviest, to="classifier")

    def importances(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        max_records: int = 10_000,
        n_repeats: int = 5,
        n_jobs: int | None = None,
    ) -> Importances:
        """Compute the importances of columns and pairs of columns for given records.

        Parameters
        ----------
        X : DataFrame, Arrow table, list of dicts, dict of columns, or array of shape (n_records, n_columns)
            The records.
        y : array-like of shape (n_records,), default=None
            The correct labels or values. If they are given, the method also measures how much quality is lost
            when a column's values are shuffled among the records.
        qid : array-like of shape (n_records,), default=None
            Groups, for rankings.
        max_records : int, default=10_000
            Largest number of records to use. If there are more, a sample is drawn; it is always the same.
        n_repeats : int, default=5
            Number of shuffles of each column.
        n_jobs : int, default=None
            Number of threads; None means 1 and -1 means all processors.

        Returns
        -------
        Importances
            The shares of columns and pairs of columns in the variance of the scores, and the losses. The
            method ``shape`` returns the contribution of a column as a function of its values.

        See Also
        --------
        explain_one : Explain the score of one record.
        heaviest : List the largest weights.

        Examples
        --------
        >>> from sklearn.pipeline import make_pipeline
        >>> from unkernel import PolySVC, RecordEncoder, compile
        >>> people = [{"job": job, "city": city} for job in ("clerk", "pilot") for city in ("Rome", "Oslo")]
        >>> pipeline = make_pipeline(RecordEncoder(min_count=1), PolySVC(C=10, gamma=1))
        >>> fast = compile(pipeline.fit(people, [0, 1, 1, 1]))
        >>> sorted(fast.importances(people).columns)
        [('city',), ('job',), ('job', 'city')]
        """
        from unkernel.engines.explain import importances

        importances.check_importances(self.plan, self.decision)
        importances.check_count("max_records", max_records)
        importances.check_count("n_repeats", n_repeats)
        rows = self._encode(X, n_jobs)
        if not rows.shape[0]:
            raise ValueError("X is empty: importances are computed for given records")
        encoding = importances.encode_records(self.plan, X, rows, max_records)
        measure, losses = None, {}
        if y is not None:
            measure, losses = ask(
                "permutation_losses", self, rows, y, qid, n_repeats=n_repeats, max_records=max_records
            )
        return importances.compute_importances(
            self.classifier.model, self.decision, encoding, measure, losses
        )

    # --- Files ----------------------------------------------------------------------------------------

    def to_container(self) -> tuple[str, dict[str, NDArray[Any]], dict[str, Any]]:
        arrays, plan = self.plan.to_container(_PLAN)
        kind, rows, settings = self.classifier.to_container()
        settings = _remove_feature_names(settings)
        arrays |= {_ROWS + name: array for name, array in rows.items()}
        return KIND, arrays, {"plan": plan, "classifier": {"kind": kind, "settings": settings}}

    @classmethod
    def from_container(
        cls, name: str, arrays: dict[str, NDArray[Any]], settings: dict[str, Any]
    ) -> RecordClassifier:
        stored = settings.get("classifier")
        if not isinstance(stored, dict) or not isinstance(stored.get("settings"), dict):
            raise FormatError(name, 0, 0, "the model of records has no classifier")
        plan = Plan.from_container(
            name, {key: array for key, array in arrays.items() if key.startswith(_PLAN)}, settings.get("plan")
        )
        rows = {key.removeprefix(_ROWS): array for key, array in arrays.items() if key.startswith(_ROWS)}
        classifier = make_classifier(name, rows, stored["settings"], kind=stored.get("kind"))
        if not isinstance(classifier, CompiledClassifier) or not _is_wide_enough(plan, classifier.model):
            raise FormatError(name, 0, 0, "the encoding plan does not match the classifier")
        classifier.model.origin["feature_names"] = plan.feature_names
        return cls(plan, classifier)

    def check_model(self, file: str) -> RecordClassifier:
        """Check all numbers of the model of rows.

        Parameters
        ----------
        file : str
            Name of the file in error messages.

        Returns
        -------
        RecordClassifier
            The classifier itself.

        Raises
        ------
        FormatError
            If a number is invalid.
        """
        self.classifier.check_model(file)
        return self

    check_answers = delegate(CompiledClassifier.check_answers, to="classifier")
    to_model = delegate(CompiledClassifier.to_model, to="classifier")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.plan, self.classifier)

    def __repr__(self) -> str:
        return f"RecordClassifier({len(self.plan.columns)} columns, {self.classifier!r})"


def _is_wide_enough(plan: Plan, model: Model) -> bool:
    """Return whether rows of a plan have as many features as the model, or more if its width is not fixed."""
    if model.fixed_width:
        return plan.n_features == model.n_features
    return plan.n_features >= model.n_features


def _remove_feature_names(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a classifier without feature names, because the plan stores the names."""
    if "model" in settings:
        model = settings["model"]
        return settings | {"model": model | {"settings": _remove_feature_names(model["settings"])}}
    origin = {key: value for key, value in settings["origin"].items() if key != "feature_names"}
    return settings | {"origin": origin}
