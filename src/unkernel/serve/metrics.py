"""Collect metrics for Prometheus: requests, times, errors, loaded models and records of all workers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unkernel.serve.served_models import ServedModel

_FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"  # environment variable: the folder with all workers' counts
_BUCKET_SECONDS = (
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
    """Let the workers store their counts in a shared folder; to be called before the first worker starts."""
    folder = depot / "metrics"
    folder.mkdir(exist_ok=True)
    os.environ[_FOLDER_VARIABLE] = str(folder)


class Metrics:
    """The metrics of a worker."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram  # reads _FOLDER_VARIABLE

        from unkernel.serve.record_metrics import RecordMetrics  # the supervisor does not need models

        self._registry = CollectorRegistry()
        self._seconds = Histogram(
            "unkernel_request_seconds",
            "Time from the head of a request to the end of its response.",
            ["model", "endpoint", "status"],
            buckets=_BUCKET_SECONDS,
            registry=self._registry,
        )
        self._loads = Counter(
            "unkernel_model_loads",
            "Model files that were loaded or refused.",
            ["model", "result"],
            registry=self._registry,
        )
        self._load_seconds = Gauge(
            "unkernel_model_load_seconds",
            "Time to load the version that is served.",
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
        self._records = RecordMetrics(self._registry, is_shared=_FOLDER_VARIABLE in os.environ)

    def count_request(self, model: str, endpoint: str, status: int, seconds: float) -> None:
        key = (model, endpoint, status)
        child = self._children.get(key)
        if child is None:  # cache the child: looking up labels takes longer than counting
            child = self._children[key] = self._seconds.labels(model, endpoint, str(status))
        child.observe(seconds)

    def count_load(self, served: ServedModel) -> None:
        self._loads.labels(served.name, "loaded").inc()
        self._load_seconds.labels(served.name).set(served.load_seconds)
        self._version.labels(served.name).set(float(served.version))
        self._records.add_model(served)

    def count_refusal(self, model: str) -> None:
        """Count a rejected model file."""
        self._loads.labels(model, "refused").inc()

    def render(self) -> tuple[bytes, str]:
        """Return the metrics of all workers, and their content type."""
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
        from prometheus_client.multiprocess import MultiProcessCollector

        self.collect_counts()
        if _FOLDER_VARIABLE not in os.environ:
            return generate_latest(self._registry), CONTENT_TYPE_LATEST
        _remove_gauges_of_dead_workers(Path(os.environ[_FOLDER_VARIABLE]))
        registry = CollectorRegistry()
        MultiProcessCollector(registry)
        registry.register(self._records)
        return generate_latest(registry), CONTENT_TYPE_LATEST

    def collect_counts(self) -> None:
        """Add the counts of records to the metrics that all workers share."""
        self._records.collect_counts()

    async def watch(self) -> None:
        """Add the counts of records at regular intervals, in an endless loop."""
        await self._records.watch()


def _remove_gauges_of_dead_workers(folder: Path) -> None:
    """Remove the gauges of workers that have ended, and keep their counters."""
    from prometheus_client.multiprocess import mark_process_dead

    for path in folder.glob("gauge_live*_*.db"):
        process = int(path.stem.rpartition("_")[2])
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            mark_process_dead(process, str(folder))
