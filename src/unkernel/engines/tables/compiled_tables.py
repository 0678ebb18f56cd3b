"""Compiled tables: the named arrays that an engine reads, in memory or in a file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import (
    Engine,
    FeatureMap,
    bitsliced_engine,
    conjunction_engine,
    int16_pair_engine,
    inverted_engine,
    list_heaviest,
    pair_engine,
)
from unkernel.data import file_memory_limit
from unkernel.engines.tables.prefix_trie import read_limit, restore_trie
from unkernel.models.kernel import KERNELS

CONJUNCTIONS, INVERTED, BITSLICED, INT16 = "conjunctions", "inverted", "bitsliced", "int16"
PAIRS = "pairs"

# For each layout, the names of the parameters of its native engine.
_PARAMETERS = {
    CONJUNCTIONS: ("sets", "degree", "map", "gamma", "coef0"),
    INT16: ("sets", "degree", "map", "gamma", "coef0"),
    INVERTED: ("kernel", "degree", "gamma", "coef0"),
    BITSLICED: ("kernel", "degree", "gamma", "coef0"),
    PAIRS: (),
}
# For each layout, the names of the entries that are scalars instead of arrays.
_NUMBERS: dict[str, tuple[str, ...]] = {
    CONJUNCTIONS: ("fused", "head", "rare"),
    INT16: (),
    INVERTED: (),
    BITSLICED: ("frequent",),
    PAIRS: ("classes",),
}


@dataclass(frozen=True, eq=False)
class ConjunctionWeights:
    """Weights of conjunctions in the form that the core reads, with the fields of ``ConjunctionModel``."""

    columns: NDArray[np.int64]
    keys: NDArray[np.uint64]
    weights: NDArray[np.float64]  # (keys, scores), flattened
    intercept: NDArray[np.float64]
    n_features: int

    @classmethod
    def from_arrays(
        cls, columns: Any, keys: Any, weights: Any, intercept: Any, n_features: int
    ) -> ConjunctionWeights:
        """Return weights made from arrays of any shape."""
        columns, keys, intercept = (np.ascontiguousarray(array) for array in (columns, keys, intercept))
        return cls(columns, keys, np.ascontiguousarray(weights).reshape(-1), intercept, int(n_features))


def describe_map(sets: bool, degree: int, name: str, gamma: float, coef0: float) -> dict[str, Any]:
    """Return the parameters of conjunction engines in the form that files store."""
    return {"sets": sets, "degree": degree, "map": name, "gamma": float(gamma), "coef0": float(coef0)}


def make_map_arguments(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of conjunction engines, given the parameters in a file."""
    feature_map = FeatureMap(
        degree=parameters["degree"],
        kind=parameters["map"],
        gamma=parameters["gamma"],
        coef0=parameters["coef0"],
    )
    return {"feature_map": feature_map, "sets": parameters["sets"]}


def _make_conjunction_engine(arrays: dict[str, Any], **parameters: Any) -> Engine:
    return conjunction_engine(arrays, **make_map_arguments(parameters))


def _make_int16_engine(arrays: dict[str, Any], **parameters: Any) -> Engine:
    columns, keys, values, intercept = (arrays[name] for name in ("columns", "keys", "weights", "constants"))
    weights = ConjunctionWeights.from_arrays(columns, keys, values, intercept, int(arrays["features"][0]))
    file_memory_limit.claim(
        _estimate_int16_bytes(len(columns), len(keys), len(intercept)), "the tables of 16-bit weights"
    )
    engine = int16_pair_engine(weights, **make_map_arguments(parameters))
    if engine is None:
        raise ValueError("the model does not fit the int16 engine")
    return engine


_SMALL_PAIR_TABLE_BYTES = 1 << 18  # the dense table of pairs may always have this size


def _estimate_int16_bytes(used: int, keys: int, scores: int) -> float:
    """Return the estimated memory of the engine: dense pairs, single features, and hashed pairs."""
    smallest = _SMALL_PAIR_TABLE_BYTES / (2 * max(scores, 1))
    dense = min(max(2.0 * keys, smallest), used * (used + 1) / 2)
    return 2.0 * scores * (dense + keys + used) + 8.0 * used + 32.0 * keys


_MAKERS: dict[str, Callable[..., Engine]] = {
    CONJUNCTIONS: _make_conjunction_engine,
    INT16: _make_int16_engine,
    INVERTED: inverted_engine,
    BITSLICED: bitsliced_engine,
    PAIRS: pair_engine,
}
_MAPS = ("kernel", "plain")
_TYPES: dict[str, type | tuple[type, ...]] = {
    "sets": bool,
    "degree": int,
    "map": str,
    "kernel": str,
    "gamma": (int, float),
    "coef0": (int, float),
}


@dataclass(frozen=True, eq=False)
class Tables:
    """The data that an engine is made from.

    Attributes
    ----------
    layout : str
        ``"conjunctions"``, ``"inverted"``, ``"bitsliced"``, ``"pairs"`` or ``"int16"``.
    parameters : dict
        Parameters of the kernel and of conjunctions.
    numbers : dict
        Offsets at which parts of the arrays begin, and other integers.
    arrays : dict of arrays
        The arrays, in memory or mapped from a file.
    """

    layout: str
    parameters: dict[str, Any]
    numbers: dict[str, int]
    arrays: dict[str, NDArray[Any]]

    @classmethod
    def from_built(cls, layout: str, parameters: dict[str, Any], built: Mapping[str, Any]) -> Tables:
        """Return tables made from the result of a builder in the core, divided into numbers and arrays."""
        numbers = {name: int(built[name]) for name in _NUMBERS[layout]}
        arrays = {name: np.asarray(array) for name, array in built.items() if name not in numbers}
        return cls(layout, parameters, numbers, arrays)

    @property
    def nbytes(self) -> int:
        """Size of all arrays in bytes."""
        return sum(int(array.nbytes) for array in self.arrays.values())

    @property
    def has_trie(self) -> bool:
        """Whether a prefix trie, which may be empty, is among the arrays."""
        return read_limit(self.arrays) > 0

    def engine(self) -> Engine:
        """Return an engine that reads the arrays without copies; ValueError if they are invalid."""
        engine = _MAKERS[self.layout]({**self.arrays, **self.numbers}, **self.parameters)
        restore_trie(engine, self.arrays)
        return engine

    @property
    def file_arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that a file stores in addition to the arrays of the model; none for ``int16``."""
        return {} if self.layout == INT16 else self.arrays

    def heaviest_conjunctions(self, top: int) -> dict[str, Any]:
        """Return the heaviest conjunctions in the tables, and the number of conjunctions of each size."""
        return dict(
            list_heaviest({**self.arrays, **self.numbers}, **make_map_arguments(self.parameters), top=top)
        )

    def to_json(self) -> dict[str, Any]:
        """Return everything except the arrays."""
        return {"layout": self.layout, "parameters": self.parameters, "numbers": self.numbers}

    @classmethod
    def from_json(cls, stored: Any, arrays: dict[str, NDArray[Any]]) -> Tables:
        """Return tables made from settings in a file; ValueError unless :meth:`to_json` wrote them."""
        error = ValueError("the settings of the compiled tables are missing or damaged")
        layout = stored.get("layout") if isinstance(stored, dict) else None
        if not isinstance(layout, str) or layout not in _PARAMETERS:
            raise error
        parameters, numbers = stored.get("parameters"), stored.get("numbers")
        if not isinstance(parameters, dict) or set(parameters) != set(_PARAMETERS[layout]):
            raise error
        if not isinstance(numbers, dict) or set(numbers) != set(_NUMBERS[layout]):
            raise error
        if not all(_is_valid_value(value, _TYPES[name]) for name, value in parameters.items()):
            raise error
        if not all(_is_valid_value(value, int) and 0 <= value < 1 << 32 for value in numbers.values()):
            raise error
        if not -(1 << 31) <= parameters.get("degree", 1) < 1 << 31:
            raise error
        if parameters.get("map", "kernel") not in _MAPS or parameters.get("kernel", "linear") not in KERNELS:
            raise error
        return cls(layout, parameters, numbers, arrays)


def _is_valid_value(value: Any, kinds: type | tuple[type, ...]) -> bool:
    if isinstance(value, bool):
        return kinds is bool
    if not isinstance(value, kinds):
        return False
    return not isinstance(value, int | float) or abs(value) <= sys.float_info.max
