"""One process that answers."""

from __future__ import annotations

import gc
import os
import warnings
from pathlib import Path

from unkernel.data.threads import thread_count
from unkernel.serve.app import Application
from unkernel.serve.asking import Asking
from unkernel.serve.logs import start_log
from unkernel.serve.metrics import Metrics
from unkernel.serve.models import Models
from unkernel.serve.pages import Pages
from unkernel.serve.settings import STORED, Settings

_THREADS = 4


def application() -> Application:
    """The application of a worker that a server has started."""
    start_log()
    warnings.simplefilter("ignore", UserWarning)  # of tags that training did not have: not the server's fault
    found = application_of(Settings.read(Path(os.environ[STORED])))
    gc.collect()
    gc.freeze()  # what there is now stays, and need not be looked through again and again
    return found


def application_of(settings: Settings) -> Application:
    """The application of these settings, with all models loaded."""
    metrics = Metrics()
    models = Models(settings, metrics.loaded, metrics.refused)
    models.take_up()
    asking = Asking(models, settings.limits, min(_THREADS, thread_count(-1)))
    return Application(settings, metrics, asking.routes(), Pages(models, asking, metrics).router())
