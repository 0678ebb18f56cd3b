"""Read and write ``.rows`` files: packed rows, read block by block. docs/formats/rows.md specifies them.

Files are not trusted. This module checks the footer, the size and the checksums of a file. The core checks
the index and the blocks.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import BlockFile, BlockPacker
from unkernel.data import SvmlightPart
from unkernel.data.checksums import checksum_of, hexadecimal_checksum
from unkernel.data.files import name_of
from unkernel.errors import FormatError

VERSION = 1
_KIND = b"unkernel rows "  # files of all versions begin with these bytes
_MAGIC = _KIND + b"%d\n" % VERSION
_BLOCKS_BEGIN = 64
_TAIL_BYTES = 8 + 8 + len(_MAGIC)  # length and checksum of the footer, and the magic bytes
_MAX_FOOTER_BYTES = 1 << 26
_INTEGERS_PER_BLOCK = 5  # of the index
_REMEDY = "; delete the file, and it will be packed again from its sources"

Float64s = NDArray[np.float64]
Int64s = NDArray[np.int64]


@dataclass(frozen=True)
class SourceStamp:
    """The state of a source file when it was packed. Its path is relative to the folder of the rows file."""

    path: str
    size: int
    mtime_ns: int


@dataclass(frozen=True)
class Footer:
    """The footer of a rows file, which describes the rows."""

    rows: int
    blocks: int
    entries: int
    has_queries: bool
    n_features: int  # the largest index + 1, even if indices start at 1
    largest_index_file: str  # the source file that contains the largest index
    largest_index_line: int
    has_zero_index: bool
    rounded: bool  # True in files of earlier versions, which rounded values to single precision
    sources: tuple[SourceStamp, ...]


class RowWriter:
    """Writes rows to an open file part by part; only labels and query numbers stay in memory to the end."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._packer = BlockPacker()
        self._labels: list[Float64s] = []
        self._queries: list[Int64s] = []
        self.rows = 0
        file.write(_MAGIC.ljust(_BLOCKS_BEGIN, b"\0"))

    def add(self, part: SvmlightPart) -> None:
        self._packer.add(part.X)
        self._file.write(self._packer.take().data)
        self._labels.append(part.y)
        if part.qid is not None:
            self._queries.append(part.qid)
        self.rows += len(part.y)

    @property
    def has_queries(self) -> bool:
        return bool(self._queries)

    def finish(self, **source_fields: Any) -> None:
        """Write the arrays and the footer; `source_fields` are the footer's fields about the sources."""
        self._packer.finish()
        self._file.write(self._packer.take().data)
        index = self._packer.index
        arrays = {"labels": _concatenate(self._labels, "<f8"), "index": index.astype("<i8")}
        if self.has_queries:
            arrays["queries"] = _concatenate(self._queries, "<i8")
        for name in _list_arrays(self.has_queries):
            self._file.write(arrays[name].data)
        footer = Footer(
            rows=self.rows,
            blocks=len(index) // _INTEGERS_PER_BLOCK,
            entries=self._packer.entries,
            has_queries=self.has_queries,
            rounded=False,
            **source_fields,
        )
        checksums = {name: hexadecimal_checksum(array) for name, array in arrays.items()}
        text = json.dumps({"version": VERSION, **asdict(footer), "checksums": checksums}).encode()
        self._file.write(text + len(text).to_bytes(8, "little"))
        self._file.write(checksum_of(text).to_bytes(8, "little") + _MAGIC)


def _list_arrays(has_queries: bool) -> list[str]:
    """Return the names of the arrays in the order of the file."""
    return ["labels", "queries", "index"] if has_queries else ["labels", "index"]


def _concatenate(arrays: list[Any], dtype: str) -> NDArray[Any]:
    return np.concatenate(arrays or [np.empty(0)]).astype(dtype, copy=False)


class OpenRows:
    """A rows file whose footer has been read and checked."""

    def __init__(self, name: str, file: IO[bytes]) -> None:
        self.name = name
        self._file = file
        self.size = os.fstat(file.fileno()).st_size
        content = self._read_footer()
        self.footer = self._parse_footer(content)
        self._checksums = content.get("checksums")
        self._blocks_end = self._find_blocks_end()

    def error(self, reason: str) -> FormatError:
        return FormatError(self.name, 0, 0, reason + _REMEDY)

    def _read_footer(self) -> dict[str, Any]:
        """Return the JSON object in the footer; check the end of the file and the footer's checksum."""
        if self.size < _BLOCKS_BEGIN + _TAIL_BYTES:
            raise self.error("the rows file has been cut short")
        self._file.seek(self.size - _TAIL_BYTES)
        tail = self._file.read(_TAIL_BYTES)
        length = int.from_bytes(tail[:8], "little")
        if tail[16:] != _MAGIC or length > min(_MAX_FOOTER_BYTES, self.size - _TAIL_BYTES - _BLOCKS_BEGIN):
            raise self.error("the rows file has been cut short or damaged")
        self._footer_begin = self.size - _TAIL_BYTES - length
        self._file.seek(self._footer_begin)
        content = self._file.read(length)
        if checksum_of(content) != int.from_bytes(tail[8:16], "little"):
            raise self.error("the footer is damaged")
        with contextlib.suppress(ValueError, RecursionError):
            footer = json.loads(content)
            if isinstance(footer, dict) and footer.get("version") == VERSION:
                return footer
        raise self.error("the footer is not one of this version")

    def _parse_footer(self, content: dict[str, Any]) -> Footer:
        """Return the footer; check the types and signs of its fields and of its `sources`."""
        try:
            sources = tuple(SourceStamp(**source) for source in content["sources"])
            footer = Footer(**{name: content[name] for name in Footer.__annotations__} | {"sources": sources})
        except (KeyError, TypeError) as error:
            raise self.error("the footer is incomplete") from error
        if not all(_is_valid_field(item, kind) for item, kind in _list_items(footer)):
            raise self.error("the footer has an impossible value")
        return footer

    def _find_blocks_end(self) -> int:
        """Return the offset at which blocks end and arrays begin, computed from the size of the arrays."""
        footer = self.footer
        array_bytes = 8 * (
            footer.rows * (2 if footer.has_queries else 1) + _INTEGERS_PER_BLOCK * footer.blocks
        )
        end = self._footer_begin - array_bytes
        if end < _BLOCKS_BEGIN or end % _BLOCKS_BEGIN:
            raise self.error("the arrays do not fit into the file")
        return end

    def read_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the labels, the index and, if the rows have them, the queries."""
        footer = self.footer
        counts = {"labels": footer.rows, "queries": footer.rows, "index": _INTEGERS_PER_BLOCK * footer.blocks}
        self._file.seek(self._blocks_end)
        arrays: dict[str, NDArray[Any]] = {}
        for name in _list_arrays(footer.has_queries):
            arrays[name] = np.fromfile(self._file, "<f8" if name == "labels" else "<i8", counts[name])
            expected = self._checksums.get(name) if isinstance(self._checksums, dict) else None
            if len(arrays[name]) != counts[name] or expected != hexadecimal_checksum(arrays[name]):
                raise self.error(f"the {name} are damaged")
        if not np.isfinite(arrays["labels"]).all():
            raise self.error("a label is not finite")
        return arrays

    def store(self, index: Int64s, features: int) -> BlockFile:
        """Return the blocks as a matrix with `features` columns."""
        descriptor = self._file.fileno()
        store = BlockFile(
            name_of(self.name), descriptor=descriptor, end=self._blocks_end, features=features, index=index
        )
        if (store.rows, store.entries) != (self.footer.rows, self.footer.entries):
            raise self.error("the footer and the blocks disagree about the rows")
        return store


def _list_items(footer: Footer) -> Iterator[tuple[Any, str]]:
    """Yield the fields of the footer and of its sources, each with the name of its type."""
    for record in (footer, *footer.sources):
        for name, kind in type(record).__annotations__.items():
            if name != "sources":
                yield getattr(record, name), kind


def _is_valid_field(item: Any, kind: str) -> bool:
    if kind == "int":
        return type(item) is int and 0 <= item < 2**63
    return type(item) is {"bool": bool, "str": str}[kind]


def is_rows_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is a rows file, of any version."""
    with open(path, "rb") as file:  # noqa: PTH123 (any PathLike, not only Path)
        return file.read(len(_KIND)) == _KIND


def is_of_this_version(file: IO[bytes]) -> bool:
    return file.read(len(_MAGIC)) == _MAGIC
