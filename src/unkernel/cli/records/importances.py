"""Measure, on the records of a file, how important a model's columns are, and how their values differ."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from unkernel.cli.inputs.records import (
    OpenedRecords,
    check_records,
    encode_block,
    open_record_file,
    read_blocks,
)
from unkernel.cli.terminal.progress import Display
from unkernel.data.rows.csr import stack_rows
from unkernel.engines.explain.importances import check_importances, compute_importances, encode_records
from unkernel.records.value_counts import MarkingPlan, compare_values, make_marking_plan

_MAX_RECORDS = 10_000


def describe_data(opened: OpenedRecords, file: str, *, quiet: bool) -> dict[str, Any]:
    """Return the shares of columns in the variance of the score, and of missing and unknown values.

    At most the first 10,000 records of the file are used.
    """
    check_records(opened)
    classifier = opened.classifier
    marking = make_marking_plan(classifier.plan)  # encodes records with marks of missing and unknown values
    parts, marked_parts, n_rows = [], [], 0
    with Display(quiet=quiet) as display, open_record_file(file, display) as records:
        for block in read_blocks(opened, records, 1, with_target=False):
            parts.append(encode_block(opened, block))
            if marking is not None:
                marked_parts.append(block.encode(marking.plan))
            n_rows += parts[-1].shape[0]
            if n_rows >= _MAX_RECORDS:
                break
    if not n_rows:
        raise ValueError(f"{file}: holds no records")
    rows = stack_rows(parts)[: min(n_rows, _MAX_RECORDS)]
    try:
        check_importances(classifier.plan, classifier.decision)
        encoding = encode_records(classifier.plan, None, rows, _MAX_RECORDS)
        importances = compute_importances(
            classifier.classifier.model, classifier.decision, encoding, None, {}
        )
    except ValueError as error:
        raise ValueError(f"{opened.path}: {error}; leave out --data") from error
    terms = [
        {"columns": list(names), "share": share}
        for names, share in zip(importances.columns, importances.shares.tolist(), strict=True)
    ]
    description = {"importances": {"file": file, "records": rows.shape[0], "terms": terms}}
    return description | _describe_values(opened, marking, marked_parts)


def _describe_values(
    opened: OpenedRecords, marking: MarkingPlan | None, marked_parts: list[Any]
) -> dict[str, Any]:
    """Return the shares of missing and unknown values of each column, beside those of training."""
    if marking is None:
        return {}
    rows = stack_rows(marked_parts)[:_MAX_RECORDS]
    training = opened.classifier.plan.training
    shares = [asdict(shares) for shares in compare_values(marking, rows, training)]
    training_records = None if training is None else training.n_records
    return {"values": {"records": rows.shape[0], "training_records": training_records, "columns": shares}}
