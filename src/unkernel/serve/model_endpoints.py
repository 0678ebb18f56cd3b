"""The endpoints of models: predict, explain and infer.

Each endpoint is one function that takes a model, a head and a body, and returns a reply. The function runs on
the event loop if it takes only microseconds, and in a thread otherwise.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import numpy as np

from unkernel._core import JsonShape, TimeLimit
from unkernel.serve import inference_protocol
from unkernel.serve.answerers import Answerer, ItemError
from unkernel.serve.errors import RequestError, make_input_error
from unkernel.serve.http_messages import (
    JSON,
    SHORT_BODY_BYTES,
    Endpoint,
    Head,
    HeaderList,
    Receive,
    Reply,
    Route,
)
from unkernel.serve.json_log import log
from unkernel.serve.request_bodies import BodyTimeouts, decode_json, encode_json, read_body, read_lines
from unkernel.serve.served_models import ServedModel, ServedModels
from unkernel.serve.settings import Limits
from unkernel.serve.thread_pool import AbandonableThreads

_Answer = TypeVar("_Answer")
_LINES = (b"application/x-ndjson", b"application/jsonl", b"application/jsonlines")  # types of JSON lines
_LINES_HEADERS: HeaderList = [(b"content-type", b"application/x-ndjson")]
_DEFAULT_TOP, _MAX_TOP = 10, 1000
_MIN_TIME_LIMIT = 1e-3  # in seconds
_GRACE_SECONDS = 5.0  # time from the timeout of a request until `on_stuck` is called
_MAX_LENGTH_DIGITS = 18


class ModelEndpoints:
    """Handlers of the endpoints ``predict``, ``explain`` and ``infer``.

    Parameters
    ----------
    models : ServedModels
    limits : Limits
    threads : int
        Number of threads for slow requests.
    on_stuck : callable, optional
        Called if a model is still busy with a request some seconds after the timeout of the request.
    """

    def __init__(
        self,
        models: ServedModels,
        limits: Limits,
        threads: int,
        on_stuck: Callable[[], object] = lambda: None,
    ) -> None:
        self._models = models
        self._on_stuck = on_stuck
        self._limits = limits
        self.body_timeouts = BodyTimeouts(limits.seconds)
        self._pool = AbandonableThreads(threads)
        self.infer = Endpoint("infer", self._infer)

    def make_routes(self) -> dict[str, Route]:
        """Return the routes of all models, by path."""
        predict = Endpoint("predict", self._predict, streams=True)
        explain = Endpoint("explain", _explain, short=False)
        routes: dict[str, Route] = {}
        for name in self._models.names:
            routes[f"/models/{name}/predict"] = Route(name, predict)
            routes[f"/models/{name}/explain"] = Route(name, explain)
            routes[f"/v2/models/{name}/infer"] = Route(name, self.infer)
        return routes

    def close(self) -> None:
        """Stop the threads without waiting for running requests."""
        self._pool.shutdown(wait=False)

    # --- Event loop, thread or stream -----------------------------------------------------------------

    async def answer(self, route: Route, head: Head, receive: Receive, version: str | None = None) -> Reply:
        """Return the reply to a request, computed on the event loop if that is fast, else in a thread."""
        served = self._models.get(route.model, version)
        if _is_stream(route.endpoint, head):
            return Reply(
                self._stream_answers(served, receive), 200, [*_LINES_HEADERS, _make_version_header(served)]
            )
        body = await self.body_timeouts.wait_for(read_body(receive, head.headers, self._limits.body))
        if _is_fast(served, route.endpoint, body):
            return route.endpoint.answer(served, head, body)
        return await self._run_in_thread(lambda: route.endpoint.answer(served, head, body))

    def answer_immediately(self, route: Route, head: Head, body: bytes) -> Reply | None:
        """Return the reply to a complete request; None if it needs a thread or a stream."""
        served = self._models.get(route.model)
        if _is_stream(route.endpoint, head) or not _is_fast(served, route.endpoint, body):
            return None
        return route.endpoint.answer(served, head, body)

    async def _run_in_thread(self, call: Callable[[], _Answer]) -> _Answer:
        future = self._pool.submit(_call_with_limit, call, time.monotonic() + self._limits.seconds)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._limits.seconds)
        except TimeoutError:
            asyncio.get_running_loop().call_later(_GRACE_SECONDS, self._check_ended, future)
            raise RequestError(504, f"there was no answer within {self._limits.seconds:g} s") from None

    def _check_ended(self, future: Future[Any]) -> None:
        """Report a request that is still running after its timeout: it occupies a thread and a core."""
        if future.running():
            log("request does not end", level="error", seconds=self._limits.seconds + _GRACE_SECONDS)
            self._on_stuck()

    async def _stream_answers(self, served: ServedModel, receive: Receive) -> AsyncIterator[bytes]:
        """Yield the answers to JSON lines; the answer to an invalid line is an error object.

        An error that ends the stream becomes the last line or, if there is no other line, the response.
        """
        line = 1
        parts = read_lines(receive, self._limits.body)
        try:
            while (lines := await self.body_timeouts.wait_for(anext(parts, None))) is not None:
                if served.answerer.quick:
                    yield _answer_lines(served, lines, line)
                    await asyncio.sleep(0)  # let other requests run
                else:
                    yield await self._run_in_thread(lambda: _answer_lines(served, lines, line))  # noqa: B023
                line += _count_lines(lines)
        except RequestError as error:
            if line == 1:
                raise
            yield _encode_error_line(error, line)

    # --- The endpoints --------------------------------------------------------------------------------

    def _predict(self, served: ServedModel, _: Head, body: bytes) -> Reply:
        """Predict for one input, or for a list of inputs."""
        start_time = time.perf_counter()
        answerer, limit = served.answerer, self._limits.batch
        shape = JsonShape.LIST if body.startswith(b"[") else JsonShape.ONE
        answer = answerer.answer_json(body, shape, limit)
        if answer is None:
            items, shape = _read_items(answerer, body)
            if len(items) > limit:
                raise RequestError(413, f"{len(items):,} inputs exceed the server's limit of {limit:,}")
            answer = _call_model(
                lambda: answerer.answer_items(items, shape), has_number=shape is JsonShape.LIST
            )
        headers = [*JSON, _make_version_header(served), _make_timing_header(start_time)]
        served.counts.add(body, shape, answer)
        return Reply(answer, 200, headers)

    def _infer(self, served: ServedModel, head: Head, body: bytes) -> Reply:
        """Predict for tensors of the Open Inference Protocol."""
        start_time = time.perf_counter()
        length = head.headers.get(inference_protocol.JSON_LENGTH, b"")
        if length and not (length.isdigit() and len(length) <= _MAX_LENGTH_DIGITS):
            raise RequestError(400, f"{inference_protocol.JSON_LENGTH.decode()} is not a number")
        request = inference_protocol.Request(body, int(length) if length else None)
        inference_protocol.check_inputs(request.inputs, served.answerer, self._limits.batch)
        outputs = _call_model(lambda: served.answerer.infer(request.inputs))
        answer, headers = inference_protocol.encode_answer(served, request, outputs)
        served.counts.add_tensors(request.inputs, outputs)
        return Reply(answer, 200, [*headers, _make_version_header(served), _make_timing_header(start_time)])


def _call_with_limit(call: Callable[[], _Answer], deadline: float) -> _Answer:
    """Call a function and return its result; at the time `deadline`, the core raises a TimeoutError in it."""
    with TimeLimit(max(deadline - time.monotonic(), _MIN_TIME_LIMIT)):
        return call()


def _explain(served: ServedModel, head: Head, body: bytes) -> Reply:
    """Explain the answer to one input."""
    start_time = time.perf_counter()
    top, of = _parse_explain_options(head.query)
    item = _read_one_item(served, body)
    answer = encode_json(_call_model(lambda: served.answerer.explain(item, top, of), has_number=False))
    return Reply(answer, 200, [*JSON, _make_version_header(served), _make_timing_header(start_time)])


def _call_model(call: Callable[[], _Answer], *, has_number: bool = True) -> _Answer:
    """Call a model; raise a RequestError for invalid input, with the input's index if `has_number`."""
    try:
        return call()
    except RequestError:
        raise
    except (ValueError, TypeError) as error:
        place = f"[{error.number}]" if has_number and isinstance(error, ItemError) else ""
        raise make_input_error(error, place) from error
    except RecursionError:
        raise RequestError(400, "the input is nested too deeply") from None


def _read_items(answerer: Answerer, body: bytes) -> tuple[list[Any], JsonShape]:
    """Return the inputs decoded from a body, and the shape of the response: one object or a list."""
    content = decode_json(body)
    if isinstance(content, list) and (answerer.input != "row" or _are_rows(content)):
        return content, JsonShape.LIST
    return [content], JsonShape.ONE


def _answer_lines(served: ServedModel, lines: bytes, first: int) -> bytes:
    """Return the answers to complete lines: all in one call or, if a line is invalid, one by one."""
    answerer = served.answerer
    answers = answerer.answer_json(lines, JsonShape.LINES, len(lines))
    if answers is None:
        numbered_lines = [
            (number, text) for number, text in enumerate(lines.split(b"\n"), first) if text.strip()
        ]
        try:
            items = [decode_json(text) for _, text in numbered_lines]
            answers = answerer.answer_items(items, JsonShape.LINES)
        except (RequestError, ValueError, TypeError, RecursionError):
            return b"".join(_answer_line(served, text, number) for number, text in numbered_lines)
    served.counts.add(lines, JsonShape.LINES, answers)
    return answers


def _answer_line(served: ServedModel, text: bytes, number: int) -> bytes:
    try:
        item = decode_json(text, "the line")
        answer = _call_model(lambda: served.answerer.answer_items([item], JsonShape.LINES), has_number=False)
    except RequestError as error:
        return _encode_error_line(error, number)
    served.counts.add(text, JsonShape.ONE, answer.rstrip(b"\n"))
    return answer


def _encode_error_line(error: RequestError, number: int) -> bytes:
    return encode_json(error.to_json() | {"line": number}) + b"\n"


def _count_lines(lines: bytes) -> int:
    """Count newlines with numpy, which is faster than ``bytes.count``."""
    return int(np.count_nonzero(np.frombuffer(lines, np.uint8) == ord("\n")))


def _are_rows(items: list[Any]) -> bool:
    """Return whether a list contains rows, as opposed to being a row itself."""
    return not items or isinstance(items[0], list | dict)


def _is_stream(endpoint: Endpoint, head: Head) -> bool:
    content_type = head.headers.get(b"content-type", b"") if endpoint.streams else b""
    return content_type.partition(b";")[0].strip().lower() in _LINES


def _parse_explain_options(query: bytes) -> tuple[int, str | None]:
    parameters = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
    unknown = sorted(parameters.keys() - {"top", "of"})
    if unknown:
        raise RequestError(400, f"unknown parameter {unknown[0]!r}: expected top or of", field=unknown[0])
    top = parameters.get("top", str(_DEFAULT_TOP))
    if not top.isascii() or not top.isdigit() or len(top) > 4 or int(top) > _MAX_TOP:
        raise RequestError(400, f"top must be a number up to {_MAX_TOP}, got {top!r}", field="top")
    return int(top), parameters.get("of")


def _is_fast(served: ServedModel, endpoint: Endpoint, body: bytes) -> bool:
    """Return whether the answer to a body takes only microseconds."""
    return endpoint.short and served.answerer.quick and len(body) <= SHORT_BODY_BYTES


def _read_one_item(served: ServedModel, body: bytes) -> Any:
    item = decode_json(body)
    if isinstance(item, list) and (
        served.answerer.input not in ("record", "row")  # a single record or row may itself be a list
        or any(isinstance(part, list | dict) for part in item)
    ):
        raise RequestError(400, "explain takes one input, and the body is a list of them")
    return item


def _make_version_header(served: ServedModel) -> tuple[bytes, bytes]:
    return (b"x-model-version", served.version.encode())


def _make_timing_header(start_time: float) -> tuple[bytes, bytes]:
    """Return a header with the milliseconds since `start_time`; browsers display this header."""
    return (b"server-timing", b"model;dur=%.4f" % ((time.perf_counter() - start_time) * 1e3))
