"""``unkernel compile`` and ``unkernel bench`` for models that take records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from unkernel.cli.inputs.records import (
    OpenedRecords,
    check_records,
    drop_target,
    encode_block,
    open_record_file,
    read_blocks,
)
from unkernel.cli.terminal.progress import Display
from unkernel.data.rows.csr import stack_rows
from unkernel.records.plan import Plan


def encode_file(opened: OpenedRecords, file: str | None, threads: int, display: Display) -> Any:
    """Encode the records of a file as a CSR matrix of shape (records, features); None if `file` is None."""
    if file is None:
        return None
    check_records(opened)
    with open_record_file(file, display) as source:
        blocks = read_blocks(opened, source, threads, with_target=False)
        rows = [encode_block(opened, block, threads) for block in blocks]
    if not rows:
        raise ValueError(f"{file}: there is no record")
    return (rows[0] if len(rows) == 1 else stack_rows(rows)).to_scipy()


def adapt_plan(opened: OpenedRecords, unknown_keys: str | None) -> Plan:
    """Return the plan; with `unknown_keys` ("ignore" or "error"), change how it handles unknown keys."""
    plan = opened.classifier.plan
    if unknown_keys is None:
        return plan
    check_records(opened)
    return replace(plan, ignores_unknown_keys=unknown_keys == "ignore")


def read_first_records(
    opened: OpenedRecords, file: str, count: int, display: Display
) -> list[dict[str, Any]]:
    """Read the first records of a file, as dicts."""
    check_records(opened)
    records: list[dict[str, Any]] = []
    with open_record_file(file, display) as source:
        for block in read_blocks(opened, source, threads=1, with_target=False):
            encode_block(opened, block)  # raises an error that names the line of a bad record
            records += [drop_target(opened, record) for record in block.records()]
            if len(records) >= count:
                break
    if not records:
        raise ValueError(f"{file}: there is no record")
    return records[:count]
