"""Convert plans to and from JSON: the names and tables of steps. Arrays are stored separately."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.records.feature_names import JoinedNames, NumberedNames, have_same_names
from unkernel.records.plan_step import PlanStep

_ARRAY = "array"  # the key that refers to a separately stored array in the JSON of a plan
_DTYPES = (np.float64, np.int64, np.int32, np.uint8)


def _get_input_names(table: dict[str, Any], steps: Sequence[PlanStep]) -> Sequence[str] | None:
    """Return the names of the features of all inputs of a step; None if it has no inputs."""
    if "inputs" in table:
        return JoinedNames(
            [steps[_check_earlier(source, steps)].names for source in table["inputs"].tolist()]
        )
    return steps[_check_earlier(table["input"], steps)].names if "input" in table else None


def _check_earlier(source: Any, steps: Sequence[PlanStep]) -> int:
    if not 0 <= check_type(source, int) < len(steps):
        raise ValueError(f"there is no step {source} before")
    return int(source)


def encode_names(step: PlanStep, steps: Sequence[PlanStep]) -> Any:
    """Return the names of a step's features for JSON; None if they equal the names of its inputs."""
    if isinstance(step.names, NumberedNames):
        return {"numbered": step.names.name, "count": step.names.size}
    input_names = _get_input_names(step.table, steps)
    if input_names is not None and have_same_names(input_names, step.names):
        return None
    return list(step.names)


def read_names(stored: Any, table: dict[str, Any], steps: Sequence[PlanStep]) -> Sequence[str]:
    """Return the names of a step's features that :func:`encode_names` encoded."""
    if stored is None:
        input_names = _get_input_names(table, steps)
        if input_names is None:
            raise ValueError("a step has no names")
        return input_names
    if isinstance(stored, dict):
        return NumberedNames(check_type(stored["numbered"], str), check_type(stored["count"], int))
    return [check_type(name, str) for name in stored]


def check_type(value: Any, kind: type) -> Any:
    """Return a value; raise a ``TypeError`` if it is not of this type."""
    if not isinstance(value, kind):
        raise TypeError(f"expected {kind.__name__}, got {type(value).__name__}")
    return value


def extract_arrays(value: Any, path: str, arrays: dict[str, NDArray[Any]]) -> Any:
    """Move the arrays in a value to `arrays`; return the value with references in place of the arrays."""
    if isinstance(value, np.ndarray):
        arrays[path] = value
        return {_ARRAY: path}
    if isinstance(value, Mapping):
        return {key: extract_arrays(item, f"{path}.{key}", arrays) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [extract_arrays(item, f"{path}.{number}", arrays) for number, item in enumerate(value)]
    return value


def insert_arrays(value: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """Return the value from which :func:`extract_arrays` moved the arrays."""
    if isinstance(value, dict):
        if set(value) == {_ARRAY}:
            array = arrays[check_type(value[_ARRAY], str)]
            if array.ndim != 1 or array.dtype not in _DTYPES:
                raise ValueError(f"array {value[_ARRAY]!r} is of a type that plans do not have")
            return np.asarray(array)
        return {key: insert_arrays(item, arrays) for key, item in value.items()}
    if isinstance(value, list):
        return [insert_arrays(item, arrays) for item in value]
    return value
