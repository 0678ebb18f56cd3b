"""All other endpoints: models, health, metrics, documentation and the page."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from unkernel.serve import inference_protocol
from unkernel.serve.connection_limits import Guard
from unkernel.serve.errors import RequestError
from unkernel.serve.http_messages import Head
from unkernel.serve.http_messages import Route as ModelRoute
from unkernel.serve.metrics import Metrics
from unkernel.serve.model_endpoints import Asking
from unkernel.serve.openapi import document
from unkernel.serve.request_bodies import to_json
from unkernel.serve.served_models import Models
from unkernel.serve.watchdog import Watchdog

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_POLICY = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'"


class Pages:
    """The other endpoints.

    Parameters
    ----------
    models : Models
    asking : Asking
    metrics : Metrics
    guard : Guard
    watchdog : Watchdog or None
    """

    def __init__(
        self,
        models: Models,
        asking: Asking,
        metrics: Metrics,
        guard: Guard,
        watchdog: Watchdog | None = None,
    ) -> None:
        self._models = models
        self._guard = guard
        self._watchdog = watchdog
        self._asking = asking
        self._metrics = metrics
        self._files = {
            entry.name: entry.read_bytes()
            for entry in files("unkernel.serve").joinpath("page").iterdir()
            if entry.is_file()
        }

    def router(self) -> Router:
        """The router of all these endpoints; it raises errors, which the application answers."""
        version = "/v2/models/{name}/versions/{version}"
        return Router(
            routes=[
                Route("/", self._file("index.html")),
                Route("/docs", self._file("docs.html")),
                Route("/page/{file}", self.file),
                Route("/openapi.json", self.openapi),
                Route("/metrics", self.metrics),
                Route("/models", self.listed),
                Route("/models/{name}", self.described),
                Route("/models/{name}/load", self.load, methods=["POST"]),
                Route("/models/{name}/{endpoint}", self.unknown, methods=["POST"]),
                Route("/v2", self.server),
                Route("/v2/health/live", self.live),
                Route("/v2/health/ready", self.ready),
                Route("/v2/models/{name}", self.metadata),
                Route("/v2/models/{name}/ready", self.model_ready),
                Route("/v2/models/{name}/infer", self.unknown, methods=["POST"]),
                Route(version, self.metadata),
                Route(f"{version}/ready", self.model_ready),
                Route(f"{version}/infer", self.infer, methods=["POST"]),
                Route("/v2/repository/index", self.index, methods=["POST"]),
                Route("/v2/repository/models/{name}/load", self.load, methods=["POST"]),
            ],
            redirect_slashes=False,
            lifespan=self._lifespan,
        )

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: object) -> AsyncIterator[None]:
        works = [self._models.watch(), self._asking.patience.give_up(), self._guard.give_up()]
        if self._watchdog is not None:
            works.append(self._watchdog.beat())
        tasks = [asyncio.create_task(work) for work in works]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            self._asking.close()

    # --- Models ---------------------------------------------------------------------------------------

    async def listed(self, _: Request) -> Response:
        return _json({"models": [self._models.describe(name) for name in self._models.names]})

    async def described(self, request: Request) -> Response:
        return _json(self._models.describe(request.path_params["name"]))

    async def load(self, request: Request) -> Response:
        served = await asyncio.to_thread(self._models.reload, request.path_params["name"])
        return _json({"name": served.name, "version": served.version, "load_seconds": served.load_seconds})

    async def unknown(self, request: Request) -> Response:
        self._models.get(request.path_params["name"])
        raise RequestError(404, f"there is nothing at {request.url.path}; see /docs")

    # --- The Open Inference Protocol ------------------------------------------------------------------

    async def server(self, _: Request) -> Response:
        return _json(inference_protocol.SERVER)

    async def live(self, _: Request) -> Response:
        return _json({"live": True})

    async def ready(self, _: Request) -> Response:
        for name in self._models.names:
            self._models.get(name)
        return _json({"ready": True})

    async def metadata(self, request: Request) -> Response:
        return _json(inference_protocol.metadata(self._models.get(**request.path_params)))

    async def model_ready(self, request: Request) -> Response:
        served = self._models.get(**request.path_params)
        return _json({"name": served.name, "ready": True})

    async def infer(self, request: Request) -> Response:
        name, version = request.path_params["name"], request.path_params["version"]
        route, head = ModelRoute(name, self._asking.infer), Head(dict(request.headers.raw))
        reply = await self._asking.answer(route, head, request.receive, version)
        assert isinstance(reply.body, bytes)
        response = Response(reply.body)
        response.raw_headers[:] = [*reply.headers, (b"content-length", b"%d" % len(reply.body))]
        return response

    async def index(self, _: Request) -> Response:
        served = [self._models.get(name) for name in self._models.names]
        return _json([{"name": one.name, "version": one.version, "state": "READY"} for one in served])

    # --- For people, and for Prometheus ---------------------------------------------------------------

    async def metrics(self, _: Request) -> Response:
        text, kind = await asyncio.to_thread(self._metrics.text)
        return Response(text, headers={"content-type": kind})

    async def openapi(self, _: Request) -> Response:
        return _json(document([self._models.get(name) for name in self._models.names]))

    async def file(self, request: Request) -> Response:
        return self._response(request.path_params["file"])

    def _file(self, name: str) -> Callable[[Request], Any]:
        async def endpoint(_: Request) -> Response:
            return self._response(name)

        return endpoint

    def _response(self, name: str) -> Response:
        """A file of the page: those were read when the server started, and no other is ever opened."""
        if name not in self._files or name.rpartition(".")[2] not in _TYPES:
            raise RequestError(404, f"there is no {name!r}")
        headers = {"content-security-policy": _POLICY, "cache-control": "no-cache"}
        return Response(self._files[name], media_type=_TYPES[name.rpartition(".")[2]], headers=headers)


def _json(value: Any) -> Response:
    return Response(to_json(value), media_type="application/json")
