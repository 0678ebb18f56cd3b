"""The endpoints with information: descriptions of models, health, metrics, documentation and the page."""

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
from unkernel.serve.connection_limits import ConnectionLimits
from unkernel.serve.errors import RequestError
from unkernel.serve.http_messages import Head
from unkernel.serve.http_messages import Route as ModelRoute
from unkernel.serve.metrics import Metrics
from unkernel.serve.model_endpoints import ModelEndpoints
from unkernel.serve.openapi import make_document
from unkernel.serve.request_bodies import encode_json
from unkernel.serve.served_models import ServedModels
from unkernel.serve.watchdog import Watchdog

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_POLICY = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; frame-ancestors 'none'"


class InfoEndpoints:
    """Handlers of the endpoints with information about models and the server."""

    def __init__(
        self,
        models: ServedModels,
        model_endpoints: ModelEndpoints,
        metrics: Metrics,
        connection_limits: ConnectionLimits,
        watchdog: Watchdog | None = None,
    ) -> None:
        self._models = models
        self._connection_limits = connection_limits
        self._watchdog = watchdog
        self._model_endpoints = model_endpoints
        self._metrics = metrics
        self._files = {
            entry.name: entry.read_bytes()
            for entry in files("unkernel.serve").joinpath("page").iterdir()
            if entry.is_file()
        }

    def make_router(self) -> Router:
        """Return a router for the endpoints; it raises errors, and the application sends error responses."""
        version = "/v2/models/{name}/versions/{version}"
        return Router(
            routes=[
                Route("/", self._make_file_endpoint("index.html")),
                Route("/docs", self._make_file_endpoint("docs.html")),
                Route("/page/{file}", self.send_file),
                Route("/openapi.json", self.send_openapi),
                Route("/metrics", self.send_metrics),
                Route("/models", self.list_models),
                Route("/models/{name}", self.describe_model),
                Route("/models/{name}/load", self.load, methods=["POST"]),
                Route("/models/{name}/{endpoint}", self.refuse_path, methods=["POST"]),
                Route("/v2", self.describe_server),
                Route("/v2/health/live", self.check_live),
                Route("/v2/health/ready", self.check_ready),
                Route("/v2/models/{name}", self.describe_tensors),
                Route("/v2/models/{name}/ready", self.check_model_ready),
                Route("/v2/models/{name}/infer", self.refuse_path, methods=["POST"]),
                Route(version, self.describe_tensors),
                Route(f"{version}/ready", self.check_model_ready),
                Route(f"{version}/infer", self.infer, methods=["POST"]),
                Route("/v2/repository/index", self.list_repository, methods=["POST"]),
                Route("/v2/repository/models/{name}/load", self.load, methods=["POST"]),
            ],
            redirect_slashes=False,
            lifespan=self._lifespan,
        )

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: object) -> AsyncIterator[None]:
        """Run the endless loops of the worker while it serves; then stop its threads and collect counts."""
        loops = [
            self._models.watch(),
            self._model_endpoints.body_timeouts.watch(),
            self._connection_limits.watch(),
            self._metrics.watch(),
        ]
        if self._watchdog is not None:
            loops.append(self._watchdog.beat())
        tasks = [asyncio.create_task(loop) for loop in loops]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            self._model_endpoints.close()
            self._metrics.collect_counts()

    # --- Models ---------------------------------------------------------------------------------------

    async def list_models(self, _: Request) -> Response:
        return _make_json_response({"models": [self._models.describe(name) for name in self._models.names]})

    async def describe_model(self, request: Request) -> Response:
        return _make_json_response(self._models.describe(request.path_params["name"]))

    async def load(self, request: Request) -> Response:
        served = await asyncio.to_thread(self._models.reload, request.path_params["name"])
        return _make_json_response(
            {"name": served.name, "version": served.version, "load_seconds": served.load_seconds}
        )

    async def refuse_path(self, request: Request) -> Response:
        """Reject a path below ``/models`` that is not in the application's table of routes."""
        self._models.get(request.path_params["name"])
        raise RequestError(404, f"there is nothing at {request.url.path}; see /docs")

    # --- The Open Inference Protocol ------------------------------------------------------------------

    async def describe_server(self, _: Request) -> Response:
        return _make_json_response(inference_protocol.SERVER)

    async def check_live(self, _: Request) -> Response:
        return _make_json_response({"live": True})

    async def check_ready(self, _: Request) -> Response:
        for name in self._models.names:
            self._models.get(name)
        return _make_json_response({"ready": True})

    async def describe_tensors(self, request: Request) -> Response:
        return _make_json_response(
            inference_protocol.describe_metadata(self._models.get(**request.path_params))
        )

    async def check_model_ready(self, request: Request) -> Response:
        served = self._models.get(**request.path_params)
        return _make_json_response({"name": served.name, "ready": True})

    async def infer(self, request: Request) -> Response:
        """Answer a request for a certain version; the application's table has only paths without one."""
        name, version = request.path_params["name"], request.path_params["version"]
        route, head = ModelRoute(name, self._model_endpoints.infer), Head(dict(request.headers.raw))
        reply = await self._model_endpoints.answer(route, head, request.receive, version)
        assert isinstance(reply.body, bytes)
        response = Response(reply.body)
        response.raw_headers[:] = [*reply.headers, (b"content-length", b"%d" % len(reply.body))]
        return response

    async def list_repository(self, _: Request) -> Response:
        served = [self._models.get(name) for name in self._models.names]
        return _make_json_response(
            [{"name": model.name, "version": model.version, "state": "READY"} for model in served]
        )

    # --- Metrics, documentation and the page ----------------------------------------------------------

    async def send_metrics(self, _: Request) -> Response:
        text, kind = await asyncio.to_thread(self._metrics.render)
        return Response(text, headers={"content-type": kind})

    async def send_openapi(self, _: Request) -> Response:
        return _make_json_response(make_document([self._models.get(name) for name in self._models.names]))

    async def send_file(self, request: Request) -> Response:
        return self._make_file_response(request.path_params["file"])

    def _make_file_endpoint(self, name: str) -> Callable[[Request], Any]:
        async def endpoint(_: Request) -> Response:
            return self._make_file_response(name)

        return endpoint

    def _make_file_response(self, name: str) -> Response:
        """Return a file of the page. All files were read at startup: requests do not open files."""
        if name not in self._files or name.rpartition(".")[2] not in _TYPES:
            raise RequestError(404, f"there is no {name!r}")
        headers = {"content-security-policy": _POLICY, "cache-control": "no-cache"}
        return Response(self._files[name], media_type=_TYPES[name.rpartition(".")[2]], headers=headers)


def _make_json_response(value: Any) -> Response:
    return Response(encode_json(value), media_type="application/json")
