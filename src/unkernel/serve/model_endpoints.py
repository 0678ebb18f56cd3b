"""The endpoints that models answer: predict, explain and infer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
import numpy as np

from unkernel._core import JsonShape, TimeLimit
from unkernel.serve import inference_protocol
from unkernel.serve.answerers import Answerer, ItemError
from unkernel.serve.errors import RequestError, bad_input
from unkernel.serve.http_messages import JSON, SHORT, Endpoint, Head, HeaderList, Receive, Reply, Route
from unkernel.serve.json_log import log
from unkernel.serve.request_bodies import Patience, from_json, lines_of, to_json, whole_body
from unkernel.serve.served_models import Models, Served
from unkernel.serve.settings import Limits
from unkernel.serve.thread_pool import AbandonableThreads

_Answer = TypeVar("_Answer")
_LINES = (b"application/x-ndjson", b"application/jsonl", b"application/jsonlines")
_LINES_HEADERS: HeaderList = [(b"content-type", b"application/x-ndjson")]
_TOP, _MOST_TOP = 10, 1000
_LEAST_SECONDS = 1e-3
_GRACE_SECONDS = 5.0  # beyond the time that a request may take
_MOST_DIGITS = 18  # of a number of bytes
_decode = msgspec.json.Decoder().decode


class Asking:
    """Handlers of the endpoints predict, explain and infer.

    Parameters
    ----------
    models : Models
    limits : Limits
    threads : int
        Of requests that take longer than others should wait.
    on_stuck : callable, optional
        Called when a request does not end some seconds after it was given up.
    """

    def __init__(
        self,
        models: Models,
        limits: Limits,
        threads: int,
        on_stuck: Callable[[], object] = lambda: None,
    ) -> None:
        self._models = models
        self._on_stuck = on_stuck
        self._limits = limits
        self.patience = Patience(limits.seconds)
        self._pool = AbandonableThreads(threads)
        self.infer = Endpoint("infer", self._infer)

    def routes(self) -> dict[str, Route]:
        """What models answer, by path."""
        predict = Endpoint("predict", self._predict, streams=True)
        explain = Endpoint("explain", _explain, short=False)
        found: dict[str, Route] = {}
        for name in self._models.names:
            found[f"/models/{name}/predict"] = Route(name, predict)
            found[f"/models/{name}/explain"] = Route(name, explain)
            found[f"/v2/models/{name}/infer"] = Route(name, self.infer)
        return found

    def close(self) -> None:
        """Stop the threads; running computations are not waited for."""
        self._pool.shutdown(wait=False)

    # --- Where requests are answered ------------------------------------------------------------------

    async def answer(self, route: Route, head: Head, receive: Receive, version: str | None = None) -> Reply:
        """Answer a request: here if others can wait for that, and in a thread otherwise."""
        served = self._models.get(route.model, version)
        if _is_stream(route.endpoint, head):
            return Reply(self._streamed(served, receive), 200, [*_LINES_HEADERS, _of_version(served)])
        body = await self.patience.wait_for(whole_body(receive, head.headers, self._limits.body))
        if _takes_microseconds(served, route.endpoint, body):
            return route.endpoint.answer(served, head, body)
        return await self._in_thread(lambda: route.endpoint.answer(served, head, body))

    def answer_at_once(self, route: Route, head: Head, body: bytes) -> Reply | None:
        """Answer a request whose body is there; None if others should not wait for that."""
        served = self._models.get(route.model)
        if _is_stream(route.endpoint, head) or not _takes_microseconds(served, route.endpoint, body):
            return None
        return route.endpoint.answer(served, head, body)

    async def _in_thread(self, work: Callable[[], _Answer]) -> _Answer:
        future = self._pool.submit(_limited, work, time.monotonic() + self._limits.seconds)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._limits.seconds)
        except TimeoutError:
            asyncio.get_running_loop().call_later(_GRACE_SECONDS, self._check_ended, future)
            raise RequestError(504, f"there was no answer within {self._limits.seconds:g} s") from None

    def _check_ended(self, future: Future[Any]) -> None:
        """Tell of work that goes on after it was given up: it keeps a thread and a processor busy."""
        if future.running():
            log("request does not end", level="error", seconds=self._limits.seconds + _GRACE_SECONDS)
            self._on_stuck()

    async def _streamed(self, served: Served, receive: Receive) -> AsyncIterator[bytes]:
        """The answers to JSON lines. The answer to an invalid line is an error object.

        What ends a stream is its last answer, unless there was none before: then it has a status of its own.
        """
        answerer, line = served.answerer, 1
        parts = lines_of(receive, self._limits.body)
        try:
            while (lines := await self.patience.wait_for(anext(parts, None))) is not None:
                if answerer.quick:
                    yield _answer_lines(answerer, lines, line)
                    await asyncio.sleep(0)  # others have their turn
                else:
                    yield await self._in_thread(lambda: _answer_lines(answerer, lines, line))  # noqa: B023
                line += _line_ends(lines)
        except RequestError as error:
            if line == 1:
                raise
            yield _encode_line(error, line)

    # --- How they are answered ------------------------------------------------------------------------

    def _predict(self, served: Served, _: Head, body: bytes) -> Reply:
        """The answer to one input, or to a list of them."""
        began = time.perf_counter()
        answerer, limit = served.answerer, self._limits.batch
        shape = JsonShape.LIST if body.startswith(b"[") else JsonShape.ONE
        answer = answerer.json_of_json(body, shape, limit)
        if answer is None:
            items, shape = _items(answerer, body)
            if len(items) > limit:
                words = f"{len(items):,} are too many at once: the server's limit is {limit:,}"
                raise RequestError(413, words)
            answer = _asked(lambda: answerer.json_of(items, shape), named=shape is JsonShape.LIST)
        return Reply(answer, 200, [*JSON, _of_version(served), _timed(began)])

    def _infer(self, served: Served, head: Head, body: bytes) -> Reply:
        """The endpoint infer of the Open Inference Protocol."""
        began = time.perf_counter()
        length = head.headers.get(inference_protocol.JSON_LENGTH, b"")
        if length and not (length.isdigit() and len(length) <= _MOST_DIGITS):
            raise RequestError(400, f"{inference_protocol.JSON_LENGTH.decode()} is not a number")
        request = inference_protocol.Request(body, int(length) if length else None)
        inference_protocol.check_inputs(request.inputs, served.answerer, self._limits.batch)
        found = _asked(lambda: served.answerer.infer(request.inputs))
        answer, own = inference_protocol.answer(served, request, found)
        return Reply(answer, 200, [*own, _of_version(served), _timed(began)])


def _limited(work: Callable[[], _Answer], latest: float) -> _Answer:
    """Call a function whose native work ends at a time; then there is a TimeoutError."""
    with TimeLimit(max(latest - time.monotonic(), _LEAST_SECONDS)):
        return work()


def _explain(served: Served, head: Head, body: bytes) -> Reply:
    """What decided for one input."""
    began = time.perf_counter()
    top, of = _explain_options(head.query)
    item = _one_input(served, body)
    answer = to_json(_asked(lambda: served.answerer.explain(item, top, of), named=False))
    return Reply(answer, 200, [*JSON, _of_version(served), _timed(began)])


def _asked(ask: Callable[[], _Answer], *, named: bool = True) -> _Answer:
    """Call a model; errors of its input become a RequestError, which names one of several if `named`."""
    try:
        return ask()
    except RequestError:
        raise
    except (ValueError, TypeError) as error:
        place = f"[{error.number}]" if named and isinstance(error, ItemError) else ""
        raise bad_input(error, place) from error
    except RecursionError:
        raise RequestError(400, "the input is nested too deeply") from None


def _items(answerer: Answerer, body: bytes) -> tuple[list[Any], JsonShape]:
    """The inputs in a body, and whether they are a list there."""
    given = from_json(body)
    if isinstance(given, list) and (answerer.input != "row" or _are_rows(given)):
        return given, JsonShape.LIST
    return [given], JsonShape.ONE


def _answer_lines(answerer: Answerer, lines: bytes, first: int) -> bytes:
    """The answers to whole lines: all at once, or one by one if something is wrong with one of them."""
    quickly = answerer.json_of_json(lines, JsonShape.LINES, len(lines))
    if quickly is not None:
        return quickly
    given = [(number, text) for number, text in enumerate(lines.split(b"\n"), first) if text.strip()]
    try:
        return answerer.json_of([_decode(text) for _, text in given], JsonShape.LINES)
    except (ValueError, TypeError, RecursionError):
        return b"".join(_answer_line(answerer, text, number) for number, text in given)


def _answer_line(answerer: Answerer, text: bytes, number: int) -> bytes:
    try:
        item = from_json(text)
        return _asked(lambda: answerer.json_of([item], JsonShape.LINES), named=False)
    except RequestError as error:
        return _encode_line(error, number)


def _encode_line(error: RequestError, number: int) -> bytes:
    return to_json(error.to_json() | {"line": number}) + b"\n"


def _line_ends(lines: bytes) -> int:
    """How many there are; ``bytes.count`` takes as long for that as a model for its answers."""
    return int(np.count_nonzero(np.frombuffer(lines, np.uint8) == ord("\n")))


def _are_rows(asked: list[Any]) -> bool:
    """Whether a list has rows, and is not itself one."""
    return not asked or isinstance(asked[0], list | dict)


def _is_stream(endpoint: Endpoint, head: Head) -> bool:
    content_type = head.headers.get(b"content-type", b"") if endpoint.streams else b""
    return content_type.partition(b";")[0].strip().lower() in _LINES


def _explain_options(query: bytes) -> tuple[int, str | None]:
    given = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
    if unknown := sorted(given.keys() - {"top", "of"}):
        raise RequestError(400, f"unknown parameter {unknown[0]!r}: there are top and of", field=unknown[0])
    top = given.get("top", str(_TOP))
    if not top.isascii() or not top.isdigit() or len(top) > 4 or int(top) > _MOST_TOP:
        raise RequestError(400, f"top must be a number up to {_MOST_TOP}, got {top!r}", field="top")
    return int(top), given.get("of")


def _takes_microseconds(served: Served, endpoint: Endpoint, body: bytes) -> bool:
    """Whether other requests can wait for the answer to a body."""
    return endpoint.short and served.answerer.quick and len(body) <= SHORT


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
