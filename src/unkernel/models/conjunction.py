"""Weights of feature conjunctions: models of learners on polynomial feature maps."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from unkernel.errors import FormatError
from unkernel.models import container
from unkernel.models.base import Arrays, Model, Settings
from unkernel.models.curves import Curves
from unkernel.models.decision import (
    Decision,
    Softmax,
    classes_from_json,
    classes_to_json,
    probability_from_json,
    probability_to_json,
)
from unkernel.models.model_rows import distinct
from unkernel.models.numbering import numbers_of
from unkernel.models.threshold import Threshold, parse_threshold

_SORT_RATIO = 64  # with more input columns per used column, sorting takes less memory than a mask


@dataclass(frozen=True, eq=False, repr=False)
class ConjunctionModel(Model):
    """Model with one weight per conjunction of at most ``degree`` features.

    :class:`~unkernel.PolySVC` and :class:`~unkernel.PolyLogisticRegression` make such models. Features are
    numbered by descending frequency in the training set; ``columns`` has the input column of each feature.
    The page about the file format describes how conjunctions are numbered.

    Attributes
    ----------
    degree : int
        Largest number of features in a conjunction: 1, 2 or 3.
    sets : bool
        Whether conjunctions are sets of features, because the training data were binary. Otherwise they are
        monomials, in which a feature may occur repeatedly.
    feature_map : {"kernel", "plain"}
        The feature map that the weights refer to. If ``sets`` is true, it affects only the scores of rows
        that are not binary.
    gamma : float
        Factor of the inner product in the kernel.
    coef0 : float
        Constant of the kernel.
    n_features : int
        Number of input columns.
    columns : ndarray of int64, shape (n_used_features,)
        The input columns of the features that are used.
    keys : ndarray of uint64, shape (n_conjunctions,)
        Numbers of the conjunctions in ascending order.
    weights : ndarray of float64, shape (n_conjunctions, n_scores)
        Weights of the conjunctions.
    intercept : ndarray of float64, shape (n_scores,)
        Weights of the constant.
    classes : ndarray of shape (n_classes,)
        Class labels. Two classes share one score, and positive scores mean the second class. More than two
        classes have one score each.
    origin : dict, default={}
        Description of the training.
    probability : Softmax, Curves or None, default=None
        How scores are converted to probabilities: by a log-linear model, or by a calibration curve per score.
    ranking : Decision or None, default=None
        The decision of a ranking, a regression or a model of several outputs; None for a classifier.
    calibrated : bool, default=False
        Whether the most probable class is predicted instead of the class with the highest score. If so, the
        model may have the scores of several classifiers, one after the other, whose probabilities are
        averaged, and `probability` has one curve per score.
    threshold : Threshold or None, default=None
        The probability or the score from which one of two classes is predicted.
    curvatures : ndarray of float32, shape (1 + n_used_features + n_conjunctions, n_scores), default=None
        Curvatures of the loss of all training rows in the intercept, in a weight of each used feature
        and in the weight of each conjunction, for updates; None if the model cannot be updated.
    slopes : ndarray of float32, shape (n_used_features, n_scores), default=None
        Derivatives of that loss in a weight of each used feature; None if there are no curvatures.

    See Also
    --------
    KernelModel : Model of support vectors.
    LinearModel : Model with one weight per feature.
    unkernel.compile : Compile a model for fast inference.

    Examples
    --------
    >>> from unkernel import PolySVC
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> PolySVC(degree=2, C=10, gamma=1).fit(X, y).to_model()
    ConjunctionModel(3 conjunctions of degree 2, 2 classes)
    """

    kind: ClassVar[str] = "conjunctions"

    degree: int
    sets: bool
    feature_map: str
    gamma: float
    coef0: float
    n_features: int
    columns: NDArray[np.int64]
    keys: NDArray[np.uint64]
    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]
    classes: NDArray[Any]
    origin: dict[str, Any] = field(default_factory=dict)
    probability: Softmax | Curves | None = None
    ranking: Decision | None = None
    calibrated: bool = False
    threshold: Threshold | None = None
    curvatures: NDArray[np.float32] | None = None
    slopes: NDArray[np.float32] | None = None

    @property
    def n_conjunctions(self) -> int:
        """Number of conjunctions with a weight, not counting the constant."""
        return len(self.keys)

    @property
    def fixed_width(self) -> bool:
        """Whether rows must have exactly ``n_features`` columns; always true."""
        return True

    @cached_property
    def decision(self) -> Decision:
        """The rule that turns scores into predictions."""
        if self.ranking is not None:
            return self.ranking
        scheme = "binary" if len(self.classes) == 2 else "one_vs_rest"
        if self.calibrated:
            scheme = "calibrated"
        return Decision(scheme, self.classes, probability=self.probability, threshold=self.threshold)

    def with_threshold(self, threshold: float | Threshold | None) -> Self:
        decision = replace(self.decision, threshold=parse_threshold(threshold))
        return replace(self, threshold=decision.threshold)

    def _arrays(self) -> list[Any]:
        of_updates = [array for array in (self.curvatures, self.slopes) if array is not None]
        return [self.columns, self.keys, self.weights, self.intercept, *of_updates]

    def _describe(self) -> str:
        return f"{self.n_conjunctions} conjunctions of degree {self.degree}"

    def check(self, file: str) -> None:
        """Check every key, column and weight.

        Parameters
        ----------
        file : str
            Name of the file in error messages.

        Raises
        ------
        FormatError
            If a value is invalid.
        """
        keys, columns = self.keys, self.columns
        try:
            end = numbers_of(len(columns), self.degree, self.sets)
        except ValueError as error:
            raise FormatError(file, 0, 0, str(error)) from error
        if len(keys) and not (keys[0] > 0 and int(keys[-1]) < end and (keys[1:] > keys[:-1]).all()):
            raise FormatError(file, 0, 0, f"conjunction keys must ascend and stay below {end}")
        if not _are_distinct(columns, self.n_features):
            raise FormatError(file, 0, 0, "a column is outside of the model's features, or repeated")
        if not (np.isfinite(self.weights).all() and np.isfinite(self.intercept).all()):
            raise FormatError(file, 0, 0, "a weight is not finite")
        if self.curvatures is not None and not (
            np.isfinite(self.curvatures).all() and (self.curvatures >= 0).all()
        ):
            raise FormatError(file, 0, 0, "a curvature is negative or not finite")
        if self.slopes is not None and not np.isfinite(self.slopes).all():
            raise FormatError(file, 0, 0, "a slope is not finite")

    def to_container(self) -> tuple[Arrays, Settings]:
        settings = {
            "degree": self.degree,
            "sets": self.sets,
            "feature_map": self.feature_map,
            "gamma": self.gamma,
            "coef0": self.coef0,
            "n_features": self.n_features,
            "origin": self.origin,
        } | ({} if self.probability is None else {"probability": probability_to_json(self.probability)})
        if self.calibrated:
            settings["calibrated"] = True
        if self.threshold is not None:
            settings[container.THRESHOLD] = self.threshold.to_json()
        if self.ranking is None:
            settings["classes"] = classes_to_json(self.classes)
        else:
            settings["ranking"] = self.ranking.to_json()
        arrays = {
            "columns": self.columns.astype("<i8", copy=False),
            "keys": self.keys.astype("<u8", copy=False),
            "weights": self.weights.astype("<f8", copy=False),
            "constants": self.intercept.astype("<f8", copy=False),
        }
        if self.curvatures is not None:
            arrays["curvatures"] = self.curvatures.astype("<f4", copy=False)
        if self.slopes is not None:
            arrays["slopes"] = self.slopes.astype("<f4", copy=False)
        return arrays, settings

    @classmethod
    def _from_container(cls, name: str, arrays: Arrays, settings: Settings) -> Self:
        for key, dtype, dimensions in (
            ("columns", np.int64, 1),
            ("keys", np.uint64, 1),
            ("weights", np.float64, 2),
            ("constants", np.float64, 1),
        ):
            array = arrays.get(key)
            if array is None or array.dtype != dtype or array.ndim != dimensions:
                raise FormatError(name, 0, 0, f"the model has no proper array {key!r}")
        ranking = _read_ranking(name, settings)
        classes = classes_from_json(name, settings.get("classes")) if ranking is None else ranking.classes
        model = cls(
            degree=container.read_setting(name, settings, "degree", int, lambda v: 1 <= v <= 3),
            sets=container.read_setting(name, settings, "sets", bool),
            feature_map=container.read_setting(
                name, settings, "feature_map", str, lambda v: v in ("kernel", "plain")
            ),
            gamma=container.read_number(name, settings, "gamma", lambda v: v > 0),
            coef0=container.read_number(name, settings, "coef0", lambda v: v >= 0),
            n_features=container.read_setting(name, settings, "n_features", int, lambda v: 0 < v < 1 << 63),
            columns=arrays["columns"],
            keys=arrays["keys"],
            weights=arrays["weights"],
            intercept=arrays["constants"],
            classes=classes,
            origin=container.read_setting(name, settings, "origin", dict),
            probability=_read_probability(name, settings),
            ranking=ranking,
            calibrated=_is_calibrated(name, settings),
            threshold=_read_threshold(name, settings),
            curvatures=_read_floats(name, arrays, "curvatures"),
            slopes=_read_floats(name, arrays, "slopes"),
        )
        scores = len(model.intercept)
        if scores != model.decision.n_scores:
            raise FormatError(name, 0, 0, "the number of scores does not match the number of classes")
        if model.weights.shape != (len(model.keys), scores):
            raise FormatError(name, 0, 0, "the number of weights does not fit the number of conjunctions")
        if model.curvatures is not None and model.curvatures.shape != _shape_curvatures(model):
            raise FormatError(name, 0, 0, "the number of curvatures does not fit the number of conjunctions")
        if (model.slopes is None) != (model.curvatures is None) or (
            model.slopes is not None and model.slopes.shape != (len(model.columns), scores)
        ):
            raise FormatError(name, 0, 0, "the number of slopes does not fit the number of features")
        return model


def _are_distinct(columns: NDArray[np.int64], end: int) -> bool:
    """Return whether the columns are distinct and in ``range(end)``."""
    if not len(columns):
        return True
    if columns.min() < 0 or columns.max() >= end:
        return False
    if end > _SORT_RATIO * len(columns):
        return len(distinct(columns)) == len(columns)
    is_used = np.zeros(end, bool)
    is_used[columns] = True
    return int(is_used.sum()) == len(columns)


def _shape_curvatures(model: ConjunctionModel) -> tuple[int, int]:
    """Return the shape that the curvatures of a model must have."""
    return 1 + len(model.columns) + len(model.keys), len(model.intercept)


def _read_floats(name: str, arrays: Arrays, key: str) -> NDArray[np.float32] | None:
    array = arrays.get(key)
    if array is None:
        return None
    if array.dtype != np.float32 or array.ndim != 2:
        raise FormatError(name, 0, 0, f"the model has no proper array {key!r}")
    return array


def _read_ranking(name: str, settings: dict[str, Any]) -> Decision | None:
    if "ranking" not in settings:
        return None
    ranking = Decision.from_json(name, settings["ranking"])
    has_probability = ranking.probability is not None or "probability" in settings
    if not (ranking.scheme in ("regression", "ordinal") or ranking.outputs) or has_probability:
        raise FormatError(name, 0, 0, "the model's setting 'ranking' is damaged")
    return ranking


def _is_calibrated(name: str, settings: dict[str, Any]) -> bool:
    calibrated = settings.get("calibrated", False)
    if calibrated is True and isinstance(_read_probability(name, settings), Curves):
        return True
    if calibrated is False:
        return False
    raise FormatError(name, 0, 0, "the model's setting 'calibrated' is damaged")


def _read_threshold(name: str, settings: dict[str, Any]) -> Threshold | None:
    try:
        return Threshold.from_json(settings.get(container.THRESHOLD))
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(name, 0, 0, f"the model's setting 'threshold' is damaged: {error}") from error


def _read_probability(name: str, settings: dict[str, Any]) -> Softmax | Curves | None:
    if "probability" not in settings:
        return None
    damaged = FormatError(name, 0, 0, "the model's setting 'probability' is damaged")
    try:
        probability = probability_from_json(settings["probability"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise damaged from error
    if not isinstance(probability, Softmax | Curves):
        raise damaged
    return probability
