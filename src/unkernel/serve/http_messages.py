"""Requests and answers, in the words of ASGI and in ours."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from unkernel.serve.served_models import Served

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


class Head(NamedTuple):
    """A request without its body."""

    headers: Mapping[bytes, bytes]
    query: bytes = b""


Answer = Callable[["Served", Head, bytes], Reply]


@dataclass(frozen=True)
class Endpoint:
    """An endpoint that models answer.

    Attributes
    ----------
    name : str
    answer : callable
        Gives the answer of a model to a head and a body, in any thread.
    short : bool, default=True
        Whether models that are quick answer short bodies within microseconds.
    streams : bool, default=False
        Whether a body may be JSON lines, which are answered as they come.
    """

    name: str
    answer: Answer
    short: bool = True
    streams: bool = False


@dataclass(frozen=True)
class Route:
    """A model and an endpoint of it."""

    model: str
    endpoint: Endpoint
