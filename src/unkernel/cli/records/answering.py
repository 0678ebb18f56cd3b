"""``unkernel predict`` and ``unkernel evaluate`` of records: block by block, in memory that does not grow."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.cli.inputs.files import STANDARD_STREAM
from unkernel.cli.inputs.records import (
    OpenedRecords,
    asked_blocks,
    labels_in,
    open_record_model,
    reading_records,
)
from unkernel.cli.learners.measures import CLASS_MEASURES, RANK_MEASURES, compare_classes, log_loss
from unkernel.cli.records.writing import Answers, answers_to
from unkernel.cli.render.console import rate
from unkernel.cli.render.progress import Display

_QUALITY = dict.fromkeys([*CLASS_MEASURES, *RANK_MEASURES, "mean_squared_error", "log_loss"])


@dataclass(frozen=True)
class RecordRequest:
    """What a command asks of a model of records."""

    model: Path
    data: str
    output: str | None
    threads: int
    scores: bool = False
    probability: bool = False


class _Compared:
    """Scores and labels, kept where the file has the labels: they are what answers are compared with."""

    def __init__(self, target: str | None) -> None:
        self._target = target
        self._scores: list[NDArray[np.float64]] = []
        self._labels: list[NDArray[Any]] = []
        self._complete = target is not None

    def add(self, block: Any, raw: NDArray[np.float64]) -> None:
        """Some more."""
        if not self._complete:
            return
        labels = labels_in(block, self._target)
        if labels is None:
            self._complete = False
            self._scores, self._labels = [], []
            return
        self._scores.append(raw)
        self._labels.append(labels)

    def found(self, decision: Any) -> dict[str, Any]:
        """How good the answers are; a note says why that is not known."""
        if not self._complete or not self._labels:
            name = "the target" if self._target is None else f"{self._target!r}"
            note = f"not known: the records have no column {name}"
            return {"accuracy_note": note}
        scores, labels = np.concatenate(self._scores), _joined(self._labels)
        if decision.scheme == "regression":
            if labels.dtype.kind not in "biuf":
                return {"accuracy_note": "not known: the labels are not numbers"}
            return {"mean_squared_error": float(np.mean((scores[:, 0] - labels) ** 2))}
        measured = compare_classes(decision, scores, labels, "record")
        if measured["accuracy"] is not None:
            measured["log_loss"] = log_loss(decision, scores, labels)
        return measured


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Labels of all blocks; texts where any is one."""
    if len({part.dtype.kind == "U" for part in parts}) > 1:
        parts = [part.astype(str) for part in parts]
    return np.concatenate(parts)


def answer_records(request: RecordRequest, display: Display) -> dict[str, Any]:
    """Ask a model about a file, write its answers, and compare them with the labels there; for JSON."""
    began = time.perf_counter()
    opened = open_record_model(request.model)
    classifier = opened.classifier
    check_records(opened, probability=request.probability)
    spent = {"loading": time.perf_counter() - began, "reading": 0.0, "scoring": 0.0}
    compared = _Compared(opened.target)
    rows, last = 0, time.perf_counter()
    with reading_records(request.data, display, wait=request.data != STANDARD_STREAM) as file:
        answers = None
        if request.output is not None:
            form = Answers.format_for(request.output, file.format)
            answers = Answers(classifier.decision, form, request.scores, request.probability)
        with answers_to(request.output, answers) as put:
            for block in asked_blocks(opened, file, request.threads):
                read = time.perf_counter()
                encoded = block.encode(classifier.plan, request.threads)
                raw = classifier.classifier.score_csr(encoded, request.threads)
                put(raw)
                compared.add(block, raw)
                rows += block.n_rows
                scored = time.perf_counter()
                spent["reading"] += read - last
                spent["scoring"] += scored - read
                last = scored
    return {
        "model": str(request.model),
        "data": request.data,
        "unit": "record",
        "engine": classifier.engine,
        "exact": classifier.classifier.exact,
        "compiled_now": False,
        "rows": rows,
        **_QUALITY,
        **compared.found(classifier.decision),
        "rows_per_second": {
            "scoring": rate(rows, spent["scoring"]),
            "reading_and_scoring": rate(rows, spent["reading"] + spent["scoring"]),
        },
        "output": request.output,
        "seconds": spent,
    }


def check_records(opened: OpenedRecords, *, probability: bool = False) -> None:
    """What commands cannot do with some models."""
    if opened.classifier.plan.whole:
        raise ValueError(
            f"{opened.path}: answers for texts, and not for records with columns: ask it in Python, with "
            "unkernel.load"
        )
    if probability and opened.classifier.decision.probability is None:
        raise ValueError(
            f"{opened.path}: the model has no probabilities; train it anew with --calibrate 3, or leave out "
            "--probability"
        )
