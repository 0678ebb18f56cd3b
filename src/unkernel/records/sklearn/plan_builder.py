"""The plan under construction, and the inputs and outputs of the functions that translate transformers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from unkernel.records import steps
from unkernel.records.feature_names import JoinedNames
from unkernel.records.plan_step import PlanStep
from unkernel.records.sklearn.rounding_errors import bound_differences


@dataclass(frozen=True)
class Raw:
    """Columns of the record, in which an imputer may have filled in missing values."""

    columns: Sequence[int]
    # Maps a column to its missing value (NaN, None or a number) and the replacement.
    fills: dict[int, tuple[Any, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Vector:
    """The output of a step: its index in the plan, and the names of its features."""

    step: int
    names: Sequence[str]


Source = Raw | Vector
# Steps whose vector is dense if that of their input is.
_FEATUREWISE_STEPS = ("scale", "impute", "binarize", "normalize", "select", "tfidf", "function", "finite")


@dataclass
class Builder:
    """A plan under construction."""

    columns: list[str]
    steps: list[PlanStep] = field(default_factory=list)
    # Whether scikit-learn has a sparse matrix where the plan has the output of a step, by index of the step.
    is_sparse: dict[int, bool] = field(default_factory=dict)

    def add(self, step: PlanStep) -> Vector:
        """Append a step, and return its output."""
        self.steps.append(step)
        return Vector(len(self.steps) - 1, step.names)

    def numbers(self, source: Source, where: str) -> Vector:
        """Return the source as a vector; columns of the record are read as numbers."""
        if isinstance(source, Vector):
            return source
        names = [self.columns[column] for column in source.columns]
        vector = self.add(steps.numbers(source.columns, names))
        if not source.fills:
            return vector
        fills = [source.fills[column] for column in source.columns]
        if not all(is_number(missing) and is_number(fill) for missing, fill in fills):
            refuse(where, "takes numbers, and an imputer before it fills in strings")
        return self.add(steps.impute(vector.step, [fill for _, fill in fills], names, float(fills[0][0])))

    def check_numbers(self, source: Source, where: str) -> Vector:
        """Return the source as a vector without infinite numbers, for steps that refuse them."""
        vector = self.numbers(source, where)
        return self.finite(vector, allows_missing=True) if self._may_be_infinite(vector.step) else vector

    def finite(self, vector: Vector, *, allows_missing: bool) -> Vector:
        """Return the vector; infinite numbers and, unless `allows_missing`, missing numbers are errors."""
        table = {"input": vector.step, "allows_missing": allows_missing}
        return self.add(PlanStep("finite", table, vector.names))

    def snap_to(self, vector: Vector, points: Sequence[Any]) -> Vector:
        """Return the vector, with numbers moved to the points of their columns that are closest.

        For steps that jump at these points: numbers move only as far as rounding errors may have moved them.
        If there are none, or the vector is sparse, return the vector itself.
        """
        if not self._is_dense(vector.step):
            return vector
        distinct = [np.unique(np.asarray(of_column, dtype=np.float64)) for of_column in points]
        padded = np.zeros((len(distinct), max(map(len, distinct), default=0)))
        for row, of_column in zip(padded, distinct, strict=True):
            row[: len(of_column)] = of_column
        bounds = bound_differences(self.steps, vector.step, padded)
        if not bounds.any():
            return vector
        tolerances = [row[: len(of_column)] for row, of_column in zip(bounds, distinct, strict=True)]
        return self.add(steps.snap(vector.step, distinct, tolerances, vector.names))

    def _may_be_infinite(self, number: int) -> bool:
        """Return whether the output of a step may be infinite: functions have such values."""
        step = self.steps[number]
        if step.kind in ("function", "power"):
            return True
        if step.kind == "concatenate":
            return any(self._may_be_infinite(int(source)) for source in step.table["inputs"])
        if step.kind in ("scale", "select", "densify"):
            return self._may_be_infinite(step.table["input"])
        return False

    def dense(self, vector: Vector) -> Vector:
        """Return the vector with an entry for every feature; steps that map 0 to another number need this."""
        if self._is_dense(vector.step):
            return vector
        return self.add(PlanStep("densify", {"input": vector.step}, vector.names))

    def _is_dense(self, number: int) -> bool:
        """Return whether the vector of a step has an entry for every feature."""
        step = self.steps[number]
        if step.kind in ("one_hot", "text", "strings", "pairs", "indicate", "products", "splines"):
            return False
        if step.kind == "bins":
            return not step.table["one_hot"]
        if step.kind == "concatenate":
            return all(self._is_dense(int(source)) for source in step.table["inputs"])
        if step.kind in _FEATUREWISE_STEPS:
            return self._is_dense(step.table["input"])
        return True

    def concatenate(self, vectors: Sequence[Vector]) -> Vector:
        """Concatenate vectors."""
        if len(vectors) == 1:
            return vectors[0]
        names = JoinedNames([vector.names for vector in vectors])
        return self.add(steps.concatenate([vector.step for vector in vectors], names))


def refuse(where: str, reason: str) -> NoReturn:
    """Raise an error for a pipeline's step that cannot be compiled; `where` names the step in messages."""
    raise ValueError(f"the pipeline's step {where} {reason}; leave it out, or transform the records before")


def is_number(value: Any) -> bool:
    """Return whether a value is a number; NaN counts as a number."""
    return isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.bool_))


def is_nan(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def class_names(estimator: Any) -> set[str]:
    """Return the names of the estimator's scikit-learn classes."""
    return {kind.__name__ for kind in type(estimator).__mro__ if kind.__module__.startswith("sklearn.")}
