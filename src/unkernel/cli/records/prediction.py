"""``unkernel predict`` and ``unkernel evaluate`` for records, block by block in constant memory."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.cli.inputs.model_kinds import ROWS_NOT_RECORDS, refuse_options
from unkernel.cli.inputs.records import (
    check_records,
    encode_block,
    open_record_file,
    open_record_model,
    read_blocks,
    to_labels,
)
from unkernel.cli.quality import QUALITY, compare_classes, compare_labels, compare_values, log_loss
from unkernel.cli.records.answer_writers import Answers, open_answers
from unkernel.cli.scoring import Request, describe_speed
from unkernel.cli.terminal.progress import Display
from unkernel.cli.terminal.standard_streams import STANDARD_STREAM
from unkernel.models import Decision
from unkernel.models.several_outputs import MULTI_LABEL


class _Comparison:
    """Collects the scores and labels of all records, if the file has labels."""

    def __init__(self, target: str | None, decision: Decision) -> None:
        self._target = target or ""
        self._scores: list[NDArray[np.float64]] = []
        self._label_codes: dict[Any, int] = {}  # maps each label to its code
        self._lists: list[list[Any]] = []  # of labels, for a model of several labels
        self._has_lists = decision.scheme == MULTI_LABEL
        self._codes: list[NDArray[np.intp]] = []
        self._complete = target is not None

    def add(self, block: Any, raw: NDArray[np.float64]) -> None:
        """Add the scores of a block, of shape (records, scores)."""
        if not self._complete:
            return
        if self._has_lists:
            self._add_lists(block, raw)
            return
        encoded = block.encode_column(self._target)  # the distinct labels, and their index in each record
        if (
            encoded is None
            or None in encoded[0]
            or any(isinstance(label, (list, dict)) for label in encoded[0])
        ):
            self._complete = False
            self._scores, self._codes = [], []
            return
        codes = [self._label_codes.setdefault(label, len(self._label_codes)) for label in encoded[0]]
        self._scores.append(raw)
        self._codes.append(np.array(codes, dtype=np.intp)[encoded[1]])

    def _add_lists(self, block: Any, raw: NDArray[np.float64]) -> None:
        values = block.values(self._target)
        if values is None or not all(isinstance(value, list) for value in values):
            self._complete = False
            self._scores, self._lists = [], []
            return
        self._scores.append(raw)
        self._lists += values

    def _explain_missing_labels(self) -> str:
        if not self._target:
            return "the records have no column that is known as the target"
        if self._complete:
            return "there is no record"
        return f"not all records have a label in column {self._target!r}"

    def measure(self, decision: Any) -> dict[str, Any]:
        """Return the measures of quality or, if labels are missing, a note with the reason."""
        if decision.outputs and not self._has_lists:
            return compare_classes(decision, np.empty((0, 0)), None, "record")
        if self._complete and self._lists:
            return compare_labels(decision, np.concatenate(self._scores), self._lists)
        if not self._complete or not self._codes:
            return {"accuracy_note": f"not known: {self._explain_missing_labels()}"}
        scores, labels = np.concatenate(self._scores), to_labels(list(self._label_codes))
        codes = np.concatenate(self._codes)
        if decision.scheme == "regression":
            if labels.dtype.kind not in "biuf":
                return {"accuracy_note": "not known: the labels are not numbers"}
            return compare_values(decision, scores, labels[codes])
        return _measure_classes(decision, scores, labels, codes)


def _measure_classes(
    decision: Decision, scores: NDArray[np.float64], labels: NDArray[Any], codes: NDArray[np.intp]
) -> dict[str, Any]:
    """Compare predicted classes with the labels of all records, given as codes of distinct labels."""
    class_indices = _match_classes(labels, decision.classes)
    if class_indices is None:
        return compare_classes(decision, scores, labels[codes], "record")
    # Compare numbers, because this is faster than comparing strings.
    numbered = replace(decision, classes=np.arange(len(decision.classes)))
    measures = compare_classes(numbered, scores, class_indices[codes], "record")
    if measures["positive_class"] is not None:
        measures["positive_class"] = decision.classes.tolist()[measures["positive_class"]]
    return measures | {"log_loss": log_loss(numbered, scores, class_indices[codes])}


def _match_classes(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp] | None:
    """Return the class index of each label; None if a label is unknown, or the classes are not sorted."""
    if labels.dtype.kind not in "biuf" or classes.dtype.kind not in "biuf":
        labels, classes = labels.astype(str), classes.astype(str)
    if not np.isin(labels, classes).all() or (np.sort(classes) != classes).any():
        return None
    return np.searchsorted(classes, labels)


def answer_records(
    request: Request, data: str, output: str | None, threads: int, display: Display
) -> dict[str, Any]:
    """Predict the records of a file, write the predictions, and return their quality for JSON."""
    row_options = {"--ndcg-at": request.ndcg_at, "--zero-based": request.zero_based}
    refuse_options(request.model, row_options, ROWS_NOT_RECORDS)
    start = time.perf_counter()
    opened = open_record_model(request.model)
    classifier = opened.classifier
    if request.cache_rows is not None:
        classifier = classifier.with_cache(request.cache_rows)
    check_records(opened, probability=request.probability)
    seconds = {"loading": time.perf_counter() - start, "reading": 0.0, "scoring": 0.0}
    comparison = _Comparison(opened.target, classifier.decision)
    rows, block_start = 0, time.perf_counter()
    with open_record_file(data, display, wait=data != STANDARD_STREAM) as file:
        answers = None
        if output is not None:
            format = Answers.format_for(output, file.format)
            answers = Answers(classifier.decision, format, request.scores, request.probability)
        blocks = read_blocks(opened, file, threads)  # raises errors about columns before anything is written
        with open_answers(output, answers) as write:
            for block in blocks:
                read_end = time.perf_counter()
                rows_of_block = encode_block(opened, block, threads)
                raw = classifier.classifier.score_csr(rows_of_block, threads)
                write(raw)
                comparison.add(block, raw)
                rows += block.n_rows
                score_end = time.perf_counter()
                seconds["reading"] += read_end - block_start
                seconds["scoring"] += score_end - read_end
                block_start = score_end
    cache = {} if request.cache_rows is None else {"cache": classifier.cache_info()._asdict()}
    return {
        "model": str(request.model),
        "data": data,
        "unit": "record",
        "engine": classifier.engine,
        "exact": classifier.classifier.exact,
        "compiled_now": False,
        "rows": rows,
        **cache,
        **QUALITY,
        "log_loss": None,
        **comparison.measure(classifier.decision),
        **describe_speed(rows, seconds),
        "output": output,
    }
