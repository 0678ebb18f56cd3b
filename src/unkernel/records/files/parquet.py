"""Parquet, read by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unkernel.errors import FormatError
from unkernel.records.files.blocks import Block

_BLOCK_ROWS = 1 << 16
REMEDY = 'install it: pip install "unkernel[records]"'


class ParquetRecords:
    """An open Parquet file of records."""

    def __init__(self, source: Any, file: str) -> None:
        self._pa, self._parquet = _import_pyarrow(file)
        self._file = file
        try:
            self._opened = self._parquet.ParquetFile(source)
        except (self._pa.ArrowException, OSError) as error:
            raise self._make_damage_error(error) from None
        self.columns: list[str] = list(self._opened.schema_arrow.names)
        for index, name in enumerate(self.columns):
            if name in self.columns[:index]:
                raise FormatError(file, 0, 0, f"two columns have the name {name!r}")

    def types(self) -> dict[str, str]:
        """Return the type of each column, as for columns of text files."""
        kinds = self._pa.types
        types = {}
        for field in self._opened.schema_arrow:
            kind = field.type.value_type if kinds.is_dictionary(field.type) else field.type
            is_number = kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind)
            if is_number:
                types[field.name] = "number"
            else:
                types[field.name] = "boolean" if kinds.is_boolean(kind) else "string"
        return types

    def blocks(self, columns: list[str]) -> Iterator[Block]:
        """Yield the given columns of the records, in the order of the file."""
        first = 0
        batches = self._opened.iter_batches(batch_size=_BLOCK_ROWS, columns=columns)
        while True:
            try:
                batch = next(batches, None)
            except (self._pa.ArrowException, OSError) as error:
                raise self._make_damage_error(error) from None
            if batch is None:
                return
            yield Block(self._file, self._convert_batch(batch), batch.num_rows, lambda _: 0, first)
            first += batch.num_rows

    def _convert_batch(self, batch: Any) -> Any:
        """Return a batch in a form that plans encode; columns of nested types become lists."""
        table = self._pa.Table.from_batches([batch])
        converted = {name: self._convert_column(table[name]) for name in table.column_names}
        if any(isinstance(column, list) for column in converted.values()):
            return {
                name: column if isinstance(column, list) else _to_objects(column)
                for name, column in converted.items()
            }
        return self._pa.table(converted)

    def _convert_column(self, column: Any) -> Any:
        pa, kind = self._pa, column.type
        if pa.types.is_decimal(kind) or pa.types.is_float16(kind):
            return column.cast(pa.float64())
        if pa.types.is_dictionary(kind) and kind.index_type.bit_width == 64:
            return column.cast(kind.value_type)
        return column.to_pylist() if pa.types.is_nested(kind) else column

    def _make_damage_error(self, error: Exception) -> FormatError:
        message = " ".join(str(error).split()).rstrip(".")
        return FormatError(self._file, 0, 0, f"not a Parquet file, or a damaged one ({message})")


def _to_objects(column: Any) -> list[Any]:
    objects: list[Any] = column.to_pylist()
    return objects


def _import_pyarrow(file: str) -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ValueError(f"{file}: Parquet files are read by pyarrow; {REMEDY}") from None
    return pyarrow, pyarrow.parquet
