"""Receive the bodies of requests, with timeouts, and decode JSON."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec

from unkernel.serve.errors import RequestError

Receive = Callable[[], Awaitable[Any]]
Headers = Mapping[bytes, bytes]
_Part = TypeVar("_Part")
_decode = msgspec.json.Decoder().decode
_BOM = b"\xef\xbb\xbf"
# A letter, unless it begins a number that JSON cannot express: probably a text without quotes.
_BARE_WORD = re.compile(rb"\s*(?!NaN|[-+]?Infinity)[A-Za-z\xc3-\xf4]")


class DisconnectedError(Exception):
    """The client has closed the connection."""


class BodyTimeouts:
    """Timeouts for the parts of request bodies.

    A timer for each request would take longer than many predictions. Instead, one loop cancels all requests
    that have waited too long.

    Parameters
    ----------
    seconds : float
        The timeout; a wait ends after at most 1.25 times this number.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waiting: dict[asyncio.Task[Any], float] = {}
        self._cancelled: set[asyncio.Task[Any]] = set()

    async def wait_for(self, part: Awaitable[_Part]) -> _Part:
        """Return the next part of a body; raise a RequestError after the timeout."""
        task = asyncio.current_task()
        assert task is not None
        self._waiting[task] = time.monotonic()
        try:
            return await part
        except asyncio.CancelledError:
            if task not in self._cancelled:
                raise
            task.uncancel()
            message = f"the rest of the body did not arrive within {self._seconds:g} s"
            raise RequestError(408, message, close=True) from None
        finally:
            del self._waiting[task]
            self._cancelled.discard(task)

    async def watch(self) -> None:
        """Cancel overdue requests at regular intervals, in an endless loop."""
        while True:
            await asyncio.sleep(self._seconds / 4)
            latest_start = time.monotonic() - self._seconds
            for task, start_time in self._waiting.items():
                if start_time < latest_start and task not in self._cancelled:
                    self._cancelled.add(task)
                    task.cancel()


async def read_body(receive: Receive, headers: Headers, limit: int) -> bytes:
    """Read a body; raise a RequestError if it has more than `limit` bytes."""
    if int(headers.get(b"content-length", 0)) > limit:
        raise _make_size_error(limit)
    message = await _receive_part(receive)
    if not message.get("more_body"):
        body: bytes = message["body"]
        if len(body) > limit:
            raise _make_size_error(limit)
        return body
    parts, size = [message["body"]], len(message["body"])
    while message.get("more_body"):
        message = await _receive_part(receive)
        parts.append(message["body"])
        size += len(message["body"])
        if size > limit:
            raise _make_size_error(limit)
    return b"".join(parts)


async def _receive_part(receive: Receive) -> Any:
    message = await receive()
    if message["type"] != "http.request":
        raise DisconnectedError
    return message


async def read_lines(receive: Receive, limit: int) -> AsyncIterator[bytes]:
    """Yield complete lines of a stream as they arrive; raise a RequestError for a line over `limit` bytes."""
    line_parts: list[bytes] = []  # the parts of an incomplete line
    size, has_more = 0, True
    while has_more:
        message = await _receive_part(receive)
        part, has_more = message["body"], message.get("more_body", False)
        end = part.rfind(b"\n") + 1 if has_more else len(part)
        if end or not has_more:
            yield b"".join([*line_parts, part[:end]])
            line_parts, size, part = [], 0, part[end:]
        line_parts.append(part)
        size += len(part)
        if size > limit:
            raise _make_size_error(limit, "a line")


def _make_size_error(limit: int, subject: str = "the body") -> RequestError:
    return RequestError(413, f"{subject} has more than {limit:,} bytes, the server's limit", close=True)


def decode_json(body: bytes, name: str = "the body") -> Any:
    """Decode JSON, with or without a byte order mark; raise a RequestError about `name` if it is invalid."""
    body = body.removeprefix(_BOM)
    if not body:
        raise RequestError(400, f"{name} is empty: send one input, or a list of them")
    try:
        return _decode(body)
    except msgspec.DecodeError as error:
        decoded = _decode_surrogates(body)
        if decoded is not None:
            return decoded
        raise RequestError(400, _explain_invalid_json(body, name, error)) from None
    except UnicodeDecodeError:
        raise RequestError(400, f"{name} is not UTF-8: byte {_find_invalid_byte(body)} is invalid") from None
    except RecursionError:
        raise RequestError(400, f"{name} is nested too deeply") from None


def _explain_invalid_json(body: bytes, name: str, error: msgspec.DecodeError) -> str:
    if "out of range" in str(error):
        return f"{name} has a number that is larger than any float"
    hint = "; send a text in double quotes" if _BARE_WORD.match(body) else ""
    return f"{name} is not JSON: {error}{hint}"


def _decode_surrogates(body: bytes) -> Any:
    """Decode JSON with lone surrogates, which models will reject; return None if it is not JSON."""
    if b"\\u" not in body:
        return None
    try:
        return json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None


def _refuse_constant(word: str) -> None:
    """Reject NaN and Infinity, which Python's decoder would accept."""
    raise ValueError(word)


def _find_invalid_byte(body: bytes) -> int:
    """Return the offset of the first byte that is not UTF-8. (JSON decoders count within a string.)"""
    try:
        body.decode()
    except UnicodeDecodeError as error:
        return error.start
    return len(body)


encode_json: Callable[[Any], bytes] = msgspec.json.Encoder().encode
