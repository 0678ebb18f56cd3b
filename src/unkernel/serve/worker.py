"""One process that answers."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import warnings
from multiprocessing.connection import wait
from pathlib import Path
from threading import Thread

from unkernel.data.threads import thread_count
from unkernel.serve.app import Application
from unkernel.serve.asking import Asking
from unkernel.serve.guarding import Guard
from unkernel.serve.logs import start_log
from unkernel.serve.metrics import Metrics
from unkernel.serve.models import Models
from unkernel.serve.pages import Pages
from unkernel.serve.settings import STORED, Settings

_THREADS = 4


def application() -> Application:
    """The application of a worker that a server has started."""
    start_log()
    Thread(target=_end_with_the_server, daemon=True).start()
    warnings.simplefilter("ignore")  # what requests hold is no fault of the server, and its log is JSON
    found = application_of(Settings.read(Path(os.environ[STORED])))
    gc.collect()
    gc.freeze()  # what there is now stays, and need not be looked through again and again
    return found


def _end_with_the_server() -> None:
    """A worker whose server was killed has nobody left who would end it."""
    server = multiprocessing.parent_process()
    if server is not None:  # the only worker is the server itself
        wait([server.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)


def application_of(settings: Settings) -> Application:
    """The application of these settings, with all models loaded."""
    metrics = Metrics()
    models = Models(settings, metrics.loaded, metrics.refused)
    models.take_up()
    asking = Asking(models, settings.limits, min(_THREADS, thread_count(-1)))
    guard = Guard(settings.limits.seconds, settings.limits.connections)
    pages = Pages(models, asking, metrics, guard)
    return Application(settings, metrics, asking, pages.router(), guard)
