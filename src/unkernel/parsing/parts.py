"""Classifiers inside a parser's file: each keeps its arrays and settings under a name of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from unkernel.engines import CompiledClassifier
from unkernel.engines.classifier import classifier_from
from unkernel.errors import FormatError

Arrays = dict[str, NDArray[Any]]
_PARTS = "parts"


def store_parts(parts: Mapping[str, CompiledClassifier]) -> tuple[Arrays, dict[str, Any]]:
    """The arrays of all classifiers, and the setting that says which there are.

    >>> store_parts({})
    ({}, {'parts': {}})
    """
    arrays: Arrays = {}
    stored = {}
    for name, classifier in parts.items():
        kind, own, settings = classifier.to_container()
        arrays |= {_prefix(name) + key: array for key, array in own.items()}
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
    classifier = classifier_from(file, part.get("kind"), own, part["settings"])
    if not isinstance(classifier, CompiledClassifier):
        raise FormatError(file, 0, 0, f"the parser's classifier {name!r} is one of trees")
    return classifier


def _prefix(name: str) -> str:
    return f"{_PARTS}.{name}."
