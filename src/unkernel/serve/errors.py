"""Errors of requests, and their responses."""

from __future__ import annotations

import re
from typing import Any

from unkernel.serve.answerers import FieldError

_COLUMN = re.compile(r"column '((?:[^'\\]|\\.)*)'")  # finds the column that a message names
_QUOTED = r"'(?:[^'\\]|\\.)*'"
# Matches the names of Python types. The client's quoted values match too, but are not replaced.
_PYTHON_TYPE = re.compile(rf"{_QUOTED}|a value of type (\w+)|a (dict)\b")
_JSON_TYPES = {
    "dict": "an object",
    "list": "a list",
    "str": "a string",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "NoneType": "null",
}
_TREE = re.compile(r"^trees\[\d+\]:(\d+):(\d+): ")  # the index is meaningless: a request has one tree


class RequestError(Exception):
    """The rejection of a request.

    Attributes
    ----------
    status : int
        The HTTP status.
    reason : str
        A message that describes the error, its position, and the expected input.
    field : str or None
        The invalid part of the body, if known.
    close : bool
        Whether to close the connection without reading the rest of the request.
    """

    def __init__(self, status: int, reason: str, *, field: str | None = None, close: bool = False) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.field = field
        self.close = close

    def to_json(self) -> dict[str, Any]:
        """Return the body of the response."""
        return {"error": self.reason} | ({} if self.field is None else {"field": self.field})


def make_input_error(error: Exception, place: str = "") -> RequestError:
    """Return a RequestError for an error of a model; `place` is the path of the input in the body."""
    reason = _TREE.sub(r"line \1, character \2: ", _PYTHON_TYPE.sub(_name_json_type, str(error)))
    column = _COLUMN.search(reason)
    named_field = error.field if isinstance(error, FieldError) else ""
    input_part = named_field or (column[1] if column else "")
    field = ".".join(filter(None, (place, input_part)))
    return RequestError(400, f"{place}: {reason}" if place else reason, field=field or None)


def _name_json_type(match: re.Match[str]) -> str:
    """Return the JSON name of a Python type."""
    return _JSON_TYPES.get(match[1] or match[2] or "", match[0])
