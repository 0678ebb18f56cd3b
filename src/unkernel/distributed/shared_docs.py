"""Complete the docstrings of estimators on a cluster with entries from the local estimators."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

_Estimator = TypeVar("_Estimator", bound=type)
_TITLE = re.compile(r"^(\w[\w ]*)\n-+\n", re.MULTILINE)
_ENTRY = re.compile(r"^(?=\S)", re.MULTILINE)  # an entry begins at each line without indentation


def complete_docs(*others: type, without: tuple[str, ...] = ()) -> Callable[[_Estimator], _Estimator]:
    """Return a decorator that completes the parameters and attributes in the docstring of a class.

    Missing entries are copied from the classes `others`. Parameters are listed in the order of the signature,
    and attributes in the order of `others`. `without` names attributes that the class does not have.
    """

    def complete(estimator: _Estimator) -> _Estimator:
        if estimator.__doc__ is None:  # python -OO strips docstrings
            return estimator
        sections = _read_sections(estimator)
        for title in ("Parameters", "Attributes"):
            entries: dict[str, str] = {}
            for owner in others:
                entries |= _read_entries(_read_sections(owner).get(title, ""))
            entries = {name: entry for name, entry in entries.items() if name not in without}
            entries |= _read_entries(sections.get(title, ""))
            if title == "Parameters":
                entries = {name: entries[name] for name in inspect.signature(estimator).parameters}
            sections[title] = "".join(entries.values()) + "\n"
        summary = sections.pop("")
        text = [f"{title}\n{'-' * len(title)}\n{body}" for title, body in sections.items()]
        estimator.__doc__ = (summary + "".join(text)).rstrip() + "\n"
        return estimator

    return complete


def _read_sections(owner: Any) -> dict[str, str]:
    """Return the sections of a docstring by title; the text before them has an empty title."""
    first, *titles_and_bodies = _TITLE.split(inspect.cleandoc(owner.__doc__) + "\n")
    return {"": first} | dict(zip(titles_and_bodies[::2], titles_and_bodies[1::2], strict=True))


def _read_entries(section: str) -> dict[str, str]:
    entries = [entry.rstrip() + "\n" for entry in _ENTRY.split(section) if entry.strip()]
    return {entry.partition(" :")[0]: entry for entry in entries}
