"""The ASGI application: routing, authentication, limits, request ids, metrics and errors of all requests.

The endpoints of models are found in a table of paths; Starlette routes all others, which are rarer.
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

from unkernel.serve.connection_limits import Guard
from unkernel.serve.errors import RequestError
from unkernel.serve.http_messages import JSON, Head, HeaderList, Receive, Reply, Route, Scope, Send
from unkernel.serve.json_log import log
from unkernel.serve.metrics import Metrics
from unkernel.serve.model_endpoints import Asking
from unkernel.serve.request_bodies import DisconnectedError, Headers, to_json
from unkernel.serve.settings import Settings

_OPEN = re.compile(r"/(page/[a-z.]+|docs|v2/health/(live|ready))?")  # to all, with a token or without
_NEVER_FULL = re.compile(r"/(metrics|v2/health/(live|ready))")  # so that who is busy is not taken for dead
_ID = re.compile(rb"[\x21-\x7e]{1,128}")
_GONE = 499  # counted for those who did not wait for the answer
_BEARER = b"bearer "
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Application:
    """An application of ASGI.

    Parameters
    ----------
    settings : Settings
    metrics : Metrics
    asking : Asking
        What models answer. All are POST.
    pages : Router
        All else.
    guard : Guard
        Limits of connections.
    """

    def __init__(
        self, settings: Settings, metrics: Metrics, asking: Asking, pages: Router, guard: Guard
    ) -> None:
        self._settings = settings
        self.guard = guard
        self._metrics = metrics
        self._asking = asking
        self._routes = routes = asking.routes()
        self.short_ways = {path.encode(): route for path, route in routes.items() if route.endpoint.short}
        self._pages = pages
        self._tokens = [token.encode() for token in settings.tokens]
        self._answering = 0
        self._ids = itertools.count()
        self._prefix = secrets.token_hex(4).encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._pages(scope, receive, send)
            return
        began = time.perf_counter()
        route = self._routes.get(scope["path"]) if scope["method"] == "POST" else None
        headers = dict(scope["headers"])
        answer = _Answer(send, self._id(headers))
        self._answering += 1
        try:
            self._check(scope["path"], headers)
            if route is None:
                scope["app"] = self  # so that Starlette raises what is wrong, and does not answer it
                await self._pages(scope, receive, answer.pass_on)
            else:
                head = Head(headers, scope["query_string"])
                await answer.reply(await self._asking.answer(route, head, receive))
        except DisconnectedError:
            answer.status = _GONE
        except Exception as error:
            if answer.status:  # a response that has begun can only be aborted
                raise
            await answer.reply(_refusal_of(error, answer.id))
        finally:
            self._answering -= 1
            seconds = time.perf_counter() - began
            self._count(
                route,
                answer.status or _GONE,
                seconds,
                method=scope["method"],
                path=scope["path"],
                request_id=answer.id,
            )

    def answer_at_once(self, url: bytes, headers: HeaderList, body: bytes) -> Reply | None:
        """The answer to a whole request at one of the `short_ways`; None if that takes longer."""
        began = time.perf_counter()
        route, given = self.short_ways[url], dict(headers)
        request_id = self._id(given)
        try:
            self._check(url.decode(), given)
            reply = self._asking.answer_at_once(route, Head(given), body)
        except Exception as error:
            reply = _refusal_of(error, request_id)
        if reply is None:
            return None
        seconds = time.perf_counter() - began
        self._count(route, reply.status, seconds, method="POST", path=url.decode(), request_id=request_id)
        return Reply(reply.body, reply.status, [*reply.headers, (b"x-request-id", request_id)])

    def _check(self, path: str, headers: Headers) -> None:
        """Raise a RequestError if the request must not be answered."""
        if self._tokens and not _OPEN.fullmatch(path):
            self._check_token(headers)
        if self._answering > self._settings.limits.concurrency and not _NEVER_FULL.fullmatch(path):
            raise RequestError(429, "too many requests are being answered: try again in a second")
        if headers.get(b"content-encoding", b"identity") != b"identity":
            raise RequestError(415, "the body is compressed: send it without a content-encoding", close=True)
        if b"upgrade" in headers and b"content-length" in headers:  # parsers of HTTP do not read its body
            words = "send the request without the header Upgrade; in Java, set HttpClient.Version.HTTP_1_1"
            raise RequestError(400, words, close=True)

    def _check_token(self, headers: Headers) -> None:
        given = headers.get(b"authorization", b"")
        token = given[len(_BEARER) :] if given[: len(_BEARER)].lower() == _BEARER else b""
        fits = [hmac.compare_digest(token, known) for known in self._tokens]  # all, in the same time
        if not any(fits):
            raise RequestError(401, "send the header: Authorization: Bearer and one of the server's tokens")

    def _id(self, headers: Headers) -> bytes:
        given = headers.get(b"x-request-id")
        return given if given and _ID.fullmatch(given) else b"%s-%x" % (self._prefix, next(self._ids))

    def _count(
        self, route: Route | None, status: int, seconds: float, *, method: str, path: str, request_id: bytes
    ) -> None:
        model, endpoint = (route.model, route.endpoint.name) if route else ("", "other")
        self._metrics.answered(model, endpoint, status, seconds)
        if self._settings.log_requests:
            log(
                "request",
                request=request_id.decode(),
                method=method,
                path=path,
                status=status,
                seconds=round(seconds, 6),
            )


def _refusal_of(error: Exception, request_id: bytes) -> Reply:
    """The error response of what was raised; an error of the server's own is logged."""
    if isinstance(error, RequestError):
        return refusal(error)
    if isinstance(error, HTTPException):
        words = f"{error.detail.lower()}; see /docs"
        return refusal(RequestError(error.status_code, words), error.headers or {})
    log("request failed", level="error", request=request_id.decode(), exc_info=error)
    return refusal(RequestError(500, "the server failed; its log says why"))


def refusal(error: RequestError, others: Mapping[str, str] = _NO_HEADERS) -> Reply:
    """The error response of a request."""
    headers = [*JSON, *((name.lower().encode(), value.encode()) for name, value in others.items())]
    if error.close:
        headers.append((b"connection", b"close"))
    if error.status == 429:
        headers.append((b"retry-after", b"1"))
    if error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    return Reply(to_json(error.to_json()), error.status, headers)


class _Answer:
    """How the answer to one request is sent."""

    def __init__(self, send: Send, request_id: bytes) -> None:
        self._send = send
        self.id = request_id
        self.status = 0  # until it begins

    async def reply(self, reply: Reply) -> None:
        """Send an answer, at once or as it comes."""
        if isinstance(reply.body, bytes):
            await self._start(reply.status, [*reply.headers, (b"content-length", b"%d" % len(reply.body))])
            await self._send({"type": "http.response.body", "body": reply.body})
            return
        async for part in reply.body:
            if not self.status:  # only now, as what is wrong with the first part has a status of its own
                await self._start(reply.status, reply.headers)
            await self._send({"type": "http.response.body", "body": part, "more_body": True})
        if not self.status:
            await self._start(reply.status, reply.headers)
        await self._send({"type": "http.response.body", "body": b""})

    async def pass_on(self, message: Any) -> None:
        """Send what Starlette answers."""
        if message["type"] == "http.response.start":
            await self._start(message["status"], message["headers"])
        else:
            await self._send(message)

    async def _start(self, status: int, headers: HeaderList) -> None:
        self.status = status
        start = {
            "type": "http.response.start",
            "status": status,
            "headers": [*headers, (b"x-request-id", self.id)],
        }
        await self._send(start)
