"""Classifiers inside a parser's file: each keeps its arrays and settings under a name of its own.

Weights that fit a float of 32 bits, as those of online learners do, are stored as such, without the zeros:
nothing is lost, and a file of many classes takes a fraction of the room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.engines import CompiledClassifier
from unkernel.engines.classifier import classifier_from
from unkernel.errors import FormatError
from unkernel.models import container

Arrays = dict[str, NDArray[Any]]
_PARTS = "parts"
_WEIGHTS = "weights"
_PLACES, _VALUES, _COUNTS = "weights.places", "weights.values", "weights.counts"
_WIDEST = 1 << 16


def store_parts(parts: Mapping[str, CompiledClassifier]) -> tuple[Arrays, dict[str, Any]]:
    """The arrays of all classifiers, and the setting that says which there are.

    >>> store_parts({})
    ({}, {'parts': {}})
    """
    arrays: Arrays = {}
    stored = {}
    for name, classifier in parts.items():
        kind, own, settings = classifier.to_container()
        if classifier.chosen is not None:  # what a clock said of others is not kept: files would differ by it
            settings["candidates"] = [classifier.chosen.untimed().to_json()]
        arrays |= {_prefix(name) + key: array for key, array in _packed(own).items()}
        stored[name] = {"kind": kind, "settings": settings}
    return arrays, {_PARTS: stored}


def restore_parts(file: str, arrays: Arrays, settings: Mapping[str, Any]) -> dict[str, CompiledClassifier]:
    """The classifiers that :func:`store_parts` put away; whatever is not sound is a ``FormatError``."""
    stored = settings.get(_PARTS)
    if not isinstance(stored, dict):
        raise FormatError(file, 0, 0, "the parser's file does not say which classifiers it holds")
    return {name: _restore(file, name, arrays, part) for name, part in stored.items()}


def _restore(file: str, name: str, arrays: Arrays, part: Any) -> CompiledClassifier:
    if not isinstance(part, dict) or not isinstance(part.get("settings"), dict):
        raise FormatError(file, 0, 0, f"the parser's classifier {name!r} is damaged")
    prefix = _prefix(name)
    own = {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
    classifier = classifier_from(file, part.get("kind"), _unpacked(file, own), part["settings"])
    if not isinstance(classifier, CompiledClassifier):
        raise FormatError(file, 0, 0, f"the parser's classifier {name!r} is one of trees")
    return classifier


def _prefix(name: str) -> str:
    return f"{_PARTS}.{name}."


def _packed(arrays: Arrays) -> Arrays:
    """Without the zeros among weights that floats of 32 bits hold exactly."""
    weights = arrays.get(_WEIGHTS)
    if weights is None or weights.ndim != 2 or not 0 < weights.shape[1] < _WIDEST:
        return arrays
    narrow = weights.astype("<f4")
    if not np.array_equal(narrow, weights):
        return arrays
    rows, places = np.nonzero(narrow)
    return {key: array for key, array in arrays.items() if key != _WEIGHTS} | {
        _COUNTS: np.bincount(rows, minlength=len(narrow)).astype("<u2"),
        _PLACES: places.astype("<u2"),
        _VALUES: narrow[rows, places],
    }


def _unpacked(file: str, arrays: Arrays) -> Arrays:
    if _COUNTS not in arrays:
        return arrays
    counts = container.proper_array(file, arrays, _COUNTS, [np.dtype("<u2")], 1)
    places = container.proper_array(file, arrays, _PLACES, [np.dtype("<u2")], 1)
    values = container.proper_array(file, arrays, _VALUES, [np.dtype("<f4")], 1)
    scores = len(container.proper_array(file, arrays, "constants", [np.dtype("<f8")], 1))
    sound = len(places) == len(values) == counts.sum(dtype=np.int64) and (places < scores).all()
    if not sound or len(counts) * scores > _MOST_WEIGHTS:
        raise FormatError(file, 0, 0, "the weights of a classifier are damaged")
    weights = np.zeros((len(counts), scores))
    weights[np.repeat(np.arange(len(counts)), counts), places] = values
    return {key: array for key, array in arrays.items() if not key.startswith(_WEIGHTS + ".")} | {
        _WEIGHTS: weights
    }


def packed_strings(names: Sequence[str]) -> NDArray[np.uint8]:
    """Strings, each ended by a line end, which none has inside."""
    return np.frombuffer("".join(f"{name}\n" for name in names).encode(), dtype=np.uint8)


def unpacked_strings(file: str, arrays: Arrays, key: str) -> list[str]:
    """What :func:`packed_strings` put away."""
    packed = container.proper_array(file, arrays, key, [np.dtype(np.uint8)], 1)
    return packed.tobytes().decode().split("\n")[:-1]


_MOST_WEIGHTS = 1 << 30  # a file may not claim zeros without end
