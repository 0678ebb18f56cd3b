"""Compute the importances of a model's columns on the records of a file, for JSON."""

from __future__ import annotations

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

_MAX_RECORDS = 10_000


def compute_shares(opened: OpenedRecords, file: str, *, quiet: bool) -> dict[str, Any]:
    """Return the share of each column and pair of columns in the variance of the score.

    At most the first 10,000 records of the file are used.
    """
    check_records(opened)
    classifier = opened.classifier
    parts, n_rows = [], 0
    with Display(quiet=quiet) as display, open_record_file(file, display) as records:
        for block in read_blocks(opened, records, 1, with_target=False):
            parts.append(encode_block(opened, block))
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
    return {"file": file, "records": rows.shape[0], "terms": terms}
