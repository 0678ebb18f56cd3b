"""CSV and TSV: blocks of complete records, parsed by pyarrow or, as a fallback, by Python's csv.

Python's csv is slower, but it is always available, and it finds the line of each record. It parses the
header, and blocks that pyarrow rejects because they have an error or because pyarrow is stricter. If pyarrow
is not installed, it parses all blocks. Both parsers return the same values.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from unkernel.errors import FormatError, describe_bad_byte
from unkernel.records.files import cells
from unkernel.records.files.blocks import Block

_MAX_RECORD_BYTES = 1 << 26  # limits the memory that an unclosed quotation mark can take
_ARROW_BLOCK_BYTES = 1 << 20  # number of bytes that a thread of pyarrow parses at a time
_BOM = b"\xef\xbb\xbf"
_LINE_BREAK = 10
_WIDE_BOMS = (b"\xff\xfe", b"\xfe\xff")  # of UTF-16
_DELIMITERS = (",", ";", "\t", "|")
# Spellings of NaN that pyarrow reads as numbers, and parse_cell rejects.
_ODD_NAN = re.compile(rb"[-+]nan|nan\(|(?!nan|NaN)[nN][aA][nN]", re.ASCII)
_QUOTED = re.compile(rb'(?:\A|(?<=[,;\t|\n\r]))"[^"]*(?:""[^"]*)*("|\Z)')  # a quoted field


@dataclass(frozen=True)
class Piece:
    """Bytes of complete records, and the number of their first line in the file."""

    data: bytes
    line: int


@dataclass(frozen=True)
class Header:
    """The header of a file: the names of the columns, and the delimiter."""

    file: str
    columns: list[str]
    delimiter: str


# --- Complete records ---------------------------------------------------------------------------------


def read_pieces(blocks: Iterable[bytes], file: str) -> Iterator[Piece]:
    """Yield pieces of complete records; skip empty lines at the beginning of the file."""
    buffer, line, has_content = b"", 1, False
    for block in _remove_bom(blocks, file):
        buffer = buffer + block if buffer else block
        if not has_content:
            n_blank = len(buffer) - len(buffer.lstrip(b"\r\n"))
            line += buffer.count(b"\n", 0, n_blank)
            buffer = buffer[n_blank:]
            has_content = bool(buffer)
        end = _find_end_of_records(buffer)
        if end:
            piece = Piece(buffer[:end], line)
            line += int(np.count_nonzero(np.frombuffer(piece.data, np.uint8) == _LINE_BREAK))
            buffer = buffer[end:]
            yield piece
        elif len(buffer) > _MAX_RECORD_BYTES:
            raise FormatError(
                file,
                line,
                0,
                f"a record of more than {_MAX_RECORD_BYTES >> 20} MB: is a quotation mark not closed?",
            )
    if buffer:
        _check_quotes_closed(buffer, line, file)
        yield Piece(buffer, line)


def _check_quotes_closed(data: bytes, line: int, file: str) -> None:
    """Check that the quoted fields of the last records of a file are closed."""
    for match in _QUOTED.finditer(data):
        if not match[1]:
            opening_line = line + data.count(b"\n", 0, match.start())
            raise FormatError(file, opening_line, 0, "a quotation mark is opened here, and never closed")


def _remove_bom(blocks: Iterable[bytes], file: str) -> Iterator[bytes]:
    for number, block in enumerate(blocks):
        if number == 0 and block.startswith(_WIDE_BOMS):
            raise FormatError(file, 1, 0, "the text is UTF-16, not UTF-8: convert it first (iconv -f utf-16)")
        yield block.removeprefix(_BOM) if number == 0 else block


def _find_end_of_records(data: bytes) -> int:
    """Return the end of the last line break outside quoted fields; 0 if there is none.

    A line break is outside quoted fields if an even number of quotation marks precedes it. (An unquoted field
    with a quotation mark would break this rule; the parser reports it as an error.) If the number is odd,
    each quoted field is examined.
    """
    end = data.rfind(b"\n") + 1
    if not end or not (data.count(b'"', 0, end) & 1):
        return end
    end, previous_end = 0, 0
    for match in _QUOTED.finditer(data):
        end = data.rfind(b"\n", previous_end, match.start()) + 1 or end
        if not match[1]:  # the field is not closed
            return end
        previous_end = match.end()
    return data.rfind(b"\n", previous_end) + 1 or end


# --- The header ---------------------------------------------------------------------------------------


def read_header(piece: Piece | None, file: str, format: str) -> tuple[Header, Piece]:
    """Return the header from the first piece of a file, and the rest of this piece."""
    if piece is None or not piece.data.strip():
        raise FormatError(file, 0, 0, "the file is empty: its first line must name the columns")
    text = io.StringIO(_decode(piece, file), newline="")
    first_line = text.readline()
    delimiter = "\t" if format == "tsv" else next((mark for mark in _DELIMITERS if mark in first_line), ",")
    text.seek(0)
    with _allow_long_fields():
        reader = csv.reader(text, delimiter=delimiter)
        try:
            names = next((fields for fields in reader if fields), [])
        except csv.Error as error:
            raise FormatError(file, piece.line, 0, f"not the names of columns: {error}") from None
    _check_names(names, file)
    header_bytes = len(text.getvalue()[: text.tell()].encode())
    line = piece.line + piece.data.count(b"\n", 0, header_bytes)
    return Header(file, names, delimiter), Piece(piece.data[header_bytes:], line)


def _check_names(names: Sequence[str], file: str) -> None:
    for index, name in enumerate(names):
        if not name.strip():
            reason = f"column {index + 1} has no name: the first line must name all columns"
            raise FormatError(file, 1, 0, reason)
        if name in names[:index]:
            raise FormatError(file, 1, 0, f"two columns have the name {cells.quote(name)}")


def _decode(piece: Piece, file: str) -> str:
    try:
        return piece.data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = piece.line + piece.data.count(b"\n", 0, error.start)
        raise FormatError(file, line, 0, describe_bad_byte(piece.data[error.start])) from None


# --- Records ------------------------------------------------------------------------------------------


def parse(piece: Piece, header: Header, types: Mapping[str, str], first: int, threads: int) -> Block:
    """Return the columns that `types` lists, parsed as values of their types."""
    table = _parse_by_arrow(piece, header, types, threads)
    if table is None or _may_differ_from_csv(table, piece, types):
        return _parse_by_csv(piece, header, types, first)
    return Block(header.file, table, table.num_rows, lambda row: parse_rows(piece, header)[1][row], first)


def _parse_by_arrow(piece: Piece, header: Header, types: Mapping[str, str], threads: int) -> Any:
    """Return a table parsed by pyarrow; None if Python's csv must parse the piece.

    This is the case if pyarrow is not installed, rejects the piece, or would drop a byte order mark.
    """
    arrow = arrow_csv()
    if arrow is None or not piece.data.strip() or piece.data.startswith(_BOM):
        return None
    pa, pc = arrow
    arrow_types = {"number": pa.float64(), "boolean": pa.bool_(), "string": pa.string()}
    has_quotes = b'"' in piece.data
    size = _ARROW_BLOCK_BYTES if threads > 1 and not has_quotes else len(piece.data) + 1
    try:
        return pc.read_csv(
            pa.BufferReader(piece.data),
            read_options=pc.ReadOptions(
                column_names=header.columns, use_threads=threads > 1, block_size=size
            ),
            parse_options=pc.ParseOptions(delimiter=header.delimiter, newlines_in_values=has_quotes),
            convert_options=pc.ConvertOptions(
                column_types={name: arrow_types[kind] for name, kind in types.items()},
                include_columns=list(types),
                null_values=[""],
                true_values=[word for word, value in cells.BOOLEANS.items() if value],
                false_values=[word for word, value in cells.BOOLEANS.items() if not value],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )
    except pa.ArrowInvalid:
        return None


def _may_differ_from_csv(table: Any, piece: Piece, types: Mapping[str, str]) -> bool:
    """Return whether pyarrow may have accepted a number that :func:`cells.parse_cell` rejects.

    pyarrow reads 1e999 as ``inf`` and accepts more spellings of NaN.
    """
    odd_nan = _ODD_NAN.search(piece.data) is not None
    for name in (name for name, kind in types.items() if kind == "number"):
        for chunk in table[name].chunks:
            bits = chunk.buffers()[1]
            values = np.empty(0) if bits is None else np.frombuffer(bits)
            if np.isinf(values).any() or (odd_nan and np.isnan(values).any()):
                return True
    return False


@cache
def arrow_csv() -> tuple[Any, Any] | None:
    """Return ``pyarrow`` and ``pyarrow.csv``, or None if they are not installed."""
    try:
        import pyarrow
        import pyarrow.csv
    except ImportError:
        return None
    return pyarrow, pyarrow.csv


def _parse_by_csv(piece: Piece, header: Header, types: Mapping[str, str], first: int) -> Block:
    rows, lines = parse_rows(piece, header)
    index_of = {name: index for index, name in enumerate(header.columns)}
    columns: dict[str, list[Any]] = {}
    for name, kind in types.items():
        column = [row[index_of[name]] for row in rows]
        try:
            columns[name] = cells.parse_cells(column, kind)
        except ValueError:
            _raise_for_bad_cell(header, name, kind, column, lines)
    return Block(header.file, columns, len(rows), lambda row: lines[row], first)


def _raise_for_bad_cell(header: Header, name: str, kind: str, column: list[str], lines: list[int]) -> None:
    for line, cell in zip(lines, column, strict=True):
        try:
            cells.parse_cell(cell, kind)
        except ValueError as error:
            raise FormatError(header.file, line, 0, f"column {name!r}: {error}") from None


def parse_rows(piece: Piece, header: Header) -> tuple[list[list[str]], list[int]]:
    """Return the cells of each record, and the line in which it begins; skip empty lines."""
    text = _decode(piece, header.file)
    rows, lines, width = [], [], len(header.columns)
    breaks = _LineBreaks(io.StringIO(text, newline=""))
    with _allow_long_fields():
        reader = csv.reader(breaks, delimiter=header.delimiter)
        line = piece.line
        try:
            for fields in reader:
                if fields and len(fields) != width:
                    reason = f"expected {width} fields, as the first line has, got {len(fields)}"
                    raise FormatError(header.file, line, 0, reason)
                if fields:
                    rows.append(fields)
                    lines.append(line)
                line = piece.line + breaks.count
        except csv.Error as error:
            raise FormatError(header.file, line, 0, f"not a CSV record: {error}") from None
    return rows, lines


class _LineBreaks:
    """Iterates over lines and counts line breaks. A CR without LF is not a line break.

    The line numbers of Python's csv are not used, because they count a CR without LF as a line break.
    """

    def __init__(self, text: io.StringIO) -> None:
        self._text = text
        self.count = 0

    def __iter__(self) -> Iterator[str]:
        for line in self._text:
            self.count += line.endswith("\n")
            yield line


class _allow_long_fields:  # noqa: N801 (a context manager, named like a function)
    """Lift the limit of Python's csv on the length of fields within a ``with`` block."""

    def __enter__(self) -> None:
        self._previous_limit = csv.field_size_limit(sys.maxsize)

    def __exit__(self, *_: object) -> None:
        csv.field_size_limit(self._previous_limit)
