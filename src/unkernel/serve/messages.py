"""Requests and answers, in the words of ASGI and in ours."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
HeaderList = list[tuple[bytes, bytes]]

JSON: HeaderList = [(b"content-type", b"application/json")]


class Reply(NamedTuple):
    """The answer to a request: a body, or its parts as they come."""

    body: bytes | AsyncIterator[bytes]
    status: int
    headers: HeaderList


class Asked(NamedTuple):
    """A request, as far as those who answer it look at it."""

    headers: Mapping[bytes, bytes]
    query: bytes
    receive: Receive


Handler = Callable[[str, Asked], Awaitable[Reply]]


@dataclass(frozen=True)
class Route:
    """What answers at a path, for which model."""

    model: str
    endpoint: str
    handler: Handler
