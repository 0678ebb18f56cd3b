"""Weights of feature conjunctions: what every learner on polynomial maps ends in."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unkernel.errors import FormatError
from unkernel.models import container


@dataclass(frozen=True, eq=False)
class ConjunctionModel:
    """A weight for each conjunction of at most ``degree`` features. Plain data.

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
    constants : (scores,) float64
    classes : (classes,) array
        Two classes share one score (positive: the second class); more have one each.
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
    constants: NDArray[np.float64]
    classes: NDArray[Any]
    origin: dict[str, Any] = field(default_factory=dict)

    @property
    def n_conjunctions(self) -> int:
        """How many conjunctions have a weight, the constant not counted."""
        return len(self.keys)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(int(a.nbytes) for a in (self.columns, self.keys, self.weights, self.constants))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a ``.uk`` file, whole or not at all."""
        settings = {
            "degree": self.degree,
            "sets": self.sets,
            "feature_map": self.feature_map,
            "gamma": self.gamma,
            "coef0": self.coef0,
            "n_features": self.n_features,
            "classes": _classes_to_json(self.classes),
            "origin": self.origin,
        }
        arrays = {
            "columns": self.columns.astype("<i8", copy=False),
            "keys": self.keys.astype("<u8", copy=False),
            "weights": self.weights.astype("<f8", copy=False),
            "constants": self.constants.astype("<f8", copy=False),
        }
        container.write(path, self.kind, arrays, settings)

    @classmethod
    def from_container(
        cls, name: str, arrays: dict[str, NDArray[Any]], settings: dict[str, Any]
    ) -> ConjunctionModel:
        """Check what a file holds and make the model of it."""
        for key, dtype, dimensions in (
            ("columns", np.int64, 1),
            ("keys", np.uint64, 1),
            ("weights", np.float64, 2),
            ("constants", np.float64, 1),
        ):
            array = arrays.get(key)
            if array is None or array.dtype != dtype or array.ndim != dimensions:
                raise FormatError(name, 0, 0, f"the model has no proper array {key!r}")
        model = cls(
            degree=_setting(name, settings, "degree", int, lambda v: 1 <= v <= 3),
            sets=_setting(name, settings, "sets", bool, lambda v: True),
            feature_map=_setting(name, settings, "feature_map", str, lambda v: v in ("kernel", "plain")),
            gamma=_number(name, settings, "gamma", lambda v: v > 0),
            coef0=_number(name, settings, "coef0", lambda v: v >= 0),
            n_features=_setting(name, settings, "n_features", int, lambda v: 0 < v < 1 << 62),
            columns=arrays["columns"],
            keys=arrays["keys"],
            weights=arrays["weights"],
            constants=arrays["constants"],
            classes=_classes_from_json(name, settings.get("classes")),
            origin=_setting(name, settings, "origin", dict, lambda v: True),
        )
        scores = len(model.constants)
        if scores != (1 if len(model.classes) == 2 else len(model.classes)):
            raise FormatError(name, 0, 0, "the number of scores does not fit the number of classes")
        if model.weights.shape != (len(model.keys), scores):
            raise FormatError(name, 0, 0, "the number of weights does not fit the number of conjunctions")
        return model


def _setting(name: str, settings: dict[str, Any], key: str, kind: type, valid: Any) -> Any:
    value = settings.get(key)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)) or not valid(value):
        raise FormatError(name, 0, 0, f"the model's setting {key!r} is missing or out of range")
    return value


def _number(name: str, settings: dict[str, Any], key: str, valid: Any) -> float:
    value = settings.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= sys.float_info.max:
        raise FormatError(name, 0, 0, f"the model's setting {key!r} is missing or not a number")
    if not valid(value):
        raise FormatError(name, 0, 0, f"the model's setting {key!r} is out of range")
    return float(value)


# The types of class labels that a file can hold, as numpy writes them, and what JSON makes of them.
_CLASS_TYPE = re.compile(r"[<>|=]?(b1|i[1248]|u[1248]|f[248]|U[0-9]{0,10})|O", re.ASCII)
_JSON_TYPES = {"b": (bool,), "i": (int,), "u": (int,), "f": (int, float), "U": (str,), "O": (str,)}


def _classes_to_json(classes: NDArray[Any]) -> dict[str, Any]:
    dtype = "O" if classes.dtype.kind == "O" else classes.dtype.str
    values = classes.tolist()
    if not _CLASS_TYPE.fullmatch(dtype) or not _are_json(values, classes.dtype.kind):
        raise ValueError(
            f"class labels of type {classes.dtype} cannot be saved; use numbers, strings or booleans"
        )
    return {"dtype": dtype, "values": values}


def _are_json(values: list[Any], kind: str) -> bool:
    return all(isinstance(value, _JSON_TYPES[kind]) for value in values)


def _classes_from_json(name: str, stored: Any) -> NDArray[Any]:
    problem = FormatError(name, 0, 0, "the model's class labels are missing or damaged")
    if not isinstance(stored, dict) or not isinstance(stored.get("values"), list):
        raise problem
    values, dtype = stored["values"], stored.get("dtype")
    if not isinstance(dtype, str) or not _CLASS_TYPE.fullmatch(dtype) or len(values) < 2:
        raise problem
    # A text dtype is remade: the width that the file claims could be anything.
    kind = "U" if "U" in dtype else np.dtype(dtype).kind
    if not _are_json(values, kind) or len(set(values)) != len(values):
        raise problem
    try:
        with np.errstate(over="ignore"):
            classes = np.array(values, dtype="U" if kind == "U" else dtype)
    except (ValueError, OverflowError):
        raise problem from None
    if classes.tolist() != values:  # labels that this type cannot hold
        raise problem
    return classes
