"""Classifiers inside a parser's file: each keeps its arrays and settings under a name of its own.

Weights that are short, as those of online learners are, take 16 bits each, and zeros take none where there
are many: nothing is lost, and a file takes a fraction of the room.
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
_PLACES, _VALUES, _COUNTS = "weights.places", "weights.values", "weights.counts"
_UNIT = "weights.unit"
_KEYS, _STEPS, _LONG_STEPS = "keys", "keys.steps", "keys.long_steps"
_WIDEST = 1 << 16
_LONG = np.uint64(0xFFFF)  # a step that stands among the long ones
_FINEST_UNIT = 2.0**-10


def store_classifiers(parts: Mapping[str, CompiledClassifier]) -> tuple[Arrays, dict[str, Any]]:
    """The arrays of all classifiers, and the setting that says which there are.

    >>> store_classifiers({})
    ({}, {'parts': {}})
    """
    arrays: Arrays = {}
    stored = {}
    for name, classifier in parts.items():
        kind, own, settings = classifier.to_container()
        if classifier.chosen is not None:  # what a clock said of others is not kept: files would differ by it
            settings["candidates"] = [classifier.chosen.without_time().to_json()]
        arrays |= {_prefix(name) + key: array for key, array in _pack(own).items()}
        stored[name] = {"kind": kind, "settings": settings}
    return arrays, {_PARTS: stored}


def restore_classifiers(
    file: str, arrays: Arrays, settings: Mapping[str, Any]
) -> dict[str, CompiledClassifier]:
    """The classifiers that :func:`store_classifiers` put away; whatever is not sound is a ``FormatError``."""
    stored = settings.get(_PARTS)
    if not isinstance(stored, dict):
        raise FormatError(file, 0, 0, "the parser's file does not say which classifiers it holds")
    return {name: _restore_classifier(file, name, arrays, part) for name, part in stored.items()}


def _restore_classifier(file: str, name: str, arrays: Arrays, part: Any) -> CompiledClassifier:
    if not isinstance(part, dict) or not isinstance(part.get("settings"), dict):
        raise FormatError(file, 0, 0, f"the parser's classifier {name!r} is damaged")
    prefix = _prefix(name)
    own = {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
    classifier = make_classifier(file, _unpack(file, own), part["settings"], kind=part.get("kind"))
    if not isinstance(classifier, CompiledClassifier):
        raise FormatError(file, 0, 0, f"the parser's classifier {name!r} is one of trees")
    return classifier


def pack_strings(names: Sequence[str]) -> NDArray[np.uint8]:
    """Strings, each ended by a line end, which none has inside."""
    return np.frombuffer("".join(f"{name}\n" for name in names).encode(), dtype=np.uint8)


def unpack_strings(file: str, arrays: Arrays, key: str) -> list[str]:
    """What :func:`pack_strings` put away."""
    packed = container.read_array(file, arrays, key, [np.dtype(np.uint8)], 1)
    return packed.tobytes().decode().split("\n")[:-1]


def _prefix(name: str) -> str:
    return f"{_PARTS}.{name}."


def _pack(arrays: Arrays) -> Arrays:
    """Keys as their differences, and weights that are short as 16 bits, with or without their zeros."""
    short = _quantize(arrays.get(_WEIGHTS)) if _KEYS in arrays else None
    if short is None:
        return arrays
    weights, unit = short
    others = {key: array for key, array in arrays.items() if key not in (_WEIGHTS, _KEYS)}
    others |= _pack_keys(arrays[_KEYS]) | {_UNIT: np.array([unit])}
    rows, places = np.nonzero(weights)
    if len(weights) * 2 + len(places) * 4 > weights.nbytes:
        return others | {_VALUES: weights.reshape(-1)}
    return others | {
        _COUNTS: np.bincount(rows, minlength=len(weights)).astype("<u2"),
        _PLACES: places.astype("<u2"),
        _VALUES: weights[rows, places],
    }


def _quantize(weights: NDArray[Any] | None) -> tuple[NDArray[np.int16], float] | None:
    """The weights as multiples of a power of two that fit 16 bits, and that power; None of other weights."""
    if weights is None or weights.ndim != 2 or not 0 < weights.shape[1] < _WIDEST:
        return None
    unit = _FINEST_UNIT
    while np.abs(weights).max(initial=0.0) > unit * np.iinfo(np.int16).max:
        unit *= 2.0
    short = (weights / unit).astype("<i2")
    return (short, unit) if np.array_equal(short * unit, weights) else None


def _pack_keys(keys: NDArray[np.uint64]) -> Arrays:
    steps = np.diff(keys, prepend=np.uint64(0))
    return {_STEPS: np.minimum(steps, _LONG).astype("<u2"), _LONG_STEPS: steps[steps >= _LONG].astype("<u8")}


def _unpack(file: str, arrays: Arrays) -> Arrays:
    if _UNIT not in arrays:
        return arrays
    keys = _unpack_keys(file, arrays)
    values = container.read_array(file, arrays, _VALUES, [np.dtype("<i2")], 1)
    unit = container.read_array(file, arrays, _UNIT, [np.dtype("<f8")], 1)
    scores = len(container.read_array(file, arrays, "constants", [np.dtype("<f8")], 1))
    if len(unit) != 1 or not np.isfinite(unit).all():
        raise _damage_error(file)
    file_memory_limit.claim(8.0 * len(keys) * scores, "weights of which the file holds few")
    if _COUNTS in arrays:
        weights = np.zeros(len(keys) * scores)
        weights[_find_nonzero_places(file, arrays, len(keys), len(values), scores)] = values * unit[0]
    elif len(values) == len(keys) * scores:
        weights = values * unit[0]
    else:
        raise _damage_error(file)
    packed = (_STEPS, _LONG_STEPS, _UNIT, _COUNTS, _PLACES, _VALUES)
    others = {key: array for key, array in arrays.items() if key not in packed}
    return others | {_KEYS: keys, _WEIGHTS: weights.reshape(len(keys), scores)}


def _find_nonzero_places(file: str, arrays: Arrays, keys: int, values: int, scores: int) -> NDArray[np.int64]:
    """Where the values stand among the weights of all keys."""
    counts = container.read_array(file, arrays, _COUNTS, [np.dtype("<u2")], 1)
    places = container.read_array(file, arrays, _PLACES, [np.dtype("<u2")], 1)
    sound = len(counts) == keys and len(places) == values == counts.sum(dtype=np.int64)
    if not sound or not (places < scores).all():
        raise _damage_error(file)
    found: NDArray[np.int64] = np.repeat(np.arange(keys, dtype=np.int64) * scores, counts) + places
    return found


def _unpack_keys(file: str, arrays: Arrays) -> NDArray[np.uint64]:
    short = container.read_array(file, arrays, _STEPS, [np.dtype("<u2")], 1)
    long = container.read_array(file, arrays, _LONG_STEPS, [np.dtype("<u8")], 1)
    steps = short.astype(np.uint64)
    is_long = steps == _LONG
    if np.count_nonzero(is_long) != len(long):
        raise _damage_error(file)
    steps[is_long] = long
    return np.cumsum(steps, dtype=np.uint64)  # of damaged ones, what overflows does not ascend


def _damage_error(file: str) -> FormatError:
    return FormatError(file, 0, 0, "the weights of a classifier are damaged")
