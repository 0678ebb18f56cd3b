"""Connections of the server: uvicorn's, with a shorter way for short requests."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from unkernel.serve.messages import SHORT, HeaderList, Reply

if TYPE_CHECKING:
    from unkernel.serve.app import Application

_STATUS_LINES = {
    int(status): f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}


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

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._held is not None:
            self._pass_on()

    def on_headers_complete(self) -> None:
        if self._may_be_short():
            self._held = bytearray()
        else:
            super().on_headers_complete()

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
            and (self.cycle is None or self.cycle.response_complete)  # else answers would overtake each other
            and self.parser.should_keep_alive()
            and not self.expect_100_continue
            and not self.flow.write_paused
            and not self.transport.is_closing()
        )

    def _pass_on(self) -> None:
        """Give what is held to ASGI."""
        assert self._held is not None
        body, self._held = bytes(self._held), None
        super().on_headers_complete()
        if body:
            super().on_body(body)

    def _send(self, reply: Reply) -> None:
        assert isinstance(reply.body, bytes)
        parts = [_STATUS_LINES[reply.status]]
        headers: HeaderList = [*self.server_state.default_headers, *reply.headers]
        for name, value in headers:
            parts += (name, b": ", value, b"\r\n")
        parts.append(b"content-length: %d\r\n\r\n" % len(reply.body))
        parts.append(reply.body)
        self.transport.write(b"".join(parts))
        self.on_response_complete()
