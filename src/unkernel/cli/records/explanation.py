"""``unkernel explain`` and ``unkernel inspect`` of models of records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from unkernel.cli.explanations import describe_explanation, find_class, list_prediction
from unkernel.cli.inputs.models import Opened
from unkernel.cli.inputs.records import (
    OpenedRecords,
    check_records,
    drop_target,
    encode_block,
    open_record_file,
    open_record_model,
    read_blocks,
)
from unkernel.cli.terminal.console import warn
from unkernel.cli.terminal.progress import Display
from unkernel.measures.number_format import format_count
from unkernel.records.files import Block
from unkernel.records.files.json_lines import parse_record

_ARGUMENT_NAME = "the record"  # what a record on the command line is called in messages


def explain_record(
    path: Path, data: str, row: int, top: int, of: str | None, *, quiet: bool
) -> dict[str, Any]:
    """Explain the prediction for a record, from a file or from the command line, for JSON."""
    opened = open_record_model(path)
    check_records(opened)
    of_class = find_class(opened.classifier.decision, of)
    with Display(quiet=quiet) as display:
        record, block, index = _read_record(opened, data, row, display)
        with display.show_work("explaining"):
            if block is not None:
                encode_block(opened, block)  # raises an error that names the line of a bad record
            inputs = drop_target(opened, record)
            try:
                explanation = opened.classifier.explain_one(inputs, top, of=of_class)
            except (ValueError, TypeError) as error:
                raise ValueError(f"{path if block else data}: {error}") from error
    label = record.get(opened.target) if opened.target else None
    return {
        "model": str(path),
        "data": data,
        "unit": "record",
        "row": index,
        "label": label,
        "prediction": list_prediction(opened.classifier.decision, opened.classifier.predict_one(inputs)),
        **describe_explanation(
            explanation,
            opened.classifier.decision,
            lambda part: {
                "features": list(part.features),
                "names": [opened.classifier.plan.feature_names[column] for column in part.features],
            },
        ),
        "basis": "sets" if _is_binary(opened, inputs) else "monomials",
        "exact": opened.classifier.classifier.exact,
    }


def _read_record(
    opened: OpenedRecords, data: str, row: int, display: Display
) -> tuple[dict[str, Any], Block | None, int | None]:
    """Return the record, with its block and index if it comes from a file."""
    if data.lstrip().startswith("{"):
        record = parse_record(data, _ARGUMENT_NAME)
        _warn_about_unknown_keys(opened, record)
        return record, None, None
    count = 0
    with open_record_file(data, display) as file:
        for block in read_blocks(opened, file, threads=1):
            if row < count + block.n_rows:
                single = block.one(row - count)
                return single.records()[0], single, row
            count += block.n_rows
    raise ValueError(f"{data}: has {format_count(count, 'record')}, so there is no record {row:,}")


def _warn_about_unknown_keys(opened: OpenedRecords, record: dict[str, Any]) -> None:
    """Warn about a key that the model does not know: in a record typed by hand, it may be misspelt."""
    columns = opened.classifier.plan.columns
    unknown = [name for name in record if name not in columns and name != opened.target]
    if unknown and opened.classifier.plan.ignores_unknown_keys:
        warn(f"the model does not know {unknown[0]!r} and ignores it; it reads {', '.join(columns)}")


def _is_binary(opened: OpenedRecords, record: dict[str, Any]) -> bool:
    """Return whether all encoded values of a record are 1."""
    return bool(np.all(opened.classifier.plan.encode_one(record)[1] == 1.0))


def open_as_rows(path: Path) -> tuple[OpenedRecords, Opened]:
    """Open a model of records; return it together with the model of rows inside."""
    opened = open_record_model(path)
    classifier = opened.classifier.classifier
    return opened, Opened(path, classifier.model, classifier, stored_tables=True)
