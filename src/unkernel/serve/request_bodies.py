"""Bodies of requests: how they are received, and read as JSON."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec

from unkernel.serve.errors import RequestError

Receive = Callable[[], Awaitable[Any]]
Headers = Mapping[bytes, bytes]
_Part = TypeVar("_Part")
_decode = msgspec.json.Decoder().decode


class DisconnectedError(Exception):
    """The client has closed the connection."""


class Patience:
    """How long the parts of bodies are waited for.

    A timer for each request takes longer than many a model. So requests that wait are noted, and every now
    and then those are given up that have waited for too long.

    Parameters
    ----------
    seconds : float
        Waits end after this time, and at most a quarter of it later.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waiting: dict[asyncio.Task[Any], float] = {}
        self._given_up: set[asyncio.Task[Any]] = set()

    async def wait_for(self, part: Awaitable[_Part]) -> _Part:
        """What is waited for; a RequestError if it does not come."""
        task = asyncio.current_task()
        assert task is not None
        self._waiting[task] = time.monotonic()
        try:
            return await part
        except asyncio.CancelledError:
            if task not in self._given_up:
                raise
            task.uncancel()
            words = f"the rest of the body did not come within {self._seconds:g} s"
            raise RequestError(408, words, close=True) from None
        finally:
            del self._waiting[task]
            self._given_up.discard(task)

    async def give_up(self) -> None:
        """Cancel the requests that wait too long, in an endless loop."""
        while True:
            await asyncio.sleep(self._seconds / 4)
            latest = time.monotonic() - self._seconds
            for task, began in self._waiting.items():
                if began < latest and task not in self._given_up:
                    self._given_up.add(task)
                    task.cancel()


async def whole_body(receive: Receive, headers: Headers, most: int) -> bytes:
    """All of a body; a RequestError if it is too long."""
    if int(headers.get(b"content-length", 0)) > most:
        raise _too_long(most)
    message = await _next_part(receive)
    if not message.get("more_body"):
        body: bytes = message["body"]
        if len(body) > most:
            raise _too_long(most)
        return body
    parts, size = [message["body"]], len(message["body"])
    while message.get("more_body"):
        message = await _next_part(receive)
        parts.append(message["body"])
        size += len(message["body"])
        if size > most:
            raise _too_long(most)
    return b"".join(parts)


async def _next_part(receive: Receive) -> Any:
    message = await receive()
    if message["type"] != "http.request":
        raise DisconnectedError
    return message


async def lines_of(receive: Receive, most: int) -> AsyncIterator[bytes]:
    """A stream's lines, as many at a time as have come; a RequestError if one is too long."""
    held: list[bytes] = []  # parts of a line that has not ended
    size, more = 0, True
    while more:
        message = await _next_part(receive)
        part, more = message["body"], message.get("more_body", False)
        end = part.rfind(b"\n") + 1 if more else len(part)
        if end or not more:
            yield b"".join([*held, part[:end]])
            held, size, part = [], 0, part[end:]
        held.append(part)
        size += len(part)
        if size > most:
            raise _too_long(most, "a line")


def _too_long(most: int, what: str = "the body") -> RequestError:
    return RequestError(413, f"{what} has more than {most:,} bytes, the server's limit", close=True)


def from_json(body: bytes) -> Any:
    """Decode a JSON body; a RequestError if it is invalid."""
    if not body:
        raise RequestError(400, "the body is empty: send one input, or a list of them")
    try:
        return _decode(body)
    except msgspec.DecodeError as error:
        if (found := _with_surrogates(body)) is not None:
            return found
        hint = "" if body.lstrip()[:1] in (b"{", b"[") else "; a text is sent in double quotes"
        raise RequestError(400, f"the body is not JSON: {error}{hint}") from None
    except UnicodeDecodeError:
        raise RequestError(400, f"the body is not UTF-8: byte {_first_fault(body)} is invalid") from None
    except RecursionError:
        raise RequestError(400, "the body is nested too deeply") from None


def _with_surrogates(body: bytes) -> Any:
    """JSON whose strings have lone surrogates, which models refuse by column; None for any other fault."""
    if b"\\u" not in body:
        return None
    try:
        return json.loads(body, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _refuse(word: str) -> None:
    raise ValueError(word)


def _first_fault(body: bytes) -> int:
    """The first byte that is not UTF-8; decoders of JSON count from where a string begins."""
    try:
        body.decode()
    except UnicodeDecodeError as error:
        return error.start
    return len(body)


to_json: Callable[[Any], bytes] = msgspec.json.Encoder().encode
