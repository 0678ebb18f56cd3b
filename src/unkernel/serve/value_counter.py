"""Count the missing and unknown values in requests, by column.

The records are read by the core a second time: a plan marks the values to count, and a linear model adds the
marks up, with one score for each number to count. Records in JSON are thus counted without Python objects.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import JsonShape, RecordScorer
from unkernel.engines import CompiledClassifier, compile
from unkernel.models import Decision, LinearModel
from unkernel.records.plan import Plan
from unkernel.records.training_counts import TrainingCounts
from unkernel.records.value_counts import MISSING, UNKNOWN, Mark, MarkingPlan, make_marking_plan
from unkernel.serve.answer_counter import MAX_LABELS

OTHER_COLUMNS = "(other columns)"
_NO_LIMIT = 1 << 40
_MAX_BYTES = (
    3 << 10
)  # of a longer body, a part of about this size is counted, with reused buffers of the core
_GOLDEN_RATIO = 0.6180339887498949  # its multiples, modulo 1, are spread evenly
_BETWEEN_RECORDS = re.compile(rb"\}\s*,\s*\{")


class ValueCounter:
    """Counts missing and unknown values by column.

    Attributes
    ----------
    marks : sequence of Mark
        What the entries of counts stand for. Their number is bounded: columns that are not among the first
        ones are counted together.
    """

    def __init__(self, marking: MarkingPlan) -> None:
        self._plan = marking.plan
        self._pooled = _pool_columns(marking.marks)  # the mark of each feature of the plan
        self.marks = list(dict.fromkeys(mark for mark in self._pooled if mark is not None))
        # The index in `marks` for each feature; -1 for features that are not counted.
        self._places = np.array([-1 if mark is None else self.marks.index(mark) for mark in self._pooled])
        self._classifier = _make_adder(self._places, len(self.marks))
        self._scorer = RecordScorer(self._plan.native, self._classifier._engine)
        self._n_cuts = 0

    def count_json(self, text: bytes, shape: JsonShape) -> tuple[int, NDArray[np.int64]] | None:
        """Count the values of plain records in JSON, or of a part of them if there are many.

        Returns
        -------
        tuple of int and ndarray of int64
            The number of records whose values were counted, and the counts, in the order of ``marks``. None
            if a record is not plain, that is, if only Python can read it.
        """
        scores = self._scorer.score_json(text, shape, _NO_LIMIT)
        if scores is None:
            return None
        return len(scores), np.asarray(scores)[:, : len(self.marks)].sum(axis=0).astype(np.int64)

    def count_records(self, records: Sequence[Any]) -> tuple[int, NDArray[np.int64]]:
        """Count the values of records that are Python objects."""
        if all(isinstance(record, dict) for record in records):
            return len(records), self._add(self._plan.encode(records).indices)
        features = [self._plan.encode_one(record)[0] for record in records]
        return len(records), self._add(np.concatenate(features))

    def count_columns(self, columns: Mapping[str, Sequence[Any]]) -> tuple[int, NDArray[np.int64]]:
        """Count the values of columns."""
        rows = self._plan.encode(columns)
        return rows.shape[0], self._add(rows.indices)

    def _add(self, features: NDArray[Any]) -> NDArray[np.int64]:
        """Return the counts of features, in the order of ``marks``."""
        places = self._places[features]
        return np.bincount(places[places >= 0], minlength=len(self.marks))

    def cut(self, body: bytes, shape: JsonShape) -> bytes:
        """Return a part of a long body with many records, each time at another place; else the body."""
        if shape is JsonShape.ONE or len(body) <= _MAX_BYTES:
            return body
        self._n_cuts += 1
        begin = int((self._n_cuts * _GOLDEN_RATIO) % 1 * (len(body) - _MAX_BYTES))
        if shape is JsonShape.LINES:
            return body[body.find(b"\n", begin) + 1 :][:_MAX_BYTES].rpartition(b"\n")[0]
        first, last = (_BETWEEN_RECORDS.search(body, place) for place in (begin, begin + _MAX_BYTES))
        if first is None or last is None or first is last:
            return b"[]"
        return b"[" + body[first.end() - 1 : last.start() + 1] + b"]"


def make_value_counter(plan: Plan | None) -> ValueCounter | None:
    """Return a counter for a model with this plan; None if there is nothing to count."""
    marking = None if plan is None else make_marking_plan(plan)
    return None if marking is None else ValueCounter(marking)


def compute_training_shares(marks: Sequence[Mark], training: TrainingCounts | None) -> dict[Mark, float]:
    """Return the training shares of marks. The share of pooled columns is the sum of their shares."""
    if training is None:
        return {}
    shares: dict[Mark, float] = {}
    listed = {mark.column for mark in marks}
    for what, counts in ((MISSING, training.missing), (UNKNOWN, training.unknown)):
        for column, count in counts.items():
            mark = Mark(column if column in listed else OTHER_COLUMNS, what)
            shares[mark] = shares.get(mark, 0.0) + count / training.n_records
    return shares


def _pool_columns(marks: Sequence[Mark]) -> list[Mark | None]:
    """Replace the columns after the first ones by one name; None stands for a mark that is not counted."""
    columns = list(dict.fromkeys(mark.column for mark in marks))
    listed = set(columns if len(columns) <= MAX_LABELS else columns[: MAX_LABELS - 1])
    return [
        Mark(mark.column if mark.column in listed else OTHER_COLUMNS, mark.what) if mark.what else None
        for mark in marks
    ]


def _make_adder(places: NDArray[np.intp], n_places: int) -> CompiledClassifier:
    """Return a linear model in which each feature adds 1 to the score at its place, if it has one."""
    n_scores = max(n_places, 2)  # the number of scores of a model with several classes
    weights = np.zeros((len(places), n_scores))
    counted = np.flatnonzero(places >= 0)
    weights[counted, places[counted]] = 1.0
    decision = Decision("one_vs_rest", np.arange(n_scores))
    model = LinearModel(weights, np.zeros(n_scores), decision, len(places), True, {})
    compiled = compile(model, measure=False)
    assert isinstance(compiled, CompiledClassifier)  # the model is a model of rows
    return compiled
