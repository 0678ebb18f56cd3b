"""Types of requests, responses and endpoints."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from unkernel.serve.served_models import ServedModel

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
HeaderList = list[tuple[bytes, bytes]]

SHORT_BODY_BYTES = 1 << 14  # requests with longer bodies are handled in a thread
JSON: HeaderList = [(b"content-type", b"application/json")]


class Reply(NamedTuple):
    """The response to a request. Its body is either complete or a stream of parts."""

    body: bytes | AsyncIterator[bytes]
    status: int
    headers: HeaderList


class Head(NamedTuple):
    """A request without its body."""

    headers: Mapping[bytes, bytes]
    query: bytes = b""


Answer = Callable[["ServedModel", Head, bytes], Reply]


@dataclass(frozen=True)
class Endpoint:
    """An endpoint of every model.

    Attributes
    ----------
    name : str
    answer : callable
        Returns a model's reply, given a head and a body. It is called on the event loop or in a thread.
    short : bool, default=True
        Whether fast models answer short requests on the event loop.
    streams : bool, default=False
        Whether the body may be a stream of JSON lines; each line is answered when it arrives.
    """

    name: str
    answer: Answer
    short: bool = True
    streams: bool = False


@dataclass(frozen=True)
class Route:
    """An endpoint of a model."""

    model: str
    endpoint: Endpoint
