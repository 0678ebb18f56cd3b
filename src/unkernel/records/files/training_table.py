"""Read complete files of records for training: values, labels, and inferred types."""

from __future__ import annotations

import math
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.errors import FormatError, warn_caller
from unkernel.records.column_summary import MOST_ARE_NUMBERS, MixedColumnWarning
from unkernel.records.files import cells
from unkernel.records.files.blocks import Block, convert_indices, to_objects
from unkernel.records.files.record_files import RecordFile

_NUMBER_KINDS = ("number", "binned")
_MAX_LISTED_NAMES = 30  # largest number of columns that a message lists
_LARGEST_FLOAT = sys.float_info.max
_FIRST_INEXACT_FLOAT = 2**53
_FIRST_LONG_INTEGER = 2**63


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """Records with their labels.

    Attributes
    ----------
    columns : dict
        The values of each column: a list, or an array of float64 with NaN for missing numbers.
    labels : ndarray
        One label per record, or an array of lists of labels.
    types : dict
        The type of each column, to use for further text files; see :mod:`unkernel.records.files.cells`.
    """

    columns: dict[str, Any]
    labels: NDArray[Any]
    types: dict[str, str]

    def select(self, indices: NDArray[np.intp]) -> TrainingTable:
        """Return the records at these indices."""
        columns = {
            name: values[indices] if isinstance(values, np.ndarray) else [values[k] for k in indices.tolist()]
            for name, values in self.columns.items()
        }
        return replace(self, columns=columns, labels=self.labels[indices])


def read_training(
    files: Iterable[RecordFile],
    target: str,
    *,
    kinds: Mapping[str, str],
    drop: Sequence[str],
    values: bool = False,
    lists: bool = False,
    threads: int = 1,
) -> TrainingTable:
    """Read all records of one or several files, which must have the same columns.

    Parameters
    ----------
    files : iterable of RecordFile
        The files. Each file is read completely before the next one is taken from the iterable.
    target : str
        The column of the labels.
    kinds : dict
        Kinds of some columns. A column of kind "number" or "binned" must contain only numbers.
    drop : sequence of str
        Columns to skip.
    values : bool, default=False
        Whether the labels are the values of a regression. Such values may be rounded to floats.
    lists : bool, default=False
        Whether each record may have a list of labels.
    threads : int

    Returns
    -------
    TrainingTable
        The records, in the order of the files.
    """
    dropped = {*drop, *(name for name, kind in kinds.items() if kind == "drop")}
    if target in dropped:
        raise ValueError(f"--target {target!r} cannot be dropped: it has the labels to learn")
    first, blocks = _read_blocks(files, [target, *kinds, *drop], dropped, threads)
    columns, types = _join_blocks(blocks, first)
    if first.columns is None:
        check_columns(first.file, list(columns), [target, *kinds, *drop], target)
        columns = {name: values for name, values in columns.items() if name not in dropped}
    for name in kinds:
        if kinds[name] in _NUMBER_KINDS and types.get(name) == "string" and name in columns:
            _check_numbers(name, columns[name], blocks)
    column = columns.pop(target)
    if lists and any(isinstance(value, list) for value in column):
        labels = _read_label_lists(target, column, blocks)
    else:
        labels = _read_labels(target, column, blocks, values=values)
    for name in columns:
        if types[name] == "string" and name not in kinds and first.stored_types is None:
            _warn_about_mixed_column(name, columns[name], blocks)
    if not columns:
        raise FormatError(first.file, 0, 0, f"there is no column beside {target!r}: nothing to learn from")
    return TrainingTable(columns, labels, {name: types[name] for name in [*columns, target]})


def _read_blocks(
    files: Iterable[RecordFile], named: Sequence[str], dropped: Set[str], threads: int
) -> tuple[RecordFile, list[Block]]:
    """Return the first file, and the records of all files."""
    first: RecordFile | None = None
    blocks: list[Block] = []
    for file in files:
        if file.columns is not None:
            check_columns(file.file, file.columns, named, named[0])
        first = first or file
        _check_same_columns(first, file)
        column_types = {name: "string" for name in file.columns or () if name not in dropped}
        file_blocks = list(file.blocks(column_types, threads))
        if not file_blocks:
            raise FormatError(file.file, 0, 0, "there is no record: nothing to learn from")
        blocks += file_blocks
    assert first is not None  # callers name at least one file
    return first, blocks


def _check_same_columns(first: RecordFile, other: RecordFile) -> None:
    """Check that two files have the same columns, with the same types."""
    if first.format != other.format:
        raise ValueError(
            f"{other.file}: is {other.format}, and {first.file} is {first.format}; files to learn from "
            "together have one format"
        )
    columns, other_columns = first.columns or [], other.columns or []
    for missing, file, file_with_it in (
        ([name for name in columns if name not in other_columns], other.file, first.file),
        ([name for name in other_columns if name not in columns], first.file, other.file),
    ):
        if missing:
            raise ValueError(f"{file}: there is no column {missing[0]!r}, which {file_with_it} has")
    if first.stored_types is not None:
        for name, kind in first.stored_types.items():
            other_kind = (other.stored_types or {})[name]
            if other_kind != kind:
                raise ValueError(
                    f"{other.file}: column {name!r} is of type {other_kind}, "
                    f"and in {first.file} of type {kind}"
                )


def check_columns(file: str, columns: Sequence[str], named: Sequence[str], target: str) -> None:
    """Check that all requested columns exist."""
    for name in named:
        if name in columns:
            continue
        similar = get_close_matches(name, columns, n=1)
        hint = f"; did you mean {similar[0]!r}?" if similar else f"; it has {list_names(columns)}"
        option = "--target " if name == target else ""
        raise ValueError(f"{file}: there is no column {option}{name!r}{hint}")


def list_names(columns: Sequence[str]) -> str:
    """Return a list of columns as text for a message."""
    text = ", ".join(columns[:_MAX_LISTED_NAMES])
    return text if len(columns) <= _MAX_LISTED_NAMES else f"{text}, …"


# --- Columns of all blocks ----------------------------------------------------------------------------


def _join_blocks(blocks: list[Block], file: RecordFile) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values of each column in all blocks, and the types of the columns."""
    first = blocks[0].table
    if file.format == "jsonl":
        records = [record for block in blocks for record in block.table]
        names = dict.fromkeys(name for record in records for name in record)
        columns: dict[str, Any] = {name: [record.get(name) for record in records] for name in names}
        for name, values in columns.items():
            _check_sizes(name, values, blocks)
        return columns, {name: _find_type(values) for name, values in columns.items()}
    types = file.stored_types
    columns, inferred = {}, {}
    for name in first if isinstance(first, Mapping) else first.column_names:
        parts = [block.table[name] for block in blocks]
        if types is None:
            columns[name], inferred[name] = _infer_values(name, parts, blocks)
        else:
            columns[name], inferred[name] = _join_parts(parts, types[name]), types[name]
    return columns, inferred


def _find_type(values: Sequence[Any]) -> str:
    kinds = set(map(type, values)) - {type(None)}
    if kinds and kinds <= {int, float}:
        return "number"
    return "boolean" if kinds == {bool} else "string"


def _infer_values(name: str, parts: list[Any], blocks: list[Block]) -> tuple[Any, str]:
    """Return the cells converted to values of a common type, and the type; parse each distinct cell once."""
    distinct_cells, codes = _encode_cells(parts)
    kind = cells.infer_type(cell for cell in distinct_cells if cell is not None)
    values: list[Any] = []
    for cell in distinct_cells:
        try:
            values.append(None if cell is None else cells.parse_cell(cell, kind))
        except ValueError as error:
            row = int(np.argmax(codes == len(values)))
            raise _make_error_at(blocks, row, f"column {name!r}: {error}") from None
    if kind == "number":
        return np.array([np.nan if value is None else value for value in values])[codes], kind
    return np.array(values, dtype=object)[codes].tolist(), kind


def _encode_cells(parts: list[Any]) -> tuple[list[str | None], NDArray[np.intp]]:
    """Return the distinct cells, and the index of each record's cell."""
    if not any(isinstance(part, list) for part in parts):
        import pyarrow as pa

        encoded = pa.chunked_array([chunk for part in parts for chunk in part.chunks]).combine_chunks()
        encoded = encoded.dictionary_encode()
        distinct_cells = [*encoded.dictionary.to_pylist(), None]
        return distinct_cells, convert_indices(
            encoded.indices.cast("int64").fill_null(len(distinct_cells) - 1)
        )
    all_cells = [cell for part in parts for cell in to_objects(part)]
    index_of = {cell: index for index, cell in enumerate(Counter(all_cells))}
    return list(index_of), np.array([index_of[cell] for cell in all_cells], dtype=np.intp)


def _join_parts(parts: list[Any], kind: str) -> Any:
    values = [value for part in parts for value in to_objects(part)]
    if kind != "number":
        return values
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


# --- Checks -------------------------------------------------------------------------------------------


def _make_error_at(blocks: list[Block], row: int, reason: str) -> FormatError:
    """Return an error that names the line of a record; `row` counts the records of all files."""
    ends = list(accumulate(block.n_rows for block in blocks))
    block_index = bisect_right(ends, row)
    block = blocks[block_index]
    return block.error(row - (ends[block_index] - block.n_rows), reason)


def _check_sizes(name: str, values: Sequence[Any], blocks: list[Block]) -> None:
    """Raise a FormatError if a whole number is larger than any float."""
    for row, value in enumerate(values):
        if isinstance(value, int) and abs(value) > _LARGEST_FLOAT:
            raise _make_error_at(blocks, row, f"column {name!r}: {cells.TOO_LARGE}")


def _check_numbers(name: str, values: Sequence[Any], blocks: list[Block]) -> None:
    """Raise a FormatError if a value is not a number, in a column that the schema declares as numbers."""
    for row, value in enumerate(values):
        if isinstance(value, str):
            try:
                cells.parse_cell(value, "number")
            except ValueError as error:
                raise _make_error_at(blocks, row, f"column {name!r}: {error}, as the schema asks") from None


def _warn_about_mixed_column(name: str, values: Sequence[Any], blocks: list[Block]) -> None:
    """Warn if nearly all values of a column of categories are numbers; name the first value that is not."""
    counts = Counter(value for value in values if not isinstance(value, (list, dict)))
    counts_present = {value: count for value, count in counts.items() if not cells.is_missing(value)}
    non_numbers = {value for value in counts_present if isinstance(value, str) and not cells.is_number(value)}
    total = sum(counts_present.values())
    n_numbers = total - sum(counts_present[value] for value in non_numbers)
    if not non_numbers or n_numbers < MOST_ARE_NUMBERS * total:
        return
    row = next(row for row, value in enumerate(values) if isinstance(value, str) and value in non_numbers)
    share = min(100.0 * n_numbers / total, 99.99)  # never print 100 %, because some values are no numbers
    reason = (
        f"column {name!r} is taken for categories: {n_numbers:,} of its {total:,} values "
        f"({share:.4g} %) are numbers, but not {cells.quote(values[row])}; correct "
        f'such values, or say what the column is with --schema: {{"{name}": "category"}}'
    )
    warn_caller(str(_make_error_at(blocks, row, reason)), MixedColumnWarning)


def _read_labels(target: str, column: Any, blocks: list[Block], *, values: bool) -> NDArray[Any]:
    """Return the labels as an array; FormatError for a label that the array could not represent exactly."""
    labels = to_objects(column)
    types = set(map(type, labels))
    numeric = types <= {int, float} or types == {bool}
    for kind in types & {type(None), list, dict}:
        fault = (
            "a record to learn from needs a label"
            if kind is type(None)
            else "a label is a string or a number"
        )
        row = next(row for row, label in enumerate(labels) if type(label) is kind)
        raise _make_error_at(blocks, row, f"column {target!r}: {fault}")
    if values:
        limit: float = _LARGEST_FLOAT
    else:
        limit = _FIRST_INEXACT_FLOAT if float in types else _FIRST_LONG_INTEGER
    previous_labels: set[str] = set()
    # Check each distinct label once. The labels 1 and True are equal, but of different types.
    for label in dict(zip(zip(map(type, labels), labels, strict=True), labels, strict=True)).values():
        fault = _find_label_fault(label, limit)
        if not (fault or numeric) and str(label) in previous_labels:
            fault = f"the label {label} is a string in one record and none in another; write all as strings"
        previous_labels.add(str(label))
        if fault:
            row = next(
                row for row, other in enumerate(labels) if type(other) is type(label) and other == label
            )
            raise _make_error_at(blocks, row, f"column {target!r}: {fault}")
    if values and types <= {int, float}:
        return np.array(labels, dtype=np.float64)
    return np.array(labels if numeric else [str(label) for label in labels])


def _read_label_lists(target: str, column: Any, blocks: list[Block]) -> NDArray[Any]:
    """Return an array of lists of labels, which are strings or whole numbers."""
    labels = np.empty(len(column), dtype=object)
    for row, values in enumerate(column):
        fault = "" if isinstance(values, list) else "other records have a list of labels"
        for label in values if not fault else ():
            if type(label) not in (str, int):
                fault = "a label in a list is a string or a whole number"
            fault = fault or _find_label_fault(label, _FIRST_LONG_INTEGER)
        if fault:
            raise _make_error_at(blocks, row, f"column {target!r}: {fault}")
        labels[row] = values
    return labels


def _find_label_fault(label: Any, limit: float) -> str:
    """Return why an array of labels cannot represent a label exactly; an empty string if it can.

    Numbers must be smaller than `limit`.
    """
    if isinstance(label, str):
        if label.endswith("\0"):
            return "a label cannot end in a NUL character"
        return "the label has a lone surrogate, which is no character" if _has_surrogate(label) else ""
    if not math.isfinite(label):
        return "a label cannot be infinite"
    if abs(label) >= limit:
        return "the number is too large for an exact label; write labels as strings"
    return ""


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
