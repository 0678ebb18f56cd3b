"""Requests answered without ASGI get the same responses as with ASGI."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from serve.serving import RECORDS, served
from unkernel.serve.app import Application
from unkernel.serve.connection import Connection
from unkernel.serve.http_messages import SHORT_BODY_BYTES

ONE = json.dumps(RECORDS[0]).encode()
MANY = json.dumps(RECORDS).encode()
TENSORS = json.dumps(
    {
        "inputs": [
            {"name": "age", "datatype": "FP64", "shape": [1], "data": [30]},
            {"name": "town", "datatype": "BYTES", "shape": [1], "data": ["Uji"]},
        ]
    }
).encode()
TOKEN = b"authorization: Bearer s3cret"


class Transport(asyncio.Transport):
    """A transport that stores the written bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def request(path: str, body: bytes, *headers: bytes, method: str = "POST") -> bytes:
    head = [f"{method} {path} HTTP/1.1".encode(), b"host: x", b"content-length: %d" % len(body), *headers]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


class Counting:
    """An application that counts its requests through ASGI."""

    def __init__(self, app: Application) -> None:
        self.fast_routes, self.answer_immediately = app.fast_routes, app.answer_immediately
        self.connection_limits = app.connection_limits
        self._app = app
        self.asked = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked += 1
        await self._app(scope, receive, send)


def answers(
    app: Application, *parts: bytes, count: int, kind: type[HttpToolsProtocol] = Connection
) -> tuple[list[bytes], int]:
    """Return the responses to parts of bytes that arrive one by one, and the number of calls of ASGI."""
    counting = Counting(app)

    async def asked() -> bytes:
        config = uvicorn.Config(counting, log_config=None, access_log=False, ws="none", lifespan="off")
        config.load()
        config.loaded_app = counting  # without uvicorn's wrappers of applications
        connection, transport = kind(config, ServerState(), {}), Transport()
        connection.connection_made(transport)
        for part in parts:
            connection.data_received(part)
            await asyncio.sleep(0)
        while len(_split(transport.written)) < count:
            await asyncio.sleep(0.001)
        connection.connection_lost(None)
        return transport.written

    return _split(asyncio.run(asked())), counting.asked


def _split(response: bytes) -> list[bytes]:
    """Return the complete responses in `response`, without request ids and times."""
    result = []
    while b"\r\n\r\n" in response:
        head, _, remainder = response.partition(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", head)[1])  # type: ignore[index]
        if len(remainder) < length:
            break
        lines = [re.sub(rb"(x-request-id|server-timing): .*", rb"\1", line) for line in head.split(b"\r\n")]
        result.append(b"\n".join([lines[0], *sorted(lines[1:]), remainder[:length]]))
        response = remainder[length:]
    return result


@pytest.fixture(scope="module")
def app(files: dict[str, Path]) -> Iterator[Application]:
    with served(files, tokens=["s3cret"]) as client:
        yield client.app


REQUESTS = {
    "one": request("/models/people/predict", ONE, TOKEN),
    "list": request("/models/people/predict", MANY, TOKEN),
    "infer": request("/v2/models/people/infer", TENSORS, TOKEN),
    "not JSON": request("/models/people/predict", b"{", TOKEN),
    "empty": request("/models/people/predict", b"", TOKEN),
    "wrong type": request("/models/people/predict", b'{"age": []}', TOKEN),
    "no token": request("/models/people/predict", ONE),
    "not UTF-8": request("/models/people/predict", b'{"town": "\xff"}', TOKEN),
    "no tensors": request("/v2/models/people/infer", b"{}", TOKEN),
    "with an id": request("/models/people/predict", ONE, TOKEN, b"x-request-id: mine"),
}
OTHERS = {
    "another path": request("/models/people", b"", TOKEN, method="GET"),
    "another method": request("/models/people/predict", b"", TOKEN, method="GET"),
    "a query": request("/models/people/predict?x=1", ONE, TOKEN),
    "a slow model": request("/models/trees/predict", b'"(S (NP I))"', TOKEN),
    "explain": request("/models/people/explain", ONE, TOKEN),
    "long": request("/models/people/predict", ONE + b" " * SHORT_BODY_BYTES, TOKEN),
    "to close": request("/models/people/predict", ONE, TOKEN, b"connection: close"),
    "HTTP 1.0": request("/models/people/predict", ONE, TOKEN).replace(b"HTTP/1.1", b"HTTP/1.0"),
}


@pytest.mark.parametrize("name", [*REQUESTS, *OTHERS])
def test_answers_equal_the_answers_through_asgi(app: Application, name: str):
    request_bytes = (REQUESTS | OTHERS)[name]
    expected, _ = answers(app, request_bytes, count=1, kind=HttpToolsProtocol)
    responses, n_through_asgi = answers(app, request_bytes, count=1)
    assert responses == expected
    assert n_through_asgi == (name in OTHERS)


def test_a_request_in_pieces_goes_the_way_of_asgi(app: Application):
    request_bytes = REQUESTS["one"]
    expected, _ = answers(app, request_bytes, count=1)
    body = request_bytes.index(b"\r\n\r\n") + 4
    for place in [3, body - 1, body, body + 1, len(request_bytes) - 1]:
        responses, n_through_asgi = answers(app, request_bytes[:place], request_bytes[place:], count=1)
        assert responses == expected
        assert n_through_asgi == (
            place >= body
        )  # if head and beginning of the body arrive together, ASGI answers


def test_pipelined_requests_are_answered_in_order(app: Application):
    names = ["one", "explain", "list", "another path", "not JSON", "one"]
    requests = [(REQUESTS | OTHERS)[name] for name in names]
    expected = [
        answers(app, request_bytes, count=1, kind=HttpToolsProtocol)[0][0] for request_bytes in requests
    ]
    assert answers(app, b"".join(requests), count=len(names))[0] == expected
    assert answers(app, *requests, count=len(names))[0] == expected


def test_clients_that_do_not_read_are_served_through_asgi(app: Application, monkeypatch):
    """Responses of the fast path would pile up; ASGI waits until the client reads them."""
    connection_made = Connection.connection_made

    def connection_made_and_paused(self: Connection, transport: Any) -> None:
        connection_made(self, transport)
        self.pause_writing()
        asyncio.get_running_loop().call_soon(self.resume_writing)

    monkeypatch.setattr(Connection, "connection_made", connection_made_and_paused)
    assert answers(app, REQUESTS["one"], count=1)[1] == 1


def test_failures_are_answered_with_status_500(app: Application, monkeypatch):
    monkeypatch.setattr(Application, "_check_request", lambda *_: 1 / 0)
    responses, n_through_asgi = answers(app, REQUESTS["one"], count=1)
    assert b"500 Internal Server Error" in responses[0]
    assert b"the server failed" in responses[0]
    assert n_through_asgi == 0


def test_http_1_0_requests_are_answered_through_asgi(app: Application):
    request_1_1 = request("/models/people/predict", ONE, TOKEN, b"connection: keep-alive")
    request_1_0 = request_1_1.replace(b"HTTP/1.1", b"HTTP/1.0")
    expected = answers(app, request_1_0, count=1, kind=HttpToolsProtocol)[0]
    assert answers(app, request_1_0, count=1) == (expected, 1)


def test_requests_that_run_far_ahead_of_answers_end_the_connection(app: Application):
    """A client that sends requests and never reads responses must not fill the memory."""
    requests = OTHERS["another path"] * 1500
    config = uvicorn.Config(app, log_config=None, access_log=False, ws="none", lifespan="off")

    async def sent() -> tuple[bool, int]:
        config.load()
        config.loaded_app = app
        connection, transport = Connection(config, ServerState(), {}), Transport()
        connection.connection_made(transport)
        connection.data_received(requests)
        queued = len(connection.pipeline)
        connection.connection_lost(None)
        return transport.closed, queued

    assert asyncio.run(sent()) == (True, 1000)
