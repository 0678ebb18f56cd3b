"""A server of one model in this process, used through its connections and as an ASGI application."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from serve.serving import served
from unkernel.serve.answerers import make_answerer
from unkernel.serve.connection import Connection

PREDICT, EXPLAIN, INFER = "/models/m/predict", "/models/m/explain", "/v2/models/m/infer"
Reply = tuple[int, bytes]


class Transport(asyncio.Transport):
    """A transport that stores the written bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""

    def write(self, data: Any) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return False

    def close(self) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class ServedModel:
    """A server of one model."""

    def __init__(self, file: Path, model: Any) -> None:
        self._stack = ExitStack()
        self.app = self._stack.enter_context(served({"m": file})).app
        self.tensors = make_answerer(model).inputs
        self._loop = asyncio.new_event_loop()
        self._stack.callback(self._loop.close)
        self._config = uvicorn.Config(self.app, log_config=None, access_log=False, ws="none", lifespan="off")
        self._config.load()
        self._config.loaded_app = self.app  # without uvicorn's wrappers of applications

    def close(self) -> None:
        self._stack.close()

    def ask_connection(self, path: str, body: bytes) -> Reply:
        """Send a request as bytes of HTTP in one piece, which the fast path answers if it can."""

        async def asked() -> bytes:
            connection, transport = Connection(self._config, ServerState(), {}), Transport()
            connection.connection_made(transport)
            head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
            connection.data_received(head.encode() + body)
            while not _is_whole(transport.written):
                await asyncio.sleep(0)
            connection.connection_lost(None)
            return transport.written

        head, _, answer = self._loop.run_until_complete(asked()).partition(b"\r\n\r\n")
        return int(head.split(b" ")[1]), answer

    def ask_application(self, path: str, body: bytes, *headers: tuple[bytes, bytes]) -> Reply:
        """Send a request to the ASGI application."""
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "query_string": b"",
            "headers": [(b"content-length", b"%d" % len(body)), *headers],
        }
        self._loop.run_until_complete(self.app(scope, receive, send))
        return int(sent[0]["status"]), b"".join(message.get("body", b"") for message in sent[1:])


def _is_whole(response: bytes) -> bool:
    head, separator, body = response.partition(b"\r\n\r\n")
    if not separator:
        return False
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return len(body) >= int(lengths[0].partition(b":")[2])
