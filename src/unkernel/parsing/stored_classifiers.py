"""Store the classifiers of a parser in its file. Array names begin with the name of their classifier.

Weights are stored in 16 bits if they fit, as the weights of online learners do. If many weights are zero,
only the nonzero weights are stored. Both steps make files several times smaller and lose no information.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.data import file_memory_limit
from unkernel.engines.classifier_files import make_classifier
from unkernel.engines.rows.classifier import CompiledClassifier
from unkernel.errors import FormatError
from unkernel.models import container

Arrays = dict[str, NDArray[Any]]
_PARTS = "parts"
_WEIGHTS = "weights"
# Arrays of the nonzero weights: column and value of each weight, and the number of weights of each key.
_COLUMNS, _VALUES, _COUNTS = "weights.places", "weights.values", "weights.counts"
_UNIT = "weights.unit"
_KEYS, _STEPS, _LONG_STEPS = "keys", "keys.steps", "keys.long_steps"
_MAX_WEIGHT_COLUMNS = 1 << 16
_LONG_STEP = np.uint64(0xFFFF)  # in `_STEPS`, stands for a step in `_LONG_STEPS`
_FINEST_UNIT = 2.0**-10


def store_classifiers(parts: Mapping[str, CompiledClassifier]) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays of all classifiers, and the setting that lists their names and metadata.

    >>> store_classifiers({})
    ({}, {'parts': {}})
    """
    arrays: Arrays = {}
    stored = {}
    for name, classifier in parts.items():
        kind, classifier_arrays, settings = classifier.to_container()
        if classifier.chosen is not None:  # measured times would make files differ
            settings["candidates"] = [classifier.chosen.without_time().to_json()]
        arrays |= {_make_prefix(name) + key: array for key, array in _pack(classifier_arrays).items()}
        stored[name] = {"kind": kind, "settings": settings}
    return arrays, {_PARTS: stored}


def restore_classifiers(
    file: str, arrays: Arrays, settings: Mapping[str, Any]
) -> dict[str, CompiledClassifier]:
    """Return the classifiers stored by :func:`store_classifiers`; ``FormatError`` if they are damaged."""
    stored = settings.get(_PARTS)
    if not isinstance(stored, dict):
        raise FormatError(file, 0, 0, "the parser's file does not list its classifiers")
    return {name: _restore_classifier(file, name, arrays, part) for name, part in stored.items()}


def _restore_classifier(file: str, name: str, arrays: Arrays, part: Any) -> CompiledClassifier:
    if not isinstance(part, dict) or not isinstance(part.get("settings"), dict):
        raise FormatError(file, 0, 0, f"the parser's classifier {name!r} is damaged")
    classifier_arrays = select_arrays(arrays, _make_prefix(name))
    classifier = make_classifier(
        file, _unpack(file, classifier_arrays), part["settings"], kind=part.get("kind")
    )
    if not isinstance(classifier, CompiledClassifier):
        raise FormatError(file, 0, 0, f"the parser's classifier {name!r} is a tree classifier")
    return classifier


def select_arrays(arrays: Arrays, prefix: str) -> Arrays:
    """Return the arrays whose names begin with a prefix, under their names without the prefix."""
    return {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}


def pack_strings(names: Sequence[str]) -> NDArray[np.uint8]:
    """Encode strings without line feeds as bytes, with a line feed after each string."""
    return np.frombuffer("".join(f"{name}\n" for name in names).encode(), dtype=np.uint8)


def unpack_strings(file: str, arrays: Arrays, key: str) -> list[str]:
    """Return the strings that :func:`pack_strings` packed."""
    packed = container.read_array(file, arrays, key, [np.dtype(np.uint8)], 1)
    return packed.tobytes().decode().split("\n")[:-1]


def _make_prefix(name: str) -> str:
    return f"{_PARTS}.{name}."


def _pack(arrays: Arrays) -> Arrays:
    """Replace keys by differences and weights by 16-bit integers; unchanged if the weights do not fit."""
    quantized = _quantize(arrays.get(_WEIGHTS)) if _KEYS in arrays else None
    if quantized is None:
        return arrays
    weights, unit = quantized
    others = {key: array for key, array in arrays.items() if key not in (_WEIGHTS, _KEYS)}
    others |= _pack_keys(arrays[_KEYS]) | {_UNIT: np.array([unit])}
    rows, columns = np.nonzero(weights)
    if len(weights) * 2 + len(columns) * 4 > weights.nbytes:  # storing all weights takes fewer bytes
        return others | {_VALUES: weights.reshape(-1)}
    return others | {
        _COUNTS: np.bincount(rows, minlength=len(weights)).astype("<u2"),
        _COLUMNS: columns.astype("<u2"),
        _VALUES: weights[rows, columns],
    }


def _quantize(weights: NDArray[Any] | None) -> tuple[NDArray[np.int16], float] | None:
    """Return weights as 16-bit multiples of a unit, and the unit, a power of two; None if they do not fit."""
    if weights is None or weights.ndim != 2 or not 0 < weights.shape[1] < _MAX_WEIGHT_COLUMNS:
        return None
    unit = _FINEST_UNIT
    while np.abs(weights).max(initial=0.0) > unit * np.iinfo(np.int16).max:
        unit *= 2.0
    short = (weights / unit).astype("<i2")
    return (short, unit) if np.array_equal(short * unit, weights) else None


def _pack_keys(keys: NDArray[np.uint64]) -> Arrays:
    """Return ascending keys as 16-bit differences; larger differences go into an array of their own."""
    steps = np.diff(keys, prepend=np.uint64(0))
    return {
        _STEPS: np.minimum(steps, _LONG_STEP).astype("<u2"),
        _LONG_STEPS: steps[steps >= _LONG_STEP].astype("<u8"),
    }


def _unpack(file: str, arrays: Arrays) -> Arrays:
    """Restore the arrays that :func:`_pack` replaced."""
    if _UNIT not in arrays:
        return arrays
    keys = _unpack_keys(file, arrays)
    values = container.read_array(file, arrays, _VALUES, [np.dtype("<i2")], 1)
    unit = container.read_array(file, arrays, _UNIT, [np.dtype("<f8")], 1)
    scores = len(container.read_array(file, arrays, "constants", [np.dtype("<f8")], 1))
    if len(unit) != 1 or not np.isfinite(unit).all():
        raise _new_damage_error(file)
    file_memory_limit.claim(8.0 * len(keys) * scores, "weights that the file stores in compact form")
    if _COUNTS in arrays:
        weights = np.zeros(len(keys) * scores)
        weights[_find_nonzero_indices(file, arrays, len(keys), len(values), scores)] = values * unit[0]
    elif len(values) == len(keys) * scores:
        weights = values * unit[0]
    else:
        raise _new_damage_error(file)
    packed = (_STEPS, _LONG_STEPS, _UNIT, _COUNTS, _COLUMNS, _VALUES)
    others = {key: array for key, array in arrays.items() if key not in packed}
    return others | {_KEYS: keys, _WEIGHTS: weights.reshape(len(keys), scores)}


def _find_nonzero_indices(
    file: str, arrays: Arrays, keys: int, values: int, scores: int
) -> NDArray[np.int64]:
    """Return the index of each stored value among the weights of all keys."""
    counts = container.read_array(file, arrays, _COUNTS, [np.dtype("<u2")], 1)
    columns = container.read_array(file, arrays, _COLUMNS, [np.dtype("<u2")], 1)
    is_valid = len(counts) == keys and len(columns) == values == counts.sum(dtype=np.int64)
    if not is_valid or not (columns < scores).all():
        raise _new_damage_error(file)
    indices: NDArray[np.int64] = np.repeat(np.arange(keys, dtype=np.int64) * scores, counts) + columns
    return indices


def _unpack_keys(file: str, arrays: Arrays) -> NDArray[np.uint64]:
    """Return the keys that :func:`_pack_keys` packed."""
    short_steps = container.read_array(file, arrays, _STEPS, [np.dtype("<u2")], 1)
    long_steps = container.read_array(file, arrays, _LONG_STEPS, [np.dtype("<u8")], 1)
    steps = short_steps.astype(np.uint64)
    is_long = steps == _LONG_STEP
    if np.count_nonzero(is_long) != len(long_steps):
        raise _new_damage_error(file)
    steps[is_long] = long_steps
    # If damaged steps overflow, the keys are no longer ascending, and the classifier rejects them.
    return np.cumsum(steps, dtype=np.uint64)


def _new_damage_error(file: str) -> FormatError:
    return FormatError(file, 0, 0, "the weights of a classifier are damaged")
