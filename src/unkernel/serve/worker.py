"""One process that answers."""

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
from unkernel.serve.connection import protocol
from unkernel.serve.connection_limits import Guard
from unkernel.serve.info_endpoints import Pages
from unkernel.serve.json_log import start_log
from unkernel.serve.metrics import Metrics
from unkernel.serve.model_endpoints import Asking
from unkernel.serve.served_models import Models
from unkernel.serve.settings import BACKLOG, STORED, Settings
from unkernel.serve.supervisor import READY
from unkernel.serve.watchdog import Watchdog

_THREADS = 4
_KEEP_ALIVE_SECONDS = 75  # longer than those of the usual proxies


def main() -> None:
    """Answer at the socket that the supervisor has opened, until SIGTERM."""
    settings = Settings.read(Path(os.environ[STORED]))
    start_log(quiet=settings.quiet)
    Thread(target=_end_with_the_supervisor, daemon=True).start()
    warnings.simplefilter("ignore")  # what requests hold is no fault of the server, and its log is JSON
    watchdog = Watchdog(settings.limits.seconds, Path(settings.depot), os.getpid())
    app = application_of(settings, watchdog, on_stuck=_end)
    gc.collect()
    gc.freeze()  # what there is now stays, and need not be looked through again and again
    _Server(_config(settings, app)).run([socket.socket(fileno=int(sys.argv[1]))])


class _Server(uvicorn.Server):  # type: ignore[misc]  # uvicorn is half typed
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Tell the supervisor once requests are answered."""
        await super().startup(sockets)
        os.write(sys.stdout.fileno(), READY)


def _config(settings: Settings, app: Application) -> uvicorn.Config:
    options: dict[str, Any] = {"ws": "none", "lifespan": "on", "log_config": None, "access_log": False}
    return uvicorn.Config(
        app,
        http=protocol(),
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=max(1, round(settings.drain)),
        backlog=BACKLOG,
        **options,
    )


def _end_with_the_supervisor() -> None:
    """A worker whose supervisor was killed has nobody left who would end it."""
    sys.stdin.buffer.read()
    _end()


def _end() -> None:
    """Answer what has been asked, and end."""
    os.kill(os.getpid(), signal.SIGTERM)


def application_of(
    settings: Settings,
    watchdog: Watchdog | None = None,
    on_stuck: Callable[[], object] = lambda: None,
) -> Application:
    """The application of these settings, with all models loaded."""
    metrics = Metrics()
    models = Models(settings, metrics.loaded, metrics.refused)
    models.take_up()
    asking = Asking(models, settings.limits, min(_THREADS, thread_count(-1)), on_stuck)
    guard = Guard(settings.limits.seconds, settings.limits.connections)
    pages = Pages(models, asking, metrics, guard, watchdog)
    return Application(settings, metrics, asking, pages.router(), guard)


if __name__ == "__main__":
    main()
