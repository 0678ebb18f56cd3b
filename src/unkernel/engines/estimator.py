"""Base class of compiled classifiers: scikit-learn estimators that do not import scikit-learn.

Compiled models may be loaded on machines without scikit-learn. scikit-learn's tools look for methods and tags
of an estimator, not for a base class. The methods here suffice for ``is_classifier``, ``check_is_fitted``,
``clone``, pipelines, scorers and ``CalibratedClassifierCV(FrozenEstimator(...))``.
"""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Callable
from types import MethodType
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unkernel.data import repr_html
from unkernel.data.files import name_of
from unkernel.data.repr_html import HtmlRepr, Reportable
from unkernel.errors import FormatError
from unkernel.models import container, registry
from unkernel.models.decision import Decision
from unkernel.models.saved_object import SavedObject
from unkernel.models.several_outputs import MULTI_LABEL, MULTI_OUTPUT

_TYPES = {"one_class": "outlier_detector"}  # all other schemes without numbers are classifiers


class CompiledEstimator(SavedObject, Reportable, HtmlRepr):
    """An immutable model that predicts."""

    _parameter_names: ClassVar[tuple[str, ...]]  # names of the constructor's parameters
    _takes_rows: ClassVar[bool] = True  # False if examples are records or trees instead of rows

    model: Any
    mapped_file: container.MappedFile | None = None  # the mapped file that contains the model

    @property
    def decision(self) -> Decision:
        """The rule that turns scores into predictions."""
        decision: Decision = self.model.decision
        return decision

    @property
    def classes_(self) -> Any:
        """The class labels, in the order of the model; for several outputs of classes, a list of them."""
        decision = self.decision
        if decision.scheme == MULTI_OUTPUT and not decision.predicts_numbers:
            return [output.classes for output in decision.outputs]
        return decision.classes

    def decision_function(self, X: Any, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Compute the decision function of each example.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, list of dicts, dict of columns, list of trees, Forest}
            The rows, records or trees to score. If the model comes from a file that does not store the number
            of features, rows may have any number of columns. If X is a Dask collection, the result is a lazy
            Dask array.
        n_jobs : int, default=None
            Number of threads; None means 1 and -1 means all processors. The scores do not depend on it.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            One score per example for two classes, and one per class for more classes. Models of LIBSVM with
            more than two classes have one score per pair of classes, in LIBSVM's order. For models of
            scikit-learn's ``SVC``, ``decision_function_shape`` decides. Several labels have one score each;
            the scores of several outputs follow each other.
        """
        raise NotImplementedError

    def predict(self, X: Any, *, n_jobs: int | None = None) -> NDArray[Any]:
        """Predict the class of each example, or its value for regression models.

        Engines of rows stop as soon as the remaining terms cannot change the class. This method may therefore
        be faster than :meth:`decision_function`; the result is the same.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, list of dicts, dict of columns, list of trees, Forest}
            The rows, records or trees. If X is a Dask collection, the result is a lazy Dask array.
        n_jobs : int, default=None
            Number of threads; None means 1 and -1 means all processors.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            The predictions. For several labels, 1 if an example has the label and 0 otherwise; for several
            outputs, one column per output.
        """
        raise NotImplementedError

    def to_model(self) -> Any:
        """Return the model that was compiled; for a pipeline, the model of its last step.

        Returns
        -------
        ConjunctionModel, KernelModel, LinearModel or TreeModel
            The model.
        """
        return self.model

    @property
    def _estimator_type(self) -> str:
        return (
            "regressor" if self.decision.predicts_numbers else _TYPES.get(self.decision.scheme, "classifier")
        )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the constructor, as scikit-learn requires.

        Parameters
        ----------
        deep : bool, default=True
            Has no effect.

        Returns
        -------
        dict
            The parameters by name.
        """
        return {name: getattr(self, name) for name in self._parameter_names}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a classifier of this class from a ``.uk`` file.

        Parameters
        ----------
        path : str or path-like
            The file.

        Returns
        -------
        classifier
            The classifier.

        Raises
        ------
        FormatError
            If the file is damaged or has another kind. Use :func:`unkernel.load` for a file of any kind.
        """
        opened = container.open_file(path)
        name = name_of(path)
        classifier = registry.kind_of(name, opened.kind).load(name, opened.arrays, opened.settings)
        if not isinstance(classifier, cls):
            raise FormatError(name, 0, 0, f"holds a {type(classifier).__name__}, not a {cls.__name__}")
        classifier.mapped_file = opened.file
        return classifier

    def set_params(self, **params: Any) -> Self:
        """Raise an error, because compiled models are immutable.

        Parameters
        ----------
        **params
            Must be empty.

        Returns
        -------
        classifier
            The classifier itself.
        """
        if params:
            raise TypeError("a compiled classifier is immutable; compile another model")
        return self

    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Raise an error, because compiled models cannot be fitted.

        scikit-learn accepts only objects with this method as estimators.

        Parameters
        ----------
        X : ignored
            Not used.
        y : ignored, default=None
            Not used.

        Returns
        -------
        classifier
            Never returned.
        """
        raise TypeError("a compiled classifier cannot be fitted; fit a model and compile it")

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Compute the accuracy of the predictions, or R squared for regression models.

        With several labels or outputs, a prediction is correct if all of its labels are; R squared is the
        mean over the outputs.

        Parameters
        ----------
        X : examples
            The examples, in the form that ``predict`` takes.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            The correct labels or values.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the examples.

        Returns
        -------
        float
            The score.
        """
        decision = self.decision
        if decision.ranking:
            raise ValueError(
                "this model ranks rows, so classes or values do not score it: ordered_pairs says how many "
                "pairs decision_function(X) has in order, of each group"
            )
        predictions = self.predict(X)
        weights = None if sample_weight is None else _check_weights(sample_weight, len(predictions))
        if decision.outputs:
            true_values = _check_table(y, predictions.shape)
        else:
            true_values = _check_column(y, len(predictions), "y")
        if decision.predicts_numbers:
            return _compute_mean_r_squared(true_values.astype(np.float64), predictions, weights)
        _check_labels_like_predictions(true_values, predictions)
        is_correct = true_values == predictions
        return float(
            np.average(is_correct if is_correct.ndim == 1 else is_correct.all(axis=1), weights=weights)
        )

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

        kind, has_outputs = self._estimator_type, bool(self.decision.outputs)
        return Tags(
            estimator_type=kind,
            target_tags=TargetTags(required=True, multi_output=has_outputs, single_output=not has_outputs),
            transformer_tags=None,
            classifier_tags=ClassifierTags(multi_label=self.decision.scheme == MULTI_LABEL)
            if kind == "classifier"
            else None,
            regressor_tags=RegressorTags() if kind == "regressor" else None,
            input_tags=InputTags(two_d_array=self._takes_rows, sparse=self._takes_rows),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Self:
        return copy.copy(self)  # a copy shares model and tables, which do not change


class _ConditionalMethod:
    """Descriptor of a method that instances have only if `check` raises no ``AttributeError``."""

    def __init__(self, method: Callable[..., Any], check: Callable[[Any], None]) -> None:
        self._method = method
        self._check = check
        self.__doc__ = method.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Callable[..., Any]:
        if instance is None:
            return self._method
        self._check(instance)
        return MethodType(self._method, instance)


def available_if(check: Callable[[Any], None]) -> Callable[[Callable[..., Any]], Any]:
    """Hide a method from ``hasattr`` if `check` raises an ``AttributeError``, as in scikit-learn."""
    return lambda method: _ConditionalMethod(method, check)


_Method = TypeVar("_Method", bound=Callable[..., Any])


def lazy_for_collections(method: _Method) -> _Method:
    """Make a method return lazy results for Dask collections, computed by the workers with the examples."""

    @functools.wraps(method)
    def call_method(self: Any, X: Any, *, n_jobs: int | None = None) -> Any:
        if repr_html.is_lazy(X):
            return repr_html.ask("lazy_answers", self, method.__name__, X, n_jobs)
        return method(self, X, n_jobs=n_jobs)

    return cast(_Method, call_method)


def _check_column(values: ArrayLike, count: int, name: str) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} should be a 1d array, got an array of shape {array.shape} instead")
    if len(array) != count:
        raise ValueError(f"X and {name} have inconsistent numbers of samples: {count} and {len(array)}")
    return array


def _check_table(values: ArrayLike, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return the correct answers of several outputs, of the shape of the predictions."""
    array = np.asarray(values)
    if array.shape != shape:
        raise ValueError(f"y should have the shape of the predictions, {shape}, got {array.shape} instead")
    return array


def _check_weights(sample_weight: ArrayLike, count: int) -> NDArray[np.float64]:
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        return np.full(count, float(weights))
    return _check_column(weights, count, "sample_weight")


def _check_labels_like_predictions(labels: NDArray[Any], predictions: NDArray[Any]) -> None:
    """Raise a ``ValueError`` if only the labels or only the predictions are text, or if a label is NaN."""
    labels_are_text, predictions_are_text = _is_text(labels), _is_text(predictions)
    if len(labels) and labels_are_text != predictions_are_text:
        raise ValueError(
            f"y holds {'text' if labels_are_text else 'numbers'}, but the model predicts "
            f"{'text' if predictions_are_text else 'numbers'}: give the labels as in training"
        )
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise ValueError("Input y contains NaN")


def _is_text(values: NDArray[Any]) -> bool:
    if values.dtype.kind == "O":
        return any(isinstance(value, str) for value in values)
    return values.dtype.kind in "US"


def _compute_mean_r_squared(
    true_values: NDArray[np.float64], predictions: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> float:
    """Return R squared, for several outputs the mean over the outputs."""
    columns = zip(
        true_values.reshape(len(true_values), -1).T, predictions.reshape(len(true_values), -1).T, strict=True
    )
    return float(np.mean([_compute_r_squared(*column, weights) for column in columns]))


def _compute_r_squared(
    true_values: NDArray[np.float64], predictions: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> float:
    error = np.average((true_values - predictions) ** 2, weights=weights)
    variance = np.average((true_values - np.average(true_values, weights=weights)) ** 2, weights=weights)
    return float(1 - error / variance) if variance > 0 else float(error == 0)
