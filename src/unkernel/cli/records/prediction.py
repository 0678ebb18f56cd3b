"""``unkernel predict`` and ``unkernel evaluate`` of records: block by block, in memory that does not grow."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.cli.inputs.records import (
    check_records,
    encode_block,
    open_record_file,
    open_record_model,
    read_blocks,
    to_labels,
)
from unkernel.cli.quality import QUALITY, compare_classes, log_loss, mean_squared_error
from unkernel.cli.records.answer_writers import Answers, open_answers
from unkernel.cli.terminal.console import rate
from unkernel.cli.terminal.progress import Display
from unkernel.cli.terminal.standard_streams import STANDARD_STREAM


@dataclass(frozen=True)
class RecordRequest:
    """What a command asks of a model of records."""

    model: Path
    data: str
    output: str | None
    threads: int
    scores: bool = False
    probability: bool = False
    cache: int | None = None  # rows whose answers are remembered


class _Compared:
    """Scores and labels, kept where the file has the labels: they are what answers are compared with."""

    def __init__(self, target: str | None) -> None:
        self._target = target or ""
        self._scores: list[NDArray[np.float64]] = []
        self._words: dict[Any, int] = {}  # different labels, each with its number
        self._codes: list[NDArray[np.intp]] = []
        self._complete = target is not None

    def add(self, block: Any, raw: NDArray[np.float64]) -> None:
        """Some more."""
        if not self._complete:
            return
        found = block.encode_column(self._target)
        if found is None or None in found[0] or any(isinstance(word, (list, dict)) for word in found[0]):
            self._complete = False
            self._scores, self._codes = [], []
            return
        numbers = [self._words.setdefault(word, len(self._words)) for word in found[0]]
        self._scores.append(raw)
        self._codes.append(np.array(numbers, dtype=np.intp)[found[1]])

    def _gap(self) -> str:
        """Why there is nothing to compare answers with."""
        if not self._target:
            return "the records have no column that is known as the target"
        if self._complete:
            return "there is no record"
        return f"not all records have a label in column {self._target!r}"

    def found(self, decision: Any) -> dict[str, Any]:
        """How good the answers are; a note says why that is not known."""
        if not self._complete or not self._codes:
            return {"accuracy_note": f"not known: {self._gap()}"}
        scores, labels = np.concatenate(self._scores), to_labels(list(self._words))
        codes = np.concatenate(self._codes)
        if decision.scheme == "regression":
            if labels.dtype.kind not in "biuf":
                return {"accuracy_note": "not known: the labels are not numbers"}
            return {"mean_squared_error": mean_squared_error(decision, scores, labels[codes])}
        places = _match_classes(labels, decision.classes)
        if places is None:
            return compare_classes(decision, scores, labels[codes], "record")
        counted = replace(decision, classes=np.arange(len(decision.classes)))  # numbers are compared quickly
        measured = compare_classes(counted, scores, places[codes], "record")
        if measured["positive_class"] is not None:
            measured["positive_class"] = decision.classes.tolist()[measured["positive_class"]]
        return measured | {"log_loss": log_loss(counted, scores, places[codes])}


def _match_classes(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp] | None:
    """Which class each label is; None where one is none, or classes are not in order."""
    if labels.dtype.kind not in "biuf" or classes.dtype.kind not in "biuf":
        labels, classes = labels.astype(str), classes.astype(str)
    if not np.isin(labels, classes).all() or (np.sort(classes) != classes).any():
        return None
    return np.searchsorted(classes, labels)


def answer_records(request: RecordRequest, display: Display) -> dict[str, Any]:
    """Ask a model about a file, write its answers, and compare them with the labels there; for JSON."""
    began = time.perf_counter()
    opened = open_record_model(request.model)
    classifier = opened.classifier
    if request.cache is not None:
        classifier = classifier.with_cache(request.cache)
    check_records(opened, probability=request.probability)
    spent = {"loading": time.perf_counter() - began, "reading": 0.0, "scoring": 0.0}
    compared = _Compared(opened.target)
    rows, last = 0, time.perf_counter()
    with open_record_file(request.data, display, wait=request.data != STANDARD_STREAM) as file:
        answers = None
        if request.output is not None:
            form = Answers.format_for(request.output, file.format)
            answers = Answers(classifier.decision, form, request.scores, request.probability)
        blocks = read_blocks(opened, file, request.threads)  # refuses columns before anything is written
        with open_answers(request.output, answers) as put:
            for block in blocks:
                read = time.perf_counter()
                asked = encode_block(opened, block, request.threads)
                raw = classifier.classifier.score_csr(asked, request.threads)
                put(raw)
                compared.add(block, raw)
                rows += block.n_rows
                scored = time.perf_counter()
                spent["reading"] += read - last
                spent["scoring"] += scored - read
                last = scored
    remembered = {} if request.cache is None else {"cache": classifier.cache_info()._asdict()}
    return {
        "model": str(request.model),
        "data": request.data,
        "unit": "record",
        "engine": classifier.engine,
        "exact": classifier.classifier.exact,
        "compiled_now": False,
        "rows": rows,
        **remembered,
        **QUALITY,
        "log_loss": None,
        **compared.found(classifier.decision),
        "rows_per_second": {
            "scoring": rate(rows, spent["scoring"]),
            "reading_and_scoring": rate(rows, spent["reading"] + spent["scoring"]),
        },
        "output": request.output,
        "seconds": spent,
    }
