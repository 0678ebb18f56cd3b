"""Blocks of consecutive records. Readers of files yield blocks, and plans encode them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.data.rows.csr import CsrRows
from unkernel.errors import FormatError
from unkernel.records.plan import Plan

_ROW_PREFIX = "row "  # error messages of plans begin with this prefix and the row's index in the block


@dataclass(frozen=True, eq=False)
class Block:
    """A block of consecutive records.

    Attributes
    ----------
    file : str
        Name of the file.
    table : Arrow table, dict of columns, or list of dicts
        Input of ``Plan.encode``.
    n_rows : int
    line_of : callable
        Takes the index of a record in the block, and returns the line of the file in which the record begins;
        0 if the format has no lines.
    first : int
        The index in the file of the block's first record.
    """

    file: str
    table: Any
    n_rows: int
    line_of: Callable[[int], int]
    first: int = 0

    def encode(self, plan: Plan, threads: int = 1) -> CsrRows:
        """Encode the records; raise a ``FormatError`` that names the first record that cannot be encoded."""
        try:
            return plan.encode(self.table, threads)
        except (ValueError, TypeError) as error:
            raise self._locate_error(plan, error) from error

    def error(self, row: int, reason: str) -> FormatError:
        """Return an error that names the line, or else the number, of a record in the file."""
        line = self.line_of(row)
        return FormatError(self.file, line, 0, reason if line else f"record {self.first + row}: {reason}")

    def values(self, name: str) -> list[Any] | None:
        """Return the values of a column, with None for missing values; None if there is no such column."""
        table = self.table
        if isinstance(table, list):
            return [record.get(name) for record in table] if any(name in record for record in table) else None
        if isinstance(table, Mapping):
            column = table.get(name)
        else:
            column = table[name] if name in table.column_names else None
        return None if column is None else to_objects(column)

    def encode_column(self, name: str) -> tuple[list[Any], NDArray[np.intp]] | None:
        """Return the distinct values of a column, and for each record the index of its value.

        Return None if there is no such column.
        """
        if hasattr(self.table, "column_names") and name in self.table.column_names:
            encoded = self.table[name].combine_chunks().dictionary_encode()
            distinct = to_objects(encoded.dictionary)
            if not encoded.null_count:
                return distinct, convert_indices(encoded.indices)
            return [*distinct, None], convert_indices(encoded.indices.cast("int64").fill_null(len(distinct)))
        values = self.values(name)
        if values is None:
            return None
        try:
            index_of = {value: index for index, value in enumerate(dict.fromkeys(values))}
        except TypeError:  # a value, such as a list, is not hashable
            return values, np.arange(len(values))
        return list(index_of), np.array([index_of[value] for value in values], dtype=np.intp)

    def records(self) -> list[dict[str, Any]]:
        """Return the records as dicts; missing values are None."""
        if isinstance(self.table, list):
            return self.table
        names = list(self.table) if isinstance(self.table, Mapping) else self.table.column_names
        columns = [to_objects(self.table[name]) for name in names]
        return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]

    def without(self, name: str) -> Block:
        """Return a block of the same records without a column."""
        if isinstance(self.table, list):
            table: Any = [{key: record[key] for key in record if key != name} for record in self.table]
        elif isinstance(self.table, Mapping):
            table = {key: column for key, column in self.table.items() if key != name}
        else:
            table = self.table.drop_columns(name) if name in self.table.column_names else self.table
        return replace(self, table=table)

    def one(self, row: int) -> Block:
        """Return a block of a single record of this block."""
        part = _slice_table(self.table, row, row + 1)
        return Block(self.file, part, 1, lambda _: self.line_of(row), self.first + row)

    def _locate_error(self, plan: Plan, error: Exception) -> FormatError:
        """Return an error that names the first record that causes `error`."""
        row = self._find_first_bad(plan)
        try:
            plan.encode(_slice_table(self.table, row, row + 1))
        except (ValueError, TypeError) as error_of_record:
            error = error_of_record
        message = str(error)
        if message.startswith(_ROW_PREFIX):
            message = message.partition(": ")[2]
        return self.error(row, message)

    def _find_first_bad(self, plan: Plan) -> int:
        """Find the first record that cannot be encoded, by bisection: few error messages name the record."""
        # The first `low` records are valid. The first `high` records include an invalid one.
        low, high = 0, self.n_rows
        while high - low > 1:
            middle = (low + high) // 2
            try:
                plan.encode(_slice_table(self.table, low, middle))
                low = middle
            except (ValueError, TypeError):
                high = middle
        return low


def convert_indices(indices: Any) -> NDArray[np.intp]:
    """Convert the indices of an Arrow dictionary without missing values to numpy.

    Arrow's ``to_numpy`` is not used: it imports pandas, and the import may take longer than reading the file.
    """
    values = indices.buffers()[1]
    if values is None or not len(indices):
        return np.empty(0, dtype=np.intp)
    selection = slice(indices.offset, indices.offset + len(indices))
    return np.frombuffer(values, dtype=np.dtype(str(indices.type)))[selection].astype(np.intp)


def to_objects(values: Any) -> list[Any]:
    """Return a column as Python objects; NaN becomes None, because both are missing values."""
    if isinstance(values, np.ndarray):
        objects: list[Any] = values.tolist()
    else:
        objects = list(values.to_pylist() if hasattr(values, "to_pylist") else values)
    if objects and any(isinstance(value, float) for value in objects):
        return [None if isinstance(value, float) and math.isnan(value) else value for value in objects]
    return objects


def _slice_table(table: Any, begin: int, end: int) -> Any:
    if isinstance(table, Mapping):
        return {name: values[begin:end] for name, values in table.items()}
    return table[begin:end] if isinstance(table, Sequence) else table.slice(begin, end - begin)
