"""Errors of requests, and their responses."""

from __future__ import annotations

import re
from typing import Any

from unkernel.serve.answerers import FieldError

_COLUMN = re.compile(r"column '((?:[^'\\]|\\.)*)'")
_QUOTED = r"'(?:[^'\\]|\\.)*'"
_PYTHON = re.compile(rf"{_QUOTED}|a value of type (\w+)|a (dict)\b")  # what is quoted is the client's
_JSON = {
    "dict": "an object",
    "list": "a list",
    "str": "a string",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "NoneType": "null",
}
_TREE = re.compile(r"^trees\[\d+\]:(\d+):(\d+): ")  # a place among several trees, of which there is one


class RequestError(Exception):
    """A request that cannot be answered.

    Attributes
    ----------
    status : int
        Of HTTP.
    reason : str
        What was wrong, where, and what would be right.
    field : str or None
        Which part of the body, where that is known.
    close : bool
        Whether the rest of the request is not read, so that the connection ends.
    """

    def __init__(self, status: int, reason: str, *, field: str | None = None, close: bool = False) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.field = field
        self.close = close

    def to_json(self) -> dict[str, Any]:
        """The body of the answer."""
        return {"error": self.reason} | ({} if self.field is None else {"field": self.field})


def bad_input(error: Exception, place: str = "") -> RequestError:
    """The error of an input that a model refuses; `place` is its place in the body."""
    reason = _TREE.sub(r"line \1, character \2: ", _PYTHON.sub(_in_json, str(error)))
    column = _COLUMN.search(reason)
    known = error.field if isinstance(error, FieldError) else ""
    part = known or (column[1] if column else "")
    field = ".".join(filter(None, (place, part)))
    return RequestError(400, f"{place}: {reason}" if place else reason, field=field or None)


def _in_json(found: re.Match[str]) -> str:
    """A type of Python in the words of JSON."""
    return _JSON.get(found[1] or found[2] or "", found[0])
