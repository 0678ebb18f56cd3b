"""Files of records, of any format."""

from __future__ import annotations

import io
import itertools
import os
from collections.abc import Iterator, Mapping
from typing import IO, Any

from unkernel.data.files import BLOCK_BYTES, name_of, read_blocks
from unkernel.records.files import delimited
from unkernel.records.files.blocks import Block
from unkernel.records.files.formats import BOM, detect_format, format_of
from unkernel.records.files.json_lines import read_json_blocks
from unkernel.records.files.parquet import ParquetRecords

_PARQUET = b"PAR1"
_MAX_DETECTION_BYTES = 1 << 20  # largest number of bytes that are read to detect the format


class RecordFile:
    """An open file of records. It can be read only once, block by block.

    Attributes
    ----------
    file : str
        Name of the file in messages.
    format : str
        ``"csv"``, ``"tsv"``, ``"jsonl"`` or ``"parquet"``.
    columns : list of str or None
        The names of the columns; None for JSON lines, in which records may have different keys.
    """

    def __init__(self, source: Any, file: str, format: str, blocks: Iterator[bytes]) -> None:
        self.file = file
        self.format = format
        self.columns: list[str] | None = None
        self._blocks = blocks
        if format == "parquet":
            # pyarrow reads the end of the file first.
            seekable: Any = io.BytesIO(b"".join(blocks)) if source is None else os.fspath(source)
            self._parquet = ParquetRecords(seekable, file)
            self.columns = self._parquet.columns
        elif format != "jsonl":
            self._pieces = delimited.read_pieces(blocks, file)
            self._header, remaining_piece = delimited.read_header(next(self._pieces, None), file, format)
            self._pieces = itertools.chain([remaining_piece], self._pieces)
            self.columns = self._header.columns

    @property
    def stored_types(self) -> dict[str, str] | None:
        """Return the types of the columns, or None if the file does not store types."""
        return self._parquet.types() if self.format == "parquet" else None

    def blocks(self, types: Mapping[str, str], threads: int = 1) -> Iterator[Block]:
        """Yield the records in the order of the file.

        Parameters
        ----------
        types : dict
            The type of each column to read: ``"number"``, ``"boolean"`` or ``"string"``. Parquet files store
            their own types. From JSON lines, all columns are read.
        threads : int
        """
        if self.format == "jsonl":
            yield from read_json_blocks(self._blocks, self.file)
            return
        selected_types = {name: types[name] for name in self.columns or () if name in types}
        if self.format == "parquet":
            yield from self._parquet.blocks(list(selected_types))
            return
        first = 0
        for piece in self._pieces:
            block = delimited.parse(piece, self._header, selected_types, first, threads)
            first += block.n_rows
            if block.n_rows:
                yield block


def open_records(
    source: str | os.PathLike[str] | IO[bytes],
    *,
    name: str | None = None,
    wait: bool = True,
    size: int = BLOCK_BYTES,
) -> RecordFile:
    """Open a file of records, and detect its format by its name or its first bytes.

    Parameters
    ----------
    source : path or open file
        The file, compressed or not.
    name : str, default=None
        Name in messages. It also determines the format.
    wait : bool, default=True
        Whether to wait until a block is full. Otherwise, a block contains the bytes available from a pipe.
    size : int
        Number of bytes per block.
    """
    file = name_of(source) if name is None else name
    blocks = read_blocks(source, size, wait=wait)
    format = format_of(file)
    if format == "parquet" and isinstance(source, str | os.PathLike):
        with open(source, "rb") as opened:  # noqa: PTH123 (any PathLike)
            # A Parquet file is not compressed as a whole, so pyarrow can seek in it.
            if opened.read(len(_PARQUET)) == _PARQUET:
                return RecordFile(source, file, format, iter(()))
    if format is None:
        beginning = _read_first_line(blocks)
        format, blocks = detect_format(beginning), itertools.chain([beginning], blocks)
    return RecordFile(None, file, format, blocks)


def _read_first_line(blocks: Iterator[bytes]) -> bytes:
    """Return the first blocks, up to the block in which the first nonempty line ends."""
    beginning = next(blocks, b"")
    while len(beginning) < _MAX_DETECTION_BYTES and b"\n" not in beginning.removeprefix(BOM).lstrip():
        more = next(blocks, b"")
        if not more:
            break
        beginning += more
    return beginning
