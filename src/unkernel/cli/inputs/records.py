"""Open models of records, and read the files of records to predict."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from unkernel import load
from unkernel.cli.inputs.file_contents import check_no_bare_trees, check_no_model, has_rows, read_beginning
from unkernel.cli.inputs.labelled_files import class_labels
from unkernel.cli.terminal.progress import Display
from unkernel.cli.terminal.standard_streams import STANDARD_STREAM, stdin_path
from unkernel.data.rows.csr import CsrRows
from unkernel.engines import RecordClassifier
from unkernel.errors import FormatError
from unkernel.measures.number_format import format_count
from unkernel.records.files import Block, RecordFile, format_of, open_records
from unkernel.records.files.columns import (
    count_column_features,
    infer_column_kinds,
    infer_column_types,
    list_read_columns,
)
from unkernel.records.plan import Plan

ORIGIN = "records"  # the key of the description of columns in `model.origin`, the facts about training
_STDIN = "stdin"
_PREDICTION_BLOCK_BYTES = 1 << 22


@dataclass(frozen=True, eq=False)
class OpenedRecords:
    """A model of records, with the description of its training file."""

    path: Path
    classifier: RecordClassifier

    @cached_property
    def _origin(self) -> dict[str, Any]:
        stored = self.classifier.classifier.model.origin.get(ORIGIN)
        return stored if isinstance(stored, dict) else {}

    @property
    def target(self) -> str | None:
        """The column to predict, if the model was trained on a file."""
        stored = self._origin.get("target")
        return stored if isinstance(stored, str) else None

    @cached_property
    def types(self) -> dict[str, str]:
        """The types of the columns in the training file; other text files are read with the same types."""
        types_by_name, stored = infer_column_types(self.classifier.plan), self._origin.get("types")
        if isinstance(stored, dict):
            types_by_name |= {name: kind for name, kind in stored.items() if name in types_by_name}
        return types_by_name

    @cached_property
    def plan_of_files(self) -> Plan:
        """The plan, which encodes records as rows, for files: missing numbers are None there, not NaN."""
        return self.classifier.plan.with_none_as_nan()

    @property
    def target_type(self) -> str:
        """The type of labels in text files."""
        stored = self._origin.get("types", {})
        return str(stored.get(self.target, "string")) if isinstance(stored, dict) else "string"

    def columns(self) -> list[dict[str, Any]]:
        """The kind and the number of features of each column that the model reads, for JSON."""
        plan = self.classifier.plan
        kinds, counts = infer_column_kinds(plan), count_column_features(plan)
        return [{"column": name, "kind": kinds[name], "features": counts[name]} for name in kinds]


def open_record_model(path: Path) -> OpenedRecords:
    """Read a model of records; raise ``FormatError`` if it is damaged."""
    loaded = load(path)
    if not isinstance(loaded, RecordClassifier):
        raise FormatError(os.fspath(path), 0, 0, "not a model of records")
    return OpenedRecords(path, loaded)


def check_records(opened: OpenedRecords, *, probability: bool = False) -> None:
    """Raise ``ValueError`` for a model of texts or, with `probability`, a model without probabilities."""
    if opened.classifier.plan.whole:
        raise ValueError(
            f"{opened.path}: takes texts, not records with columns: use it from Python, with unkernel.load"
        )
    if probability and not opened.classifier.decision.has_probabilities:
        raise ValueError(
            f"{opened.path}: the model has no probabilities; train it again with --calibrate 3, or leave out "
            "--probability"
        )


def is_record_file(file: str) -> bool:
    """Return whether the name of a file indicates records."""
    return format_of(file) is not None


def check_no_records(file: str, path: Path) -> None:
    """Raise ``ValueError`` if `file` contains records, because the model takes rows or trees."""
    check_no_bare_trees(file)
    if is_record_file(file):
        raise ValueError(
            f"{file}: holds records, which the model {path} does not take; train one that does: "
            f"unkernel train poly {file} --target COLUMN -o model.uk"
        )


@contextlib.contextmanager
def open_record_file(file: str, display: Display, *, wait: bool = True) -> Iterator[RecordFile]:
    """Open a file of records, and show the progress of reading; ``-`` is stdin.

    With ``wait=False``, records on stdin are processed as soon as they arrive.
    """
    check_no_model(file, "records")
    if file != STANDARD_STREAM and format_of(file) == "parquet":
        with display.show_work(f"reading {Path(file).name}"):
            yield open_records(file)
        return
    if not wait:  # a progress bar would need buffered reading, and this waits for full blocks
        with stdin_path().open("rb", buffering=0) as pipe:
            yield open_records(pipe, name=_STDIN, wait=False, size=_PREDICTION_BLOCK_BYTES)
        return
    with display.show_reading(file) as stream:
        name = _STDIN if file == STANDARD_STREAM else file
        yield open_records(stream, name=name, size=_PREDICTION_BLOCK_BYTES)


def read_blocks(
    opened: OpenedRecords, file: RecordFile, threads: int, *, with_target: bool = True
) -> Iterator[Block]:
    """Yield blocks of records to predict, with the columns of the model and, if present, the target."""
    types = dict(opened.types)
    if opened.target is not None and with_target:
        types[opened.target] = opened.target_type
    if file.columns is not None:
        _check_columns(opened, file)
        _check_unknown(opened, file.columns, file.file)
    return file.blocks(types, threads)


def encode_block(opened: OpenedRecords, block: Block, threads: int = 1) -> CsrRows:
    """Encode records as rows, without the target."""
    if opened.target is not None and not opened.classifier.plan.ignores_unknown_keys:
        block = block.without(opened.target)
    return block.encode(opened.plan_of_files, threads)


def drop_target(opened: OpenedRecords, record: dict[str, Any]) -> dict[str, Any]:
    """Return a record without the target."""
    return {name: value for name, value in record.items() if name != opened.target}


def _check_columns(opened: OpenedRecords, file: RecordFile) -> None:
    """Raise ``ValueError`` if a table lacks a column; in JSON records, absent columns are missing values."""
    present = file.columns or []
    missing = [name for name in list_read_columns(opened.classifier.plan) if name not in present]
    if not missing:
        return
    if has_rows(read_beginning(file.file)):
        raise ValueError(f"{file.file}: holds rows of features, and the model {opened.path} takes records")
    similar = get_close_matches(missing[0], present, n=1)
    hint = f"; did you mean {similar[0]!r}?" if similar else ""
    if len(missing) > 1:
        hint = f", nor {format_count(len(missing) - 1, 'other')} that it needs{hint}"
    raise ValueError(
        f"{file.file}: there is no column {missing[0]!r}, which the model {opened.path} needs{hint}"
    )


def _check_unknown(opened: OpenedRecords, present: list[str], file: str) -> None:
    """Raise ``ValueError`` for unknown columns if the model was compiled with ``--unknown-keys error``."""
    plan = opened.classifier.plan
    unknown = [name for name in present if name not in plan.columns and name != opened.target]
    if unknown and not plan.ignores_unknown_keys:
        raise ValueError(f"{file}: the model {opened.path} does not know the column {unknown[0]!r}")


def read_labels(block: Block, target: str | None) -> np.ndarray[Any, Any] | None:
    """Return the labels of a block; None if any record has no label."""
    values = None if target is None else block.values(target)
    if values is None or any(value is None for value in values):
        return None
    return to_labels(values)


def to_labels(values: list[Any]) -> np.ndarray[Any, Any]:
    """Return labels as numbers if all are numbers, else as strings; lists of labels are not changed."""
    if values and all(isinstance(value, list) for value in values):
        lists = np.empty(len(values), dtype=object)
        lists[:] = values
        return lists
    if all(isinstance(value, (int, float)) for value in values):
        return class_labels(np.array(values))
    return np.array([str(value) for value in values])
