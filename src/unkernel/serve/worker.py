"""The worker process, which handles requests."""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn

from unkernel.data.threads import thread_count
from unkernel.serve.app import Application
from unkernel.serve.connection import choose_protocol
from unkernel.serve.connection_limits import ConnectionLimits
from unkernel.serve.info_endpoints import InfoEndpoints
from unkernel.serve.json_log import start_log
from unkernel.serve.metrics import Metrics
from unkernel.serve.model_endpoints import ModelEndpoints
from unkernel.serve.served_models import ServedModels
from unkernel.serve.settings import BACKLOG, SETTINGS_VARIABLE, Settings
from unkernel.serve.supervisor import READY
from unkernel.serve.watchdog import Watchdog

_MAX_THREADS = 4  # largest number of threads for slow requests
_KEEP_ALIVE_SECONDS = 75  # must exceed the default of common proxies


def main() -> None:
    """Handle requests on the supervisor's socket until SIGTERM."""
    settings = Settings.read(Path(os.environ[SETTINGS_VARIABLE]))
    start_log(quiet=settings.quiet)
    Thread(target=_stop_with_supervisor, daemon=True).start()
    warnings.simplefilter("ignore")  # client data may cause warnings; their text would break the JSON log
    watchdog = Watchdog(settings.limits.seconds, Path(settings.depot), os.getpid())
    app = make_application(settings, watchdog, on_stuck=_stop)
    gc.collect()
    gc.freeze()  # makes later collections skip the loaded models and modules
    _Server(_make_config(settings, app)).run([socket.socket(fileno=int(sys.argv[1]))])


class _Server(uvicorn.Server):  # type: ignore[misc]  # uvicorn is half typed
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start accepting connections, and notify the supervisor."""
        await super().startup(sockets)
        os.write(sys.stdout.fileno(), READY)


def _make_config(settings: Settings, app: Application) -> uvicorn.Config:
    options: dict[str, Any] = {"ws": "none", "lifespan": "on", "log_config": None, "access_log": False}
    return uvicorn.Config(
        app,
        http=choose_protocol(),
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=max(1, round(settings.drain)),
        backlog=BACKLOG,
        **options,
    )


def _stop_with_supervisor() -> None:
    """Stop when stdin is closed: this means that the supervisor has ended."""
    sys.stdin.buffer.read()
    _stop()


def _stop() -> None:
    """End the process after the responses to all running requests."""
    os.kill(os.getpid(), signal.SIGTERM)


def make_application(
    settings: Settings,
    watchdog: Watchdog | None = None,
    on_stuck: Callable[[], object] = lambda: None,
) -> Application:
    """Return the application, with all models loaded."""
    metrics = Metrics()
    models = ServedModels(settings, metrics.count_load, metrics.count_refusal)
    models.load_snapshots()
    model_endpoints = ModelEndpoints(models, settings.limits, min(_MAX_THREADS, thread_count(-1)), on_stuck)
    connection_limits = ConnectionLimits(settings.limits.seconds, settings.limits.connections)
    info_endpoints = InfoEndpoints(models, model_endpoints, metrics, connection_limits, watchdog)
    return Application(settings, metrics, model_endpoints, info_endpoints.make_router(), connection_limits)


if __name__ == "__main__":
    main()
