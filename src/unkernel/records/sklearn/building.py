"""What translators of scikit-learn's transformers share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from unkernel.records import steps
from unkernel.records.plan import Step


@dataclass(frozen=True)
class Raw:
    """Columns of the record that no transformer has touched, except that missing values may be filled in."""

    columns: Sequence[int]
    fills: dict[int, Any] = field(default_factory=dict)  # by column: what stands for a missing value


@dataclass(frozen=True)
class Vector:
    """The result of a step."""

    step: int
    names: Sequence[str]


Source = Raw | Vector


@dataclass
class Builder:
    """A plan that is being put together."""

    columns: list[str]
    steps: list[Step] = field(default_factory=list)

    def add(self, step: Step) -> Vector:
        """Append a step."""
        self.steps.append(step)
        return Vector(len(self.steps) - 1, step.names)

    def numbers(self, source: Source, where: str) -> Vector:
        """The source as a vector of numbers."""
        if isinstance(source, Vector):
            return source
        if source.fills:
            refuse(where, "takes numbers, and an imputer before it fills in strings")
        names = [self.columns[column] for column in source.columns]
        return self.add(steps.numbers(source.columns, names))

    def together(self, vectors: Sequence[Vector]) -> Vector:
        """Vectors beside each other."""
        if len(vectors) == 1:
            return vectors[0]
        names = [name for vector in vectors for name in vector.names]
        return self.add(steps.concatenate([vector.step for vector in vectors], names))


def refuse(where: str, what: str) -> NoReturn:
    """Say which step of a pipeline cannot be compiled, and why."""
    raise ValueError(f"the pipeline's step {where} {what}; leave it out, or transform the records before")


def class_names(estimator: Any) -> set[str]:
    """The names of scikit-learn's classes that the estimator is of."""
    return {kind.__name__ for kind in type(estimator).__mro__ if kind.__module__.startswith("sklearn.")}
