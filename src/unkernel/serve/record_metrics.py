"""Metrics of the records that models answer, beside the shares of their training records."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any

from unkernel.records.value_counts import MISSING, UNKNOWN
from unkernel.serve.answer_counter import MAX_LABELS, OTHER_CLASSES
from unkernel.serve.value_counter import OTHER_COLUMNS

if TYPE_CHECKING:
    from unkernel.serve.served_models import ServedModel

_COLLECTION_SECONDS = 1.0  # after this time, all workers know the counts of each worker
_EXAMINED = "compare it with unkernel_examined_records_total."


class RecordMetrics:
    """Counters of the answered records of all models, and gauges of the training shares.

    All workers share the counters. The gauges are the same in all workers, so that the worker that is asked
    for metrics returns its own.
    """

    def __init__(self, registry: Any, *, is_shared: bool) -> None:
        from prometheus_client import Counter

        def make_counter(name: str, text: str, *labels: str) -> Any:
            return Counter(f"unkernel_{name}", text, ["model", *labels], registry=registry)

        self._records = make_counter("records", "Records that were answered by predict or infer.")
        self._answers = make_counter(
            "answers", "Answered records by predicted class or, for numbers, by interval.", "answer"
        )
        self._examined = make_counter(
            "examined_records",
            "Answered records whose values were counted: all records, unless requests are many or long.",
        )
        self._values = {
            MISSING: make_counter("missing_values", f"Missing values by column; {_EXAMINED}", "column"),
            UNKNOWN: make_counter(
                "unknown_values",
                "Values by column that have no feature of their own, because training never saw them or saw "
                f"them fewer than min_count times; {_EXAMINED}",
                "column",
            ),
        }
        self._served: dict[str, ServedModel] = {}
        self._replaced: list[ServedModel] = []  # versions that may still answer requests
        self._children: dict[tuple[Any, str], dict[str, Any]] = {}
        self._lock = Lock()
        if not is_shared:
            registry.register(self)

    def add_model(self, served: ServedModel) -> None:
        """Count the records of a version of a model, and show its training shares."""
        with self._lock:
            if served.name in self._served:
                self._replaced.append(self._served[served.name])
            self._served[served.name] = served
            if served.counts.answers is None:
                return
            # Begin with 0: Prometheus computes rates from the first value.
            self._records.labels(served.name).inc(0)
            for name in served.counts.answers.names:
                self._get_child(self._answers, served.name, name, OTHER_CLASSES).inc(0)
            for mark in served.counts.marks:
                self._examined.labels(served.name).inc(0)
                self._get_child(self._values[mark.what], served.name, mark.column, OTHER_COLUMNS).inc(0)

    def collect_counts(self) -> None:
        """Add the counts since the last call to the counters."""
        with self._lock:
            self._replaced = [served for served in self._replaced if self._collect(served)]
            for served in self._served.values():
                self._collect(served)

    async def watch(self) -> None:
        """Add the counts at regular intervals, in an endless loop."""
        while True:
            await asyncio.sleep(_COLLECTION_SECONDS)
            self.collect_counts()

    def _collect(self, served: ServedModel) -> bool:
        """Add the counts of a version; return whether it has answered requests since the last call."""
        counts = served.counts.take()
        if not counts.records:
            return False
        self._records.labels(served.name).inc(counts.records)
        for name, count in counts.answers.items():
            self._get_child(self._answers, served.name, name, OTHER_CLASSES).inc(count)
        if counts.examined:
            self._examined.labels(served.name).inc(counts.examined)
        for mark, count in counts.values.items():
            self._get_child(self._values[mark.what], served.name, mark.column, OTHER_COLUMNS).inc(count)
        return True

    def _get_child(self, counter: Any, model: str, label: str, other: str) -> Any:
        """Return the time series of a label. New versions of a model cannot add labels without limit."""
        children = self._children.setdefault((counter, model), {})
        if label not in children:
            label = label if len(children) < 2 * MAX_LABELS else other
            children[label] = counter.labels(model, label)
        return children[label]

    # --- Training shares ------------------------------------------------------------------------------

    def collect(self) -> Iterator[Any]:
        """Yield the gauges, as Prometheus's client asks for them."""
        from prometheus_client.core import GaugeMetricFamily

        served = [model for model in self._served.values() if model.counts.training is not None]
        records = GaugeMetricFamily(
            "unkernel_training_records", "Number of training records.", labels=["model"]
        )
        for model in served:
            assert model.counts.training is not None
            records.add_metric([model.name], model.counts.training.n_records)
        yield records
        answers = GaugeMetricFamily(
            "unkernel_training_answer_share",
            "Share of training records by class of the target or, for numbers, by interval.",
            labels=["model", "answer"],
        )
        for model in served:
            if model.counts.answers is not None:
                _add_shares(answers, model.name, model.counts.answers.training_shares)
        yield answers
        for what, text in (
            (MISSING, "Share of training records without a value, by column."),
            (UNKNOWN, "Share of training records whose value is rarer than min_count, by column."),
        ):
            gauge = GaugeMetricFamily(f"unkernel_training_{what}_share", text, labels=["model", "column"])
            for model in served:
                shares = model.counts.training_shares.items()
                _add_shares(
                    gauge, model.name, {mark.column: share for mark, share in shares if mark.what == what}
                )
            yield gauge


def _add_shares(gauge: Any, model: str, shares: Mapping[str, float]) -> None:
    for name, share in shares.items():
        gauge.add_metric([model, name], share)
