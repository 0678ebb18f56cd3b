"""``TableEstimator``: choose a model for a table automatically."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping
from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, _fit_context
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from unkernel.data.frames import frame_of
from unkernel.data.threads import thread_count
from unkernel.engines import RecordClassifier, compile
from unkernel.learners.targets import compute_class_weights
from unkernel.records import RecordEncoder
from unkernel.selection.candidates import Family, list_families
from unkernel.selection.labels import check_labels, read_labels
from unkernel.selection.search import Deadline, EncodedTable, Trial, fit, scale_cost, search
from unkernel.selection.targets import TASKS, Task, check_classes, check_targets, check_variety, find_task
from unkernel.selection.updates import update_learner

_MIN_RECORDS = 10
_MIN_WORD_COUNT = 3  # otherwise rare words would make up most of the features


def _predicts_classes(estimator: Any) -> bool:
    return bool(getattr(estimator, "task_", estimator.task) != "numbers")


def _ignore(_: Trial) -> None:
    """Ignore a trial, because nobody wants reports."""


class TableEstimator(BaseEstimator):  # type: ignore[misc]
    """Choose a model for a table: encode the columns, compare models and keep the best one.

    The estimator examines the target and the columns. It compares a linear model with models of pairs of
    features, each with several values of ``C``, on held-out records. Then it fits the best model to all
    records. For comparison, the majority prediction is measured as well.

    Parameters
    ----------
    task : {"auto", "classes", "numbers", "labels"}, default="auto"
        Kind of prediction. With "auto", numbers with fractions and integers with more than 20 different
        values are predicted as numbers, and lists of labels, or several columns of 0 and 1, as several labels
        per record; all other targets are predicted as classes. scikit-learn treats the estimator as a
        classifier or a regressor if the task is set, or after a fit.
    kinds : dict, default=None
        The kinds of some columns, as for :class:`RecordEncoder`; the kinds of all others are inferred.
    min_count : int, default=None
        Smallest number of records in which a category or word must occur to get its own feature. None means
        1, or 3 if there is a column of texts.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, in training and in the loss that compares models; "balanced" gives all classes
        the same total weight. The probabilities then refer to a table in which each record occurs as often as
        its weight says. If mistakes have different costs, choose a threshold instead:
        :meth:`unkernel.engines.RecordClassifier.with_threshold`.
    max_seconds : float, default=None
        Time after which no further model is tried. The time to fit the best model to all records is extra.
        With None, the result depends only on the data.
    updatable : bool, default=True
        Whether the model keeps what :meth:`update` needs: one more number per weight.
    n_jobs : int, default=None
        Number of threads; None means 1 and -1 means all processors. The result does not depend on it.
    random_state : int, default=0
        Seed for choosing the held-out records.
    verbose : int, default=0
        1 prints a line for each measured model.

    Attributes
    ----------
    task_ : {"classes", "numbers", "labels"}
        Kind of prediction.
    classes_ : ndarray of shape (n_classes,)
        The class labels, if classes or labels are predicted.
    trials_ : list of Trial
        The measured models, with their losses on held-out records.
    best_ : Trial
        The chosen model.
    pipeline_ : sklearn.pipeline.Pipeline
        The encoder and the chosen learner, fitted to all records. :func:`unkernel.compile` accepts this
        pipeline, and also the estimator.
    classifier_ : RecordClassifier
        The compiled pipeline, which computes the predictions.
    seconds_ : float
        Elapsed time of the search and the final fit.

    See Also
    --------
    RecordEncoder : Encode records as rows of features.
    PolyLogisticRegression : Log-linear models over conjunctions of features.
    PolyRegressor : Regression on conjunctions of features.

    Examples
    --------
    >>> from unkernel import TableEstimator
    >>> people = [{"job": job, "age": age} for job in ("clerk", "pilot") for age in range(20, 60)]
    >>> income = ["high" if (one["job"] == "pilot") == (27 < one["age"] < 45) else "low" for one in people]
    >>> estimator = TableEstimator().fit(people, income)
    >>> estimator.predict([{"job": "pilot", "age": 30}, {"job": "clerk", "age": 30}]).tolist()
    ['high', 'low']
    >>> estimator.task_, estimator.classes_.tolist()
    ('classes', ['high', 'low'])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "task": [StrOptions(set(TASKS))],
        "kinds": [Mapping, None],
        "min_count": [Interval(Integral, 1, None, closed="left"), None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "max_seconds": [Interval(Real, 0, None, closed="neither"), None],
        "updatable": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": [Interval(Integral, 0, 2**32 - 1, closed="both")],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        task: str = "auto",
        kinds: Mapping[str, str] | None = None,
        min_count: int | None = None,
        class_weight: dict[Any, float] | str | None = None,
        max_seconds: float | None = None,
        updatable: bool = True,
        n_jobs: int | None = None,
        random_state: int = 0,
        verbose: int = 0,
    ) -> None:
        self.task = task
        self.kinds = kinds
        self.min_count = min_count
        self.class_weight = class_weight
        self.max_seconds = max_seconds
        self.updatable = updatable
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # --- Training -------------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any) -> Self:
        """Compare models, and fit the best one to all records.

        Parameters
        ----------
        X : DataFrame, Arrow table, list of dicts, dict of columns, or array of shape (n_records, n_columns)
            Training records.
        y : array-like of shape (n_records,) or (n_records, n_labels), or list of lists of labels
            The targets.

        Returns
        -------
        TableEstimator
            The fitted estimator itself.
        """
        return self.fit_reporting(X, y, print if self.verbose else _ignore)

    def fit_reporting(self, X: Any, y: Any, on_trial: Callable[[Trial], object]) -> Self:
        """Fit, and report each model as soon as it has been measured.

        Parameters
        ----------
        X : DataFrame, Arrow table, list of dicts, dict of columns, or array of shape (n_records, n_columns)
            Training records.
        y : array-like of shape (n_records,) or (n_records, n_labels), or list of lists of labels
            The targets.
        on_trial : callable
            Called with each :class:`~unkernel.selection.Trial`.

        Returns
        -------
        TableEstimator
            The fitted estimator itself.
        """
        start = time.perf_counter()
        deadline = Deadline(self.max_seconds)
        targets, names = self._read_targets(y)
        weights = self._compute_class_weights(targets)
        encoders, table = self._encode(X, targets, weights)
        self.trials_ = search(
            table,
            list_families(self.task_),
            deadline,
            seed=self.random_state,
            n_jobs=self.n_jobs,
            on_trial=on_trial,
        )
        if deadline.has_ended:
            warnings.warn(
                f"the time limit ended the search after {len(self.trials_)} models", UserWarning, stacklevel=3
            )
        # Never choose the majority prediction: if the data have no signal, a model has almost no weights.
        self.best_ = min(self.trials_[1:], key=lambda trial: trial.loss)
        self._set_pipeline(self._fit_best(encoders, table, names))
        if self.task_ != "numbers":
            self.classes_ = self.classifier_.classes_
        self.n_features_in_ = self.classifier_.n_features_in_
        self.seconds_ = time.perf_counter() - start
        return self

    def _read_targets(self, y: Any) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Choose the task; return the targets, and the names of the labels if records have several."""
        labels = read_labels(y) if self.task in ("auto", "labels") else None
        if labels is not None:
            check_labels(labels)
            self.task_: Task = "labels"
            return labels.indicator, labels.names
        if self.task == "labels":
            raise ValueError("y must have a list of labels, or a row of 0 and 1, for each record")
        targets = check_targets(y, self.task)
        check_variety(targets)
        self.task_ = find_task(targets) if self.task == "auto" else self.task  # type: ignore[assignment]
        return targets, None

    def _set_pipeline(self, pipeline: Pipeline) -> None:
        self.pipeline_ = pipeline
        compiled = compile(pipeline, n_jobs=self.n_jobs)
        assert isinstance(compiled, RecordClassifier)  # the source is a pipeline
        self.classifier_ = compiled

    def update(self, X: Any, y: Any, *, forget: float = 0.0) -> Self:
        """Update the model with new records, without those that it was fitted to.

        The kind of model, C and the intervals of numbers stay. New categories and words get features; new
        classes need a new fit. :meth:`PolyLogisticRegression.update` describes the problem that is solved.

        Parameters
        ----------
        X : DataFrame, Arrow table, list of dicts, dict of columns, or array of shape (n_records, n_columns)
            The new records.
        y : array-like of shape (n_records,)
            Their targets.
        forget : float, default=0.0
            Share of the old records to forget, from 0 to 1. With 0, old and new records count equally.

        Returns
        -------
        TableEstimator
            The updated estimator itself.
        """
        check_is_fitted(self, "classifier_")
        if self.task_ == "labels":
            raise ValueError("a model of several labels cannot be updated; fit it again")
        encoder, learner = (step for _, step in self.pipeline_.steps)
        targets = check_targets(y, self.task_)
        encoder = copy(encoder)
        records = encoder.check_records(X)
        encoder.plan_, learner = update_learner(
            encoder.plan_,
            learner,
            records,
            targets,
            forget=forget,
            min_count=encoder.min_count,
            threads=thread_count(self.n_jobs),
        )
        self._set_pipeline(Pipeline([("encoder", encoder), ("learner", learner)]))
        return self

    def _compute_class_weights(self, y: NDArray[Any]) -> dict[Any, float] | None:
        """Return the weight of each class; None for equal weights."""
        if self.class_weight is None:
            return None
        if self.task_ != "classes":
            raise ValueError(f"class_weight is for classes, and the target is predicted as {self.task_}")
        classes, codes = np.unique(y, return_inverse=True)
        factors = compute_class_weights(self.class_weight, classes, codes.astype(np.int32), None)
        return dict(zip(classes.tolist(), factors, strict=True))

    def _encode(
        self, X: Any, y: NDArray[Any], class_weight: dict[Any, float] | None
    ) -> tuple[dict[bool, RecordEncoder], EncodedTable]:
        """Fit two encoders: numbers become intervals (key False) or are scaled (True); encode X with both."""
        divide = RecordEncoder(kinds=self.kinds, min_count=self.min_count or 1, n_jobs=self.n_jobs)
        divided = divide.fit_transform(X, y)
        if self.min_count is None and "text" in divide.kinds_.values():
            divided = divide.set_params(min_count=_MIN_WORD_COUNT).fit_transform(X, y)
        if divided.shape[0] != len(y):
            raise ValueError(f"X has {divided.shape[0]} records, and y has {len(y)} targets")
        if self.task_ == "classes":
            check_classes(y)
        if divided.shape[0] < _MIN_RECORDS:
            raise ValueError(f"{divided.shape[0]} records are too few: comparing models needs {_MIN_RECORDS}")
        scaled_kinds = {name: "number" if kind == "binned" else kind for name, kind in divide.kinds_.items()}
        scale = RecordEncoder(kinds=scaled_kinds, min_count=divide.min_count, n_jobs=self.n_jobs)
        table = EncodedTable(self.task_, divided, scale.fit_transform(X, y), y, class_weight)
        return {False: divide, True: scale}, table

    def _fit_best(
        self, encoders: dict[bool, RecordEncoder], table: EncodedTable, names: NDArray[Any] | None
    ) -> Pipeline:
        family = self.best_.family
        assert isinstance(family, Family)
        C = scale_cost(self.best_, len(table.y))
        options = {"class_weight": self.class_weight} if self.task_ == "classes" else {}
        is_updatable = self.updatable and self.task_ != "labels"
        learner = family.make(C=C, n_jobs=self.n_jobs, random_state=0, updatable=is_updatable, **options)
        if names is not None:
            learner = OneVsRestClassifier(learner)
        fit(learner, table.rows_for(family), table.y)
        if names is not None:
            learner.classes_ = names  # instead of the numbers of the columns
        return Pipeline([("encoder", encoders[family.scales_numbers]), ("learner", learner)])

    # --- Answers --------------------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict classes or numbers.

        Parameters
        ----------
        X : DataFrame, Arrow table, list of dicts, dict of columns, or array of shape (n_records, n_columns)
            The records.

        Returns
        -------
        ndarray of shape (n_records,) or (n_records, n_labels)
            The predictions. For several labels, 1 if a record has a label and 0 otherwise.
        """
        check_is_fitted(self, "classifier_")
        return self.classifier_.predict(X)

    @available_if(_predicts_classes)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the probability of each class.

        Parameters
        ----------
        X : DataFrame, Arrow table, list of dicts, dict of columns, or array of shape (n_records, n_columns)
            The records.

        Returns
        -------
        ndarray of shape (n_records, n_classes)
            The probabilities, in the order of ``classes_``; for several labels, the probability of each.
        """
        check_is_fitted(self, "classifier_")
        probabilities: NDArray[np.float64] = self.classifier_.predict_proba(X)
        return probabilities

    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy of predicted classes, or R squared of predicted numbers.

        For several labels, the result is the share of records whose labels are all correct.

        Parameters
        ----------
        X : DataFrame, Arrow table, list of dicts, dict of columns, or array of shape (n_records, n_columns)
            The records.
        y : array-like of shape (n_records,)
            The targets.

        Returns
        -------
        float
            The score.
        """
        predicted = self.predict(X)
        if self.task_ == "labels":
            labels = read_labels(y, self.classes_)
            if labels is None or labels.indicator.shape != predicted.shape:
                raise ValueError("y must have a list of labels, or a row of 0 and 1, for each record")
            return float((predicted == labels.indicator).all(axis=1).mean())
        y = np.asarray(y)
        if self.task_ == "classes":
            return float(np.mean(predicted == y))
        return float(1 - np.sum((y - predicted) ** 2) / np.sum((y - np.mean(y)) ** 2))

    def to_frame(self) -> Any:
        """Return the measured models as a pandas DataFrame.

        Returns
        -------
        DataFrame
            One row per model: its name, ``C``, loss on held-out records and CPU seconds.
        """
        check_is_fitted(self, "trials_")
        rows = [
            {"model": trial.name, "C": trial.C, "loss": trial.loss, "seconds": trial.seconds}
            for trial in self.trials_
        ]
        return frame_of(rows)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the compiled model; :func:`unkernel.load` and all commands can read it.

        Parameters
        ----------
        path : str or path
            The file.
        """
        check_is_fitted(self, "classifier_")
        self.classifier_.save(path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        task = getattr(self, "task_", self.task)
        if task == "classes":
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        elif task == "labels":
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags(multi_label=True)
            tags.target_tags.multi_output = True
        elif task == "numbers":
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether the estimator has been fitted."""
        return hasattr(self, "classifier_")
