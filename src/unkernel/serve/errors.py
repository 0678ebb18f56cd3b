"""What is wrong with a request, as its answer tells."""

from __future__ import annotations

import re
from typing import Any

_COLUMN = re.compile(r"column '((?:[^'\\]|\\.)*)'")


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
    """What a model says of an input that it cannot read; `place` is where that stands in the body."""
    reason = str(error)
    column = _COLUMN.search(reason)
    field = ".".join(filter(None, (place, column[1] if column else "")))
    return RequestError(400, f"{place}: {reason}" if place else reason, field=field or None)
