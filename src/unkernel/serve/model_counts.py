"""Count the records that a model answers, for comparison with its training records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import JsonShape
from unkernel.serve.answer_counter import make_answer_counter
from unkernel.serve.answerers import Answerer
from unkernel.serve.errors import RequestError
from unkernel.serve.json_log import log
from unkernel.serve.request_bodies import decode_json
from unkernel.serve.value_counter import compute_training_shares, make_value_counter

_MAX_BUFFER_BYTES = 1 << 16
_MAX_BUFFERED_BODY_BYTES = 1 << 12
_MAX_INFERRED = 1 << 8  # records of a request of tensors whose values are counted
_MAX_EXAMINED_BYTES = (
    1 << 20
)  # of requests between two calls of `take`: counting them takes some milliseconds
_CELL_BYTES = 8


@dataclass
class Counts:
    """Counts of answered records.

    Attributes
    ----------
    records : int
        Number of records that were answered.
    examined : int
        Number of these records whose values were counted.
    answers : Counter
        Number of records by label of the answer.
    values : Counter
        Number of missing and unknown values, by :class:`~unkernel.records.value_counts.Mark`.
    """

    records: int = 0
    examined: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    values: Counter[Any] = field(default_factory=Counter)


class ModelCounts:
    """Counts the answers and values of a version of a model.

    Short requests of one record are collected first and counted together, because this is faster. All answers
    are counted. Values are counted up to a limit of bytes between two calls of :meth:`take`, so that a busy
    server hardly becomes slower.

    Parameters
    ----------
    answerer : Answerer
        The model. Only classifiers and regressions are counted.
    """

    def __init__(self, answerer: Answerer) -> None:
        plan, decision = answerer.plan, answerer.decision
        self.training = None if plan is None else plan.training
        self.answers = None if decision is None else make_answer_counter(decision, self.training)
        self.values = make_value_counter(plan)
        self.training_shares = compute_training_shares(self.marks, self.training)
        self._lock = Lock()
        self._counts = Counts()
        self._bodies: list[bytes] = []
        self._replies: list[bytes] = []
        self._buffered = 0
        self._examinable = _MAX_EXAMINED_BYTES  # bytes whose values may still be counted
        # Buffered tensors: a table of columns for each set of inputs that occurs together in requests.
        self._tables: dict[tuple[str, ...], dict[str, list[Any]]] = {}
        self._predictions: list[Any] = []
        self._has_failed = False

    @property
    def marks(self) -> Any:
        """What is counted of values."""
        return [] if self.values is None else self.values.marks

    def add(self, body: bytes, shape: JsonShape, reply: bytes) -> None:
        """Count the records of a request and their answers."""
        if self.answers is None:
            return
        with self._lock:
            if shape is JsonShape.ONE and len(body) <= _MAX_BUFFERED_BODY_BYTES and b"\n" not in body:
                self._replies.append(reply)
                self._buffered += len(reply)
                if self._examinable > 0 and self.values is not None:
                    self._bodies.append(body)
                    self._buffered += len(body)
                    self._examinable -= len(body)
                if self._buffered > _MAX_BUFFER_BYTES:
                    self._count_buffered()
            else:
                self._count_safely(lambda: self._count(body, shape, reply))

    def add_tensors(self, inputs: Mapping[str, NDArray[Any]], outputs: Mapping[str, Any]) -> None:
        """Count the records of a request of the Open Inference Protocol."""
        if self.answers is None:
            return
        with self._lock:
            predictions = np.asarray(outputs["predict"]).reshape(-1).tolist()
            self._predictions += predictions
            self._buffered += _CELL_BYTES * len(predictions)
            if self.values is not None and self._examinable > 0:
                columns = self._tables.setdefault(tuple(inputs), {name: [] for name in inputs})
                for name, values in inputs.items():
                    columns[name] += values.reshape(-1)[:_MAX_INFERRED].tolist()
                size = _CELL_BYTES * len(inputs) * min(len(predictions), _MAX_INFERRED)
                self._buffered += size
                self._examinable -= size
            if self._buffered > _MAX_BUFFER_BYTES:
                self._count_buffered()

    def take(self) -> Counts:
        """Return the counts since the last call."""
        with self._lock:
            self._count_buffered()
            self._examinable = _MAX_EXAMINED_BYTES
            counts, self._counts = self._counts, Counts()
            return counts

    # --- Counting -------------------------------------------------------------------------------------

    def _count_safely(self, count: Any) -> None:
        """Count; a failure is logged once, and never fails a request."""
        try:
            count()
        except Exception as error:
            if not self._has_failed:
                self._has_failed = True
                log("counting records failed", level="error", exc_info=error)

    def _count_buffered(self) -> None:
        """Count the buffered requests, and empty the buffers."""
        bodies, replies, tables, predictions = self._bodies, self._replies, self._tables, self._predictions
        self._bodies, self._replies, self._tables, self._predictions = [], [], {}, []
        self._buffered = 0
        if replies:
            self._count_safely(lambda: self._count_answers(b"\n".join(replies), JsonShape.LINES))
        if bodies:
            self._count_safely(lambda: self._count_values(b"\n".join(bodies), JsonShape.LINES))
        if predictions:
            self._count_safely(lambda: self._count_tensors(predictions, tables))

    def _count(self, body: bytes, shape: JsonShape, reply: bytes) -> None:
        self._count_answers(reply, shape)
        if self.values is not None and self._examinable > 0:
            part = self.values.cut(body, shape)
            self._examinable -= len(part)
            self._count_values(part, shape)

    def _count_answers(self, replies: bytes, shape: JsonShape) -> None:
        assert self.answers is not None
        n_records, by_label = self.answers.count_json(replies, shape)
        self._counts.records += n_records
        self._counts.answers.update(by_label)

    def _count_values(self, body: bytes, shape: JsonShape) -> None:
        if self.values is not None:
            self._add_values(self.values.count_json(body, shape) or self._count_objects(body, shape))

    def _count_objects(self, body: bytes, shape: JsonShape) -> tuple[int, NDArray[np.int64]] | None:
        """Count the values of records that only Python can read; None if they are not records."""
        assert self.values is not None
        try:
            if shape is JsonShape.LINES:
                records = [decode_json(line) for line in body.split(b"\n") if line.strip()]
            else:
                content = decode_json(body)
                records = content if shape is JsonShape.LIST else [content]
            return self.values.count_records(records)
        except (RequestError, ValueError, TypeError, RecursionError):
            return None  # part of a longer body that was cut at a wrong place

    def _count_tensors(self, predictions: list[Any], tables: Mapping[Any, Mapping[str, list[Any]]]) -> None:
        assert self.answers is not None
        self._counts.records += len(predictions)
        self._counts.answers.update(self.answers.count_predictions(predictions))
        for columns in tables.values():
            assert self.values is not None
            self._add_values(self.values.count_columns(columns))

    def _add_values(self, counted: tuple[int, NDArray[np.int64]] | None) -> None:
        if counted is None:
            return
        n_records, counts = counted
        self._counts.examined += n_records
        for place in np.flatnonzero(counts).tolist():
            self._counts.values[self.marks[place]] += int(counts[place])
