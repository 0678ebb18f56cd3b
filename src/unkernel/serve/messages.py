"""Requests and answers, in the words of ASGI and in ours."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
HeaderList = list[tuple[bytes, bytes]]

SHORT = 1 << 14  # bytes of a body: longer ones seldom come in one piece, and are answered in a thread
JSON: HeaderList = [(b"content-type", b"application/json")]


class Reply(NamedTuple):
    """The answer to a request: a body, or its parts as they come."""

    body: bytes | AsyncIterator[bytes]
    status: int
    headers: HeaderList


class Asked(NamedTuple):
    """A request, as handlers see it."""

    headers: Mapping[bytes, bytes]
    query: bytes
    receive: Receive


Handler = Callable[[str, Asked], Awaitable[Reply]]
QuickHandler = Callable[[str, Mapping[bytes, bytes], bytes], Reply | None]


@dataclass(frozen=True)
class Route:
    """The handlers of a path.

    Attributes
    ----------
    model, endpoint : str
    handler : callable
        Gives the answer of a model to a request.
    at_once : callable or None
        Gives the answer of a model to headers and a body, or None where that takes so long that other
        requests should not wait for it.
    """

    model: str
    endpoint: str
    handler: Handler
    at_once: QuickHandler | None = None
