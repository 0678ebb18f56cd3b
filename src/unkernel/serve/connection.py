"""Connections of the server: those of uvicorn, with a fast path for short requests."""

from __future__ import annotations

import asyncio
import inspect
from http import HTTPStatus
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from unkernel.serve.app import Application, make_error_reply
from unkernel.serve.errors import RequestError
from unkernel.serve.http_messages import SHORT_BODY_BYTES, HeaderList, Reply
from unkernel.serve.json_log import log

_STATUS_LINES = {
    int(status): f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}
_MAX_HEAD_BYTES = 1 << 16  # not counting bytes that arrive together with the end of the head
_LINGER_SECONDS = 5.0
_MAX_PIPELINED_REQUESTS = 1000  # largest number per connection
_LAST_REQUEST_SECONDS = 1.0  # time for one more request after shutdown begins
_MAX_REFUSED_CONNECTIONS = 100  # rejected connections that stay open until their clients have read the error


class Connection(HttpToolsProtocol):  # type: ignore[misc]  # uvicorn is half typed
    """HTTP connection that answers short requests without ASGI.

    ASGI creates a task, an event and several coroutines per request, which takes longer than most
    predictions. If the complete body has arrived and the response needs no waiting, this class responds in
    the callback of the parser. All other requests go through ASGI, as in uvicorn.
    """

    app: Application

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._short_body: bytearray | None = None  # the bytes received so far, if ASGI is not used
        self._ignores_input = False  # whether to discard further input
        # The request with an incomplete head, and the size of this head in bytes.
        self._head: tuple[object, int] = (None, 0)

    # --- Short requests -------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._ignores_input:
            return
        super().data_received(data)
        if self._short_body is not None:
            self._pass_to_asgi()
        elif self.timeout_keep_alive_task is None and self.pending_head() is not None:
            self._check_head(len(data))

    def on_headers_complete(self) -> None:
        if self._may_be_short():
            self._short_body = bytearray()
        else:
            self._start_cycle()

    def on_body(self, body: bytes) -> None:
        if self._short_body is None:
            super().on_body(body)
            return
        self._short_body += body
        if len(self._short_body) > SHORT_BODY_BYTES:
            self._pass_to_asgi()

    def on_message_complete(self) -> None:
        if self._short_body is not None:
            reply = self.app.answer_immediately(self.url, self.headers, bytes(self._short_body))
            if reply is not None:
                self._short_body = None
                self._send(reply)
                return
            self._pass_to_asgi()
        super().on_message_complete()

    def _may_be_short(self) -> bool:
        """Return whether the head of the request allows an answer without ASGI."""
        return (
            self.url in self.app.fast_routes
            and self.parser.get_method() == b"POST"
            and self._is_idle()  # responses must be sent in the order of requests
            and self.parser.should_keep_alive()
            and self.parser.get_http_version() == "1.1"  # responses to HTTP/1.0 need a keep-alive header
            and not self.expect_100_continue
            and not self.app.connection_limits.is_ending  # the last response must have Connection: close
            and not self.flow.write_paused
            and not self.transport.is_closing()
        )

    def _pass_to_asgi(self) -> None:
        """Pass the request to ASGI, together with the bytes of its body received so far."""
        assert self._short_body is not None
        body, self._short_body = bytes(self._short_body), None
        self._start_cycle()
        if body:
            super().on_body(body)

    def _send(self, reply: Reply) -> None:
        self._write(reply, self.server_state.default_headers)
        self.on_response_complete()

    def _write(self, reply: Reply, default_headers: HeaderList) -> None:
        assert isinstance(reply.body, bytes)
        parts = [_STATUS_LINES[reply.status]]
        for name, value in (*default_headers, *reply.headers):
            parts += (name, b": ", value, b"\r\n")
        parts.append(b"content-length: %d\r\n\r\n" % len(reply.body))
        parts.append(reply.body)
        self.transport.write(b"".join(parts))

    # --- Connections that end before their requests ------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        limits = self.app.connection_limits
        limits.connections = self.connections
        if limits.is_ending:  # the connection was in the backlog when the shutdown began
            self.shutdown()
        if len(self.connections) > limits.max_connections + _MAX_REFUSED_CONNECTIONS:
            transport.abort()
        elif len(self.connections) > limits.max_connections:
            self._refuse(503, "the server has too many connections: try again in a second")

    def shutdown(self) -> None:
        """Close the connection after the running request, or after a request that arrives within a second.

        The client of an idle connection may already have sent a request. The response to this request has the
        header ``Connection: close``.
        """
        self.app.connection_limits.is_ending = True
        if self._is_idle():
            self.loop.call_later(_LAST_REQUEST_SECONDS, self._close_if_idle)
        else:
            super().shutdown()

    def _close_if_idle(self) -> None:
        if self._is_idle():
            self.transport.close()

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def pending_head(self) -> object | None:
        """Return the request with an incomplete head; None if there is no such request.

        Uvicorn makes the scope of a request from its first bytes. Before, the connection stands for it.
        """
        is_inactive = self.timeout_keep_alive_task is not None or self._ignores_input
        return (self.scope or self) if self._is_idle() and not is_inactive else None

    def refuse_late_head(self) -> None:
        """Close the connection because no request arrived in time."""
        if self.scope is None:  # no bytes have arrived, so there is no request to respond to
            self.transport.close()
        else:
            self._refuse(408, "the head of the request did not arrive in time")

    def _check_head(self, count: int) -> None:
        """Reject a request whose incomplete head has too many bytes."""
        request, n_previous_bytes = self._head
        self._head = (self.scope, count + (n_previous_bytes if request is self.scope else 0))
        if self._head[1] > _MAX_HEAD_BYTES:
            self._refuse(431, f"the head of a request may have at most {_MAX_HEAD_BYTES:,} bytes")

    def send_400_response(self, msg: str) -> None:
        """Reject bytes that are not HTTP; the response is JSON, like the response to any other error."""
        self._refuse(400, "this is not an HTTP/1.1 request")

    def _unsupported_upgrade_warning(self) -> None:
        """Do not warn about requests to upgrade to websockets; they get an ordinary response."""

    def on_response_complete(self) -> None:
        if self._ignores_input:
            self.server_state.total_requests += 1
        else:
            super().on_response_complete()

    def end(self) -> None:
        """Close the connection after the client has had time to read the response.

        If the server closed the connection without reading the remaining input, the connection would be reset
        and the client would lose the response. Further input is therefore read and discarded for some
        seconds.
        """
        if self.transport.is_closing() or self._ignores_input:
            return
        self._ignores_input = True
        self._unset_keepalive_if_required()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self.loop.call_later(_LINGER_SECONDS, self.transport.close)

    def _start_cycle(self) -> None:
        if len(self.pipeline) >= _MAX_PIPELINED_REQUESTS:  # uvicorn queues pipelined requests without limit
            self.transport.abort()
            return
        super().on_headers_complete()
        self.cycle.transport = _LingeringTransport(self, self.cycle)
        if self.app.connection_limits.is_ending:
            self.cycle.keep_alive = False

    def _refuse(self, status: int, reason: str) -> None:
        self._write(make_error_reply(RequestError(status, reason, close=True)), [])
        self.end()


class _LingeringTransport:
    """Transport of responses; `close` takes effect with a delay if the request was not read completely."""

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


# The attributes of uvicorn's classes that `Connection` uses.
_PROTOCOL_ATTRIBUTES = (
    *("connections", "cycle", "expect_100_continue", "flow", "headers", "loop", "parser", "pipeline"),
    *("on_response_complete", "scope", "send_400_response", "server_state", "shutdown"),
    *("timeout_keep_alive_task", "_unset_keepalive_if_required"),
)
_CYCLE_ATTRIBUTES = ("keep_alive", "more_body", "response_complete", "transport")


def choose_protocol() -> type[asyncio.Protocol] | str:
    """Return :class:`Connection`, or uvicorn's own protocol if this version of uvicorn is incompatible."""
    difference = find_difference(HttpToolsProtocol, RequestResponseCycle)
    if not difference:
        return Connection
    reason = f"uvicorn {uvicorn.__version__} has {difference}"
    log("short requests take the slow path", level="warning", reason=reason, remedy="install unkernel[serve]")
    return "httptools"


async def _null_app(scope: Any, receive: Any, send: Any) -> None: ...


def find_difference(connection_class: Any, cycle_class: Any) -> str:
    """Describe the first requirement of :class:`Connection` that uvicorn's classes do not meet, or ""."""
    config = uvicorn.Config(_null_app, http=connection_class, log_config=None, ws="none", lifespan="off")
    loop = asyncio.new_event_loop()
    try:
        config.load()
        connection = connection_class(config, ServerState(), {}, loop)
        options = dict.fromkeys(inspect.signature(cycle_class).parameters)
        cycle = cycle_class(**options)
    except Exception as error:
        return f"an incompatible constructor: {error}"
    finally:
        loop.close()
    missing = [name for name in _PROTOCOL_ATTRIBUTES if not hasattr(connection, name)]
    missing += [name for name in _CYCLE_ATTRIBUTES if not hasattr(cycle, name)]
    return f"no {missing[0]}" if missing else ""
