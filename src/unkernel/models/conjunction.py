"""Weights of feature conjunctions: the models that learners on polynomial feature maps give."""

from __future__ import annotations

from dataclasses import dataclass, field
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
from unkernel.models.numbering import numbers_of
from unkernel.models.rows import distinct

_SPARSE = 64  # columns that there are for each one that is used: then sorting takes less memory than marking


@dataclass(frozen=True, eq=False, repr=False)
class ConjunctionModel(Model):
    """One weight per conjunction of at most ``degree`` features. Plain data.

    Features are numbered by descending frequency in the training set, their *rank*; ``columns`` gives
    the input column of each rank. Conjunctions are numbered as ``docs/formats/uk.md`` says.

    Attributes
    ----------
    degree : int
        Features in a conjunction, at most: 1, 2 or 3.
    sets : bool
        True when the training data were binary: conjunctions are sets of features. Otherwise they are
        monomials, in which a feature may repeat.
    feature_map, gamma, coef0
        The map the weights belong to. Only rows that are not binary need them, under a model of sets.
    n_features : int
        Columns of an input row.
    columns : (used features,) int64
    keys : (conjunctions,) uint64, ascending
    weights : (conjunctions, scores) float64
    intercept : (scores,) float64
        The weight of the constant.
    classes : (classes,) array
        Two classes share one score (positive: the second class); more have one each.
    probability : Softmax, Curves or None
        Where probabilities come from: the model is log-linear, or a curve was fitted for each score.
    ranking : Decision or None
        How the one score of a ranking is read; None for a classifier. Its classes are those of the model.
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

    @property
    def n_conjunctions(self) -> int:
        """How many conjunctions have a weight, the constant not counted."""
        return len(self.keys)

    @property
    def fixed_width(self) -> bool:
        """Rows must have ``n_features`` columns."""
        return True

    @cached_property
    def decision(self) -> Decision:
        """How the scores become classes."""
        if self.ranking is not None:
            return self.ranking
        scheme = "binary" if len(self.classes) == 2 else "one_vs_rest"
        return Decision(scheme, self.classes, probability=self.probability)

    def _arrays(self) -> list[Any]:
        return [self.columns, self.keys, self.weights, self.intercept]

    def _about(self) -> str:
        return f"{self.n_conjunctions} conjunctions of degree {self.degree}"

    def check(self, file: str) -> None:
        """Look at every key, column and weight; a ``FormatError`` of `file` if one cannot be."""
        keys, columns = self.keys, self.columns
        try:
            end = numbers_of(len(columns), self.degree, self.sets)
        except ValueError as error:
            raise FormatError(file, 0, 0, str(error)) from error
        if len(keys) and not (keys[0] > 0 and int(keys[-1]) < end and (keys[1:] > keys[:-1]).all()):
            raise FormatError(file, 0, 0, f"conjunction keys must ascend and stay below {end}")
        if not _are_distinct(columns, self.n_features):
            raise FormatError(file, 0, 0, "a column is outside of the model's features, or there twice")
        if not (np.isfinite(self.weights).all() and np.isfinite(self.intercept).all()):
            raise FormatError(file, 0, 0, "a weight is not finite")

    def to_container(self) -> tuple[Arrays, Settings]:
        """The arrays and settings that a file holds."""
        settings = {
            "degree": self.degree,
            "sets": self.sets,
            "feature_map": self.feature_map,
            "gamma": self.gamma,
            "coef0": self.coef0,
            "n_features": self.n_features,
            "origin": self.origin,
        } | ({} if self.probability is None else {"probability": probability_to_json(self.probability)})
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
        ranking = _ranking(name, settings)
        classes = classes_from_json(name, settings.get("classes")) if ranking is None else ranking.classes
        model = cls(
            degree=container.setting(name, settings, "degree", int, lambda v: 1 <= v <= 3),
            sets=container.setting(name, settings, "sets", bool, lambda v: True),
            feature_map=container.setting(
                name, settings, "feature_map", str, lambda v: v in ("kernel", "plain")
            ),
            gamma=container.number(name, settings, "gamma", lambda v: v > 0),
            coef0=container.number(name, settings, "coef0", lambda v: v >= 0),
            n_features=container.setting(name, settings, "n_features", int, lambda v: 0 < v < 1 << 63),
            columns=arrays["columns"],
            keys=arrays["keys"],
            weights=arrays["weights"],
            intercept=arrays["constants"],
            classes=classes,
            origin=container.setting(name, settings, "origin", dict, lambda v: True),
            probability=_probability(name, settings),
            ranking=ranking,
        )
        _ = model.decision  # which checks that there is a curve for each score
        scores = len(model.intercept)
        if scores != (1 if len(model.classes) == 2 or ranking is not None else len(model.classes)):
            raise FormatError(name, 0, 0, "the number of scores does not fit the number of classes")
        if model.weights.shape != (len(model.keys), scores):
            raise FormatError(name, 0, 0, "the number of weights does not fit the number of conjunctions")
        return model


def _are_distinct(columns: NDArray[np.int64], end: int) -> bool:
    """Whether the columns are from 0 to `end`, and each is there once."""
    if not len(columns):
        return True
    if columns.min() < 0 or columns.max() >= end:
        return False
    if end > _SPARSE * len(columns):
        return len(distinct(columns)) == len(columns)
    seen = np.zeros(end, bool)
    seen[columns] = True
    return int(seen.sum()) == len(columns)


def _ranking(name: str, settings: dict[str, Any]) -> Decision | None:
    if "ranking" not in settings:
        return None
    found = Decision.from_json(name, settings["ranking"])
    if not found.ranking or found.probability is not None or "probability" in settings:
        raise FormatError(name, 0, 0, "the model's setting 'ranking' is damaged")
    return found


def _probability(name: str, settings: dict[str, Any]) -> Softmax | Curves | None:
    if "probability" not in settings:
        return None
    damaged = FormatError(name, 0, 0, "the model's setting 'probability' is damaged")
    try:
        found = probability_from_json(settings["probability"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise damaged from error
    if not isinstance(found, Softmax | Curves):
        raise damaged
    return found
