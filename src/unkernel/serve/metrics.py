"""Metrics for Prometheus: requests, their time, errors and loaded models, over all workers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unkernel.serve.served_models import Served

_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # where the workers of a server keep what they count
_SECONDS = (
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1,
    2.5,
    5,
    10,
    30,
)


def share_counts(depot: Path) -> None:
    """Let all workers count together; before the first of them counts."""
    folder = depot / "metrics"
    folder.mkdir(exist_ok=True)
    os.environ[_FOLDER] = str(folder)


class Metrics:
    """The metrics of a worker."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram  # reads _FOLDER

        self._registry = CollectorRegistry()
        self._seconds = Histogram(
            "unkernel_request_seconds",
            "Requests, by the time from their head to the end of the answer.",
            ["model", "endpoint", "status"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._loads = Counter(
            "unkernel_model_loads",
            "Files loaded, or refused.",
            ["model", "result"],
            registry=self._registry,
        )
        self._load_seconds = Gauge(
            "unkernel_model_load_seconds",
            "Of the version that is served.",
            ["model"],
            multiprocess_mode="livemax",
            registry=self._registry,
        )
        self._version = Gauge(
            "unkernel_model_version",
            "The version that is served.",
            ["model"],
            multiprocess_mode="livemin",
            registry=self._registry,
        )
        self._children: dict[tuple[str, str, int], Histogram] = {}

    def answered(self, model: str, endpoint: str, status: int, seconds: float) -> None:
        """Count a request."""
        key = (model, endpoint, status)
        child = self._children.get(key)
        if child is None:  # labels are looked up once: that takes longer than counting
            child = self._children[key] = self._seconds.labels(model, endpoint, str(status))
        child.observe(seconds)

    def loaded(self, served: Served) -> None:
        """Count a version that was loaded."""
        self._loads.labels(served.name, "loaded").inc()
        self._load_seconds.labels(served.name).set(served.load_seconds)
        self._version.labels(served.name).set(float(served.version))

    def refused(self, model: str) -> None:
        """Count a file that was refused."""
        self._loads.labels(model, "refused").inc()

    def text(self) -> tuple[bytes, str]:
        """All that the workers have counted, and its content type."""
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
        from prometheus_client.multiprocess import MultiProcessCollector

        if _FOLDER not in os.environ:
            return generate_latest(self._registry), CONTENT_TYPE_LATEST
        _forget_dead_workers(Path(os.environ[_FOLDER]))
        everyone = CollectorRegistry()
        MultiProcessCollector(everyone)
        return generate_latest(everyone), CONTENT_TYPE_LATEST


def _forget_dead_workers(folder: Path) -> None:
    """Remove the gauges of workers that have ended; their counters stay."""
    from prometheus_client.multiprocess import mark_process_dead

    for path in folder.glob("gauge_live*_*.db"):
        process = int(path.stem.rpartition("_")[2])
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            mark_process_dead(process, str(folder))
