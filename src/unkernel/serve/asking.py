"""The endpoints that models answer: predict, explain and infer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
import numpy as np

from unkernel._core import JsonShape
from unkernel.serve import protocol
from unkernel.serve.answering import Answerer, ItemError
from unkernel.serve.bodies import Headers, Patience, from_json, lines_of, to_json, whole_body
from unkernel.serve.errors import RequestError, bad_input
from unkernel.serve.messages import JSON, SHORT, Asked, HeaderList, Reply, Route
from unkernel.serve.models import Models, Served
from unkernel.serve.settings import Limits
from unkernel.serve.threads import AbandonableThreads

_Answer = TypeVar("_Answer")
_LINES = (b"application/x-ndjson", b"application/jsonl", b"application/jsonlines")
_LINES_HEADERS: HeaderList = [(b"content-type", b"application/x-ndjson")]
_TOP, _MOST_TOP = 10, 1000
_MOST_DIGITS = 18  # of a number of bytes
_decode = msgspec.json.Decoder().decode
_encode_lines: Callable[[Any], bytes] = msgspec.json.Encoder().encode_lines


class Asking:
    """Handlers of the endpoints predict, explain and infer.

    Parameters
    ----------
    models : Models
    limits : Limits
    threads : int
        Of requests that take longer than others should wait.
    """

    def __init__(self, models: Models, limits: Limits, threads: int) -> None:
        self._models = models
        self._limits = limits
        self.patience = Patience(limits.seconds)
        self._pool = AbandonableThreads(threads)

    def routes(self) -> dict[str, Route]:
        """What models answer, by path."""
        found: dict[str, Route] = {}
        for name in self._models.names:
            found[f"/models/{name}/predict"] = Route(name, "predict", self.predict, self.predict_at_once)
            found[f"/models/{name}/explain"] = Route(name, "explain", self.explain)
            found[f"/v2/models/{name}/infer"] = Route(name, "infer", self.infer, self.infer_at_once)
        return found

    def close(self) -> None:
        """Stop the threads; running computations are not waited for."""
        self._pool.shutdown(wait=False)

    # --- Endpoints ------------------------------------------------------------------------------------

    async def predict(self, name: str, asked: Asked) -> Reply:
        """The answer to one input, to a list of them, or to JSON lines as they come."""
        served = self._models.get(name)
        if _are_lines(asked.headers.get(b"content-type", b"")):
            return Reply(self._streamed(served, asked), 200, [*_LINES_HEADERS, _of_version(served)])
        body = await self._body(asked)
        if _takes_microseconds(served, body):
            return self._predict(served, body)
        return await self._in_thread(lambda: self._predict(served, body))

    def predict_at_once(self, name: str, headers: Headers, body: bytes) -> Reply | None:
        """The answer to inputs that a model answers in microseconds; None for all others."""
        served = self._models.get(name)
        if not _takes_microseconds(served, body) or _are_lines(headers.get(b"content-type", b"")):
            return None
        return self._predict(served, body)

    def _predict(self, served: Served, body: bytes) -> Reply:
        began = time.perf_counter()
        answer = self._answered(served.answerer, body)
        return Reply(answer, 200, [*JSON, _of_version(served), _timed(began)])

    async def explain(self, name: str, asked: Asked) -> Reply:
        """What decided for one input."""
        served = self._models.get(name)
        top, of = _explain_options(asked.query)
        body = await self._body(asked)
        began = time.perf_counter()
        answer = await self._in_thread(
            lambda: to_json(_asked(lambda: served.answerer.explain(_one_input(served, body), top, of)))
        )
        return Reply(answer, 200, [*JSON, _of_version(served), _timed(began)])

    async def infer(self, name: str, asked: Asked) -> Reply:
        """The endpoint infer of the Open Inference Protocol."""
        return await self.infer_version(self._models.get(name), asked)

    async def infer_version(self, served: Served, asked: Asked) -> Reply:
        """The same, of the version that is asked for."""
        body = await self._body(asked)
        if len(body) <= SHORT:
            return self._infer(served, asked.headers, body)
        return await self._in_thread(lambda: self._infer(served, asked.headers, body))

    def infer_at_once(self, name: str, headers: Headers, body: bytes) -> Reply | None:
        """The answer to inputs that a model answers in microseconds; None for all others."""
        served = self._models.get(name)
        return self._infer(served, headers, body) if _takes_microseconds(served, body) else None

    def _infer(self, served: Served, headers: Headers, body: bytes) -> Reply:
        began = time.perf_counter()
        length = headers.get(protocol.JSON_LENGTH, b"")
        if length and not (length.isdigit() and len(length) <= _MOST_DIGITS):
            raise RequestError(400, f"{protocol.JSON_LENGTH.decode()} is not a number")
        request = protocol.Request(body, int(length) if length else None)
        protocol.check_inputs(request.inputs, served.answerer, self._limits.batch)
        found = _asked(lambda: served.answerer.infer(request.inputs))
        answer, own = protocol.answer(served, request, found)
        return Reply(answer, 200, [*own, _of_version(served), _timed(began)])

    # --- How ------------------------------------------------------------------------------------------

    async def _body(self, asked: Asked) -> bytes:
        return await self.patience.wait_for(whole_body(asked.receive, asked.headers, self._limits.body))

    async def _in_thread(self, work: Callable[[], _Answer]) -> _Answer:
        future = asyncio.get_running_loop().run_in_executor(self._pool, work)
        try:
            return await asyncio.wait_for(future, self._limits.seconds)
        except TimeoutError:
            raise RequestError(504, f"there was no answer within {self._limits.seconds:g} s") from None

    def _answered(self, answerer: Answerer, body: bytes) -> bytes:
        shape = JsonShape.LIST if body.startswith(b"[") else JsonShape.ONE
        quickly = answerer.json_of_json(body, shape, self._limits.batch)
        if quickly is not None:
            return quickly
        asked = from_json(body)
        if not isinstance(asked, list) or (answerer.input == "row" and not _are_rows(asked)):
            return to_json(_asked(lambda: answerer.one(asked)))
        if len(asked) > self._limits.batch:
            raise RequestError(
                413, f"{len(asked):,} are too many at once: the server's limit is {self._limits.batch:,}"
            )
        return to_json(_asked(lambda: answerer.many(asked)))

    async def _streamed(self, served: Served, asked: Asked) -> AsyncIterator[bytes]:
        """The answers to JSON lines. The answer to an invalid line is an error object.

        What ends a stream is its last answer, unless there was none before: then it has a status of its own.
        """
        answerer, line = served.answerer, 1
        parts = lines_of(asked.receive, self._limits.body)
        try:
            while (lines := await self.patience.wait_for(anext(parts, None))) is not None:
                if answerer.quick:
                    yield _answered_lines(answerer, lines, line)
                    await asyncio.sleep(0)  # others have their turn
                else:
                    yield await self._in_thread(lambda: _answered_lines(answerer, lines, line))  # noqa: B023
                line += _line_ends(lines)
        except RequestError as error:
            if line == 1:
                raise
            yield _encode_lines([error.to_json() | {"line": line}])


def _asked(ask: Callable[[], _Answer]) -> _Answer:
    """Call a model; errors of its input become a RequestError."""
    try:
        return ask()
    except RequestError:
        raise
    except ItemError as error:
        raise bad_input(error, f"[{error.number}]") from error
    except (ValueError, TypeError) as error:
        raise bad_input(error) from error
    except RecursionError:
        raise RequestError(400, "the input is nested too deeply") from None


def _answered_lines(answerer: Answerer, lines: bytes, first: int) -> bytes:
    """The answers to whole lines: all at once, or one by one if something is wrong with one of them."""
    quickly = answerer.json_of_json(lines, JsonShape.LINES, len(lines))
    if quickly is not None:
        return quickly
    try:
        # Line by line, as each line is one input, however many values it may hold.
        return _encode_lines(answerer.many([_decode(text) for text in lines.split(b"\n") if text.strip()]))
    except (ValueError, TypeError, RecursionError):
        answers = [
            _answer_to_line(answerer, text, number)
            for number, text in enumerate(lines.split(b"\n"), first)
            if text and not text.isspace()
        ]
        return _encode_lines(answers)


def _line_ends(lines: bytes) -> int:
    """How many there are; ``bytes.count`` takes as long for that as a model for its answers."""
    return int(np.count_nonzero(np.frombuffer(lines, np.uint8) == ord("\n")))


def _answer_to_line(answerer: Answerer, text: bytes, number: int) -> Any:
    try:
        item = from_json(text)
        return _asked(lambda: answerer.one(item))
    except RequestError as error:
        return error.to_json() | {"line": number}


def _are_rows(asked: list[Any]) -> bool:
    """Whether a list has rows, and is not itself one."""
    return not asked or isinstance(asked[0], list | dict)


def _are_lines(content_type: bytes) -> bool:
    return content_type.partition(b";")[0].strip().lower() in _LINES


def _explain_options(query: bytes) -> tuple[int, str | None]:
    given = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
    if unknown := sorted(given.keys() - {"top", "of"}):
        raise RequestError(400, f"unknown parameter {unknown[0]!r}: there are top and of", field=unknown[0])
    top = given.get("top", str(_TOP))
    if not top.isascii() or not top.isdigit() or len(top) > 4 or int(top) > _MOST_TOP:
        raise RequestError(400, f"top must be a number up to {_MOST_TOP}, got {top!r}", field="top")
    return int(top), given.get("of")


def _takes_microseconds(served: Served, body: bytes) -> bool:
    """Whether other requests can wait for the answer to a body."""
    return served.answerer.quick and len(body) <= SHORT


def _one_input(served: Served, body: bytes) -> Any:
    asked = from_json(body)
    if isinstance(asked, list) and (
        served.answerer.input not in ("record", "row")  # which may be lists of values
        or any(isinstance(one, list | dict) for one in asked)
    ):
        raise RequestError(400, "explain takes one input, and the body is a list of them")
    return asked


def _of_version(served: Served) -> tuple[bytes, bytes]:
    return (b"x-model-version", served.version.encode())


def _timed(began: float) -> tuple[bytes, bytes]:
    """How long the model took, in milliseconds, as browsers show it."""
    return (b"server-timing", b"model;dur=%.4f" % ((time.perf_counter() - began) * 1e3))
