"""The ASGI application: routing, authentication, limits, request ids, metrics and errors.

A table of paths routes requests to models. Starlette routes all other requests, which are rarer.
"""

from __future__ import annotations

import hmac
import itertools
import re
import secrets
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from starlette.exceptions import HTTPException
from starlette.routing import Router

from unkernel.serve.connection_limits import ConnectionLimits
from unkernel.serve.errors import RequestError
from unkernel.serve.http_messages import JSON, Head, HeaderList, Receive, Reply, Route, Scope, Send
from unkernel.serve.json_log import log
from unkernel.serve.metrics import Metrics
from unkernel.serve.model_endpoints import ModelEndpoints
from unkernel.serve.request_bodies import DisconnectedError, Headers, encode_json
from unkernel.serve.settings import Settings

# Paths that are accessible without a token.
_PUBLIC_PATHS = re.compile(r"/(page/[a-z.]+|docs|v2/health/(live|ready))?")
# Paths to which the limit of concurrent requests does not apply.
_UNLIMITED_PATHS = re.compile(r"/(metrics|v2/health/(live|ready))")
_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")
_CLIENT_GONE_STATUS = 499  # status in the metrics if the client disconnects before the response
_BEARER_PREFIX = b"bearer "
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Application:
    """ASGI application of one worker.

    Parameters
    ----------
    settings : Settings
    metrics : Metrics
    model_endpoints : ModelEndpoints
        The endpoints of models, all with the method POST.
    info_router : Router
        The other endpoints.
    connection_limits : ConnectionLimits
    """

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics,
        model_endpoints: ModelEndpoints,
        info_router: Router,
        connection_limits: ConnectionLimits,
    ) -> None:
        self._settings = settings
        self.connection_limits = connection_limits
        self._metrics = metrics
        self._model_endpoints = model_endpoints
        self._routes = routes = model_endpoints.make_routes()
        self.fast_routes = {path.encode(): route for path, route in routes.items() if route.endpoint.short}
        self._info_router = info_router
        self._tokens = [token.encode() for token in settings.tokens]
        self._n_running = 0
        self._ids = itertools.count()
        self._id_prefix = secrets.token_hex(4).encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request and send the response."""
        if scope["type"] != "http":
            await self._info_router(scope, receive, send)
            return
        start_time = time.perf_counter()
        route = self._routes.get(scope["path"]) if scope["method"] == "POST" else None
        headers = dict(scope["headers"])
        writer = _ResponseWriter(send, self._choose_request_id(headers))
        self._n_running += 1
        try:
            self._check_request(scope["path"], headers)
            if route is None:
                scope["app"] = self  # makes Starlette raise errors instead of sending error pages
                await self._info_router(scope, receive, writer.forward)
            else:
                head = Head(headers, scope["query_string"])
                await writer.send_reply(await self._model_endpoints.answer(route, head, receive))
        except DisconnectedError:
            writer.status = _CLIENT_GONE_STATUS
        except Exception as error:
            if writer.status:  # the response has begun already and can only be aborted
                raise
            await writer.send_reply(_make_exception_reply(error, writer.request_id))
        finally:
            self._n_running -= 1
            seconds = time.perf_counter() - start_time
            self._record_request(
                route,
                writer.status or _CLIENT_GONE_STATUS,
                seconds,
                method=scope["method"],
                path=scope["path"],
                request_id=writer.request_id,
            )

    def answer_immediately(self, url: bytes, headers: HeaderList, body: bytes) -> Reply | None:
        """Answer a complete request to one of the `fast_routes`; return None if it needs a thread."""
        start_time = time.perf_counter()
        route, header_values = self.fast_routes[url], dict(headers)
        request_id = self._choose_request_id(header_values)
        try:
            self._check_request(url.decode(), header_values)
            reply = self._model_endpoints.answer_immediately(route, Head(header_values), body)
        except Exception as error:
            reply = _make_exception_reply(error, request_id)
        if reply is None:
            return None
        seconds = time.perf_counter() - start_time
        self._record_request(
            route, reply.status, seconds, method="POST", path=url.decode(), request_id=request_id
        )
        return Reply(reply.body, reply.status, [*reply.headers, (b"x-request-id", request_id)])

    def _check_request(self, path: str, headers: Headers) -> None:
        """Raise a RequestError if the request is not allowed."""
        if self._tokens and not _PUBLIC_PATHS.fullmatch(path):
            self._check_token(headers)
        if self._n_running > self._settings.limits.concurrency and not _UNLIMITED_PATHS.fullmatch(path):
            raise RequestError(429, "the server is busy with too many requests: try again in a second")
        if headers.get(b"content-encoding", b"identity") != b"identity":
            raise RequestError(415, "the body is compressed: send it without a content-encoding", close=True)
        # The HTTP parser would skip the body of a request with the header Upgrade.
        if b"upgrade" in headers and b"content-length" in headers:
            advice = "send the request without the header Upgrade; in Java, set HttpClient.Version.HTTP_1_1"
            raise RequestError(400, advice, close=True)

    def _check_token(self, headers: Headers) -> None:
        authorization = headers.get(b"authorization", b"")
        scheme, token = authorization[: len(_BEARER_PREFIX)], authorization[len(_BEARER_PREFIX) :]
        if scheme.lower() != _BEARER_PREFIX:
            token = b""
        # Compare all tokens, each in constant time: the time must not reveal a token.
        matches = [hmac.compare_digest(token, accepted) for accepted in self._tokens]
        if not any(matches):
            raise RequestError(401, "send the header: Authorization: Bearer and one of the server's tokens")

    def _choose_request_id(self, headers: Headers) -> bytes:
        id_of_client = headers.get(b"x-request-id")
        if id_of_client and _REQUEST_ID.fullmatch(id_of_client):
            return id_of_client
        return b"%s-%x" % (self._id_prefix, next(self._ids))

    def _record_request(
        self, route: Route | None, status: int, seconds: float, *, method: str, path: str, request_id: bytes
    ) -> None:
        """Count a request, and log it if ``log_requests`` is set."""
        model, endpoint = (route.model, route.endpoint.name) if route else ("", "other")
        self._metrics.count_request(model, endpoint, status, seconds)
        if self._settings.log_requests:
            log(
                "request",
                request=request_id.decode(),
                method=method,
                path=path,
                status=status,
                seconds=round(seconds, 6),
            )


def _make_exception_reply(error: Exception, request_id: bytes) -> Reply:
    """Return the error response for an exception; log exceptions that are not the client's fault."""
    if isinstance(error, RequestError):
        return make_error_reply(error)
    if isinstance(error, HTTPException):
        reason = f"{error.detail.lower()}; see /docs"
        return make_error_reply(RequestError(error.status_code, reason), error.headers or {})
    log("request failed", level="error", request=request_id.decode(), exc_info=error)
    return make_error_reply(RequestError(500, "the server failed; its log says why"))


def make_error_reply(error: RequestError, more_headers: Mapping[str, str] = _NO_HEADERS) -> Reply:
    """Return the response to a rejected request."""
    headers = [*JSON, *((name.lower().encode(), value.encode()) for name, value in more_headers.items())]
    if error.close:
        headers.append((b"connection", b"close"))
    if error.status == 429:
        headers.append((b"retry-after", b"1"))
    if error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    return Reply(encode_json(error.to_json()), error.status, headers)


class _ResponseWriter:
    """Sends the response to a request, with the id of the request in a header."""

    def __init__(self, send: Send, request_id: bytes) -> None:
        self._send = send
        self.request_id = request_id
        self.status = 0  # 0 until the response begins

    async def send_reply(self, reply: Reply) -> None:
        """Send a reply as one body or as a stream."""
        if isinstance(reply.body, bytes):
            await self._start(reply.status, [*reply.headers, (b"content-length", b"%d" % len(reply.body))])
            await self._send({"type": "http.response.body", "body": reply.body})
            return
        async for part in reply.body:
            if not self.status:  # send the head with the first part, which may still fail with another status
                await self._start(reply.status, reply.headers)
            await self._send({"type": "http.response.body", "body": part, "more_body": True})
        if not self.status:
            await self._start(reply.status, reply.headers)
        await self._send({"type": "http.response.body", "body": b""})

    async def forward(self, message: Any) -> None:
        """Send a message of Starlette."""
        if message["type"] == "http.response.start":
            await self._start(message["status"], message["headers"])
        else:
            await self._send(message)

    async def _start(self, status: int, headers: HeaderList) -> None:
        self.status = status
        start = {
            "type": "http.response.start",
            "status": status,
            "headers": [*headers, (b"x-request-id", self.request_id)],
        }
        await self._send(start)
