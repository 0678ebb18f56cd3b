"""Connections of the server: uvicorn's, with a shorter way for short requests."""

from __future__ import annotations

import asyncio
import inspect
from http import HTTPStatus
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from unkernel.serve.app import Application, refusal
from unkernel.serve.errors import RequestError
from unkernel.serve.http_messages import SHORT, HeaderList, Reply
from unkernel.serve.json_log import log

_STATUS_LINES = {
    int(status): f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}
_LARGEST_HEAD = 1 << 16  # bytes, beside those that come together with its last ones
_LINGER = 5.0  # seconds
_MOST_AHEAD = 1000  # requests of a connection that wait for the answers to earlier ones
_LAST_REQUEST_SECONDS = 1.0  # in which a client may send one more request when the server ends
_MOST_REFUSED = 100  # connections that wait for the client to read why


class Connection(HttpToolsProtocol):  # type: ignore[misc]  # uvicorn is half typed
    """Answer a request at once if its whole body has arrived with its head.

    ASGI needs a task, an event and several coroutines for each request: they take longer than most models.
    A request that need not wait for anything is answered without them, where uvicorn's parser has read it.
    All others go the way of ASGI, as if this class were not there.
    """

    app: Application  # the only application that is served so

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._held: bytearray | None = None  # the body so far of a request that ASGI has not been told of
        self._is_done = False  # whether what still comes is read and forgotten
        self._head: tuple[object, int] = (None, 0)  # the request whose head is not whole, and its bytes

    # --- Short requests -------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._is_done:
            return
        super().data_received(data)
        if self._held is not None:
            self._pass_on()
        elif self.timeout_keep_alive_task is None and self.waits_for() is not None:
            self._check_head(len(data))

    def on_headers_complete(self) -> None:
        if self._may_be_short():
            self._held = bytearray()
        else:
            self._start_cycle()

    def on_body(self, body: bytes) -> None:
        if self._held is None:
            super().on_body(body)
            return
        self._held += body
        if len(self._held) > SHORT:
            self._pass_on()

    def on_message_complete(self) -> None:
        if self._held is not None:
            reply = self.app.answer_at_once(self.url, self.headers, bytes(self._held))
            if reply is not None:
                self._held = None
                self._send(reply)
                return
            self._pass_on()
        super().on_message_complete()

    def _may_be_short(self) -> bool:
        """Whether nothing is to be waited for, as far as the head tells."""
        return (
            self.url in self.app.short_ways
            and self.parser.get_method() == b"POST"
            and self._is_idle()  # else answers would overtake each other
            and self.parser.should_keep_alive()
            and self.parser.get_http_version() == "1.1"  # others must be told that the connection stays
            and not self.expect_100_continue
            and not self.app.guard.is_ending  # others must be told that the connection ends
            and not self.flow.write_paused
            and not self.transport.is_closing()
        )

    def _pass_on(self) -> None:
        """Give what is held to ASGI."""
        assert self._held is not None
        body, self._held = bytes(self._held), None
        self._start_cycle()
        if body:
            super().on_body(body)

    def _send(self, reply: Reply) -> None:
        self._write(reply, self.server_state.default_headers)
        self.on_response_complete()

    def _write(self, reply: Reply, others: HeaderList) -> None:
        assert isinstance(reply.body, bytes)
        parts = [_STATUS_LINES[reply.status]]
        for name, value in (*others, *reply.headers):
            parts += (name, b": ", value, b"\r\n")
        parts.append(b"content-length: %d\r\n\r\n" % len(reply.body))
        parts.append(reply.body)
        self.transport.write(b"".join(parts))

    # --- Connections that end before their requests do ------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        guard = self.app.guard
        guard.connections = self.connections
        if guard.is_ending:  # it waited to be accepted
            self.shutdown()
        if len(self.connections) > guard.most + _MOST_REFUSED:
            transport.abort()
        elif len(self.connections) > guard.most:
            self._refuse(503, "the server has too many connections: try again in a second")

    def shutdown(self) -> None:
        """End the connection after the request that is being answered, or one that comes within a second.

        A request may be on its way to a connection that seems idle: it is answered, and the client told that
        the connection ends.
        """
        self.app.guard.is_ending = True
        if self._is_idle():
            self.loop.call_later(_LAST_REQUEST_SECONDS, self._close_if_idle)
        else:
            super().shutdown()

    def _close_if_idle(self) -> None:
        if self._is_idle():
            self.transport.close()

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def waits_for(self) -> object | None:
        """The request whose head has not come, or None while one is answered or the client may rest."""
        rests = self.timeout_keep_alive_task is not None or self._is_done
        return (self.scope or self) if self._is_idle() and not rests else None

    def give_up(self) -> None:
        """Close a connection whose request did not come in time."""
        if self.scope is None:  # nothing has come
            self.transport.close()
        else:
            self._refuse(408, "the head of the request did not come in time")

    def _check_head(self, count: int) -> None:
        """Refuse a head that takes too many bytes; those of whole heads are not counted."""
        known, before = self._head
        self._head = (self.scope, count + (before if known is self.scope else 0))
        if self._head[1] > _LARGEST_HEAD:
            self._refuse(431, f"the head of a request may have {_LARGEST_HEAD:,} bytes")

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, in JSON as all others."""
        self._refuse(400, "this is not a request of HTTP/1.1")

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: a request for websockets is answered as if it had not asked for them."""

    def on_response_complete(self) -> None:
        if self._is_done:
            self.server_state.total_requests += 1
        else:
            super().on_response_complete()

    def end(self) -> None:
        """Close the connection, but let the client read the answer first.

        If bytes arrive that nobody reads, the client's system throws the answer away. So the rest of what is
        sent is read and forgotten, for some seconds at most.
        """
        if self.transport.is_closing() or self._is_done:
            return
        self._is_done = True
        self._unset_keepalive_if_required()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self.loop.call_later(_LINGER, self.transport.close)

    def _start_cycle(self) -> None:
        if len(self.pipeline) >= _MOST_AHEAD:  # uvicorn queues them without limit
            self.transport.abort()
            return
        super().on_headers_complete()
        self.cycle.transport = _Lingering(self, self.cycle)
        if self.app.guard.is_ending:
            self.cycle.keep_alive = False

    def _refuse(self, status: int, reason: str) -> None:
        self._write(refusal(RequestError(status, reason, close=True)), [])
        self.end()


class _Lingering:
    """The transport that uvicorn's answers are written to: one whose body is not read to its end lingers."""

    def __init__(self, connection: Connection, cycle: Any) -> None:
        self._connection = connection
        self._cycle = cycle
        self.write = connection.transport.write
        self.is_closing = connection.transport.is_closing

    def close(self) -> None:
        if self._cycle.more_body:
            self._connection.end()
        else:
            self._connection.transport.close()


_OF_PROTOCOL = (
    *("connections", "cycle", "expect_100_continue", "flow", "headers", "loop", "parser", "pipeline"),
    *("on_response_complete", "scope", "send_400_response", "server_state", "shutdown"),
    *("timeout_keep_alive_task", "_unset_keepalive_if_required"),
)
_OF_CYCLE = ("keep_alive", "more_body", "response_complete", "transport")


def protocol() -> type[asyncio.Protocol] | str:
    """The class of connections for uvicorn: ours, or its own if it is not made as ours expects."""
    differs = difference(HttpToolsProtocol, RequestResponseCycle)
    if not differs:
        return Connection
    reason = f"uvicorn {uvicorn.__version__} has {differs}"
    log("requests take the ordinary way", level="warning", reason=reason, remedy="install unkernel[serve]")
    return "httptools"


async def _never_asked(scope: Any, receive: Any, send: Any) -> None: ...


def difference(connections: Any, cycles: Any) -> str:
    """How uvicorn's classes differ from those that :class:`Connection` changes; empty if they do not."""
    config = uvicorn.Config(_never_asked, http=connections, log_config=None, ws="none", lifespan="off")
    loop = asyncio.new_event_loop()
    try:
        config.load()
        made = connections(config, ServerState(), {}, loop)
        options = dict.fromkeys(inspect.signature(cycles).parameters)
        parts = [(made, name) for name in _OF_PROTOCOL] + [(cycles(**options), name) for name in _OF_CYCLE]
    except Exception as error:
        return f"another way to make connections: {error}"
    finally:
        loop.close()
    missing = next((name for part, name in parts if not hasattr(part, name)), None)
    return "" if missing is None else f"no {missing}"
