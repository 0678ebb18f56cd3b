"""The ``.rows`` file: packed rows that passes read one block at a time; docs/formats/rows.md describes it.

Nothing in such a file is believed: what it says of itself is checked against its size and its checksums here,
the index and the blocks are checked by the core.
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
_KIND = b"unkernel rows "  # whatever the version
_MAGIC = _KIND + b"%d\n" % VERSION
_FIRST_BLOCK = 64
_TAIL_BYTES = 8 + 8 + len(_MAGIC)  # the footer's length and checksum
_LARGEST_FOOTER = 1 << 26
_NUMBERS_A_BLOCK = 5
_REMEDY = "; delete the file, and it is made anew from its sources"

Float64s = NDArray[np.float64]
Int64s = NDArray[np.int64]


@dataclass(frozen=True)
class SourceStamp:
    """A file that rows came from, as it was then. The path is relative to the folder of the rows."""

    path: str
    size: int
    mtime_ns: int


@dataclass(frozen=True)
class Facts:
    """What the footer says about the rows."""

    rows: int
    blocks: int
    entries: int
    has_queries: bool
    n_features: int  # the largest index + 1, whether indices count from 0 or from 1
    largest_index_file: str  # where that index is
    largest_index_line: int
    has_zero_index: bool
    rounded: bool  # values that single precision cannot hold were rounded: earlier versions did so
    sources: tuple[SourceStamp, ...]


class RowWriter:
    """Writes rows to an open file as they come; only labels and queries wait in memory for the end."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._packer = BlockPacker()
        self._labels: list[Float64s] = []
        self._queries: list[Int64s] = []
        self.rows = 0
        file.write(_MAGIC.ljust(_FIRST_BLOCK, b"\0"))

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

    def finish(self, **facts: Any) -> None:
        """Write what follows the blocks; `facts` are those that the rows do not tell themselves."""
        self._packer.finish()
        self._file.write(self._packer.take().data)
        index = self._packer.index
        arrays = {"labels": _joined(self._labels, "<f8"), "index": index.astype("<i8")}
        if self.has_queries:
            arrays["queries"] = _joined(self._queries, "<i8")
        for name in _array_names(self.has_queries):
            self._file.write(arrays[name].data)
        whole = Facts(
            rows=self.rows,
            blocks=len(index) // _NUMBERS_A_BLOCK,
            entries=self._packer.entries,
            has_queries=self.has_queries,
            rounded=False,
            **facts,
        )
        sums = {name: hexadecimal_checksum(array) for name, array in arrays.items()}
        footer = json.dumps({"version": VERSION, **asdict(whole), "checksums": sums}).encode()
        self._file.write(footer + len(footer).to_bytes(8, "little"))
        self._file.write(checksum_of(footer).to_bytes(8, "little") + _MAGIC)


def _array_names(has_queries: bool) -> list[str]:
    """In the order in which they lie in the file."""
    return ["labels", "queries", "index"] if has_queries else ["labels", "index"]


def _joined(arrays: list[Any], dtype: str) -> NDArray[Any]:
    return np.concatenate(arrays or [np.empty(0)]).astype(dtype, copy=False)


class OpenRows:
    """A rows file whose footer and arrays have been read and found sound."""

    def __init__(self, name: str, file: IO[bytes]) -> None:
        self.name = name
        self._file = file
        self.size = os.fstat(file.fileno()).st_size
        footer = self._read_footer()
        self.facts = self._read_facts(footer)
        self._sums = footer.get("checksums")
        self._end = self._end_of_blocks()

    def error(self, reason: str) -> FormatError:
        return FormatError(self.name, 0, 0, reason + _REMEDY)

    def _read_footer(self) -> dict[str, Any]:
        if self.size < _FIRST_BLOCK + _TAIL_BYTES:
            raise self.error("the rows file has been cut short")
        self._file.seek(self.size - _TAIL_BYTES)
        tail = self._file.read(_TAIL_BYTES)
        length = int.from_bytes(tail[:8], "little")
        if tail[16:] != _MAGIC or length > min(_LARGEST_FOOTER, self.size - _TAIL_BYTES - _FIRST_BLOCK):
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

    def _read_facts(self, footer: dict[str, Any]) -> Facts:
        """Everything of its type and not negative; `sources` are made of such things as well."""
        try:
            sources = tuple(SourceStamp(**source) for source in footer["sources"])
            facts = Facts(**{name: footer[name] for name in Facts.__annotations__} | {"sources": sources})
        except (KeyError, TypeError) as error:
            raise self.error("the footer lacks something") from error
        if not all(_is_proper(item, kind) for item, kind in _typed_items(facts)):
            raise self.error("the footer says something that cannot be")
        return facts

    def _end_of_blocks(self) -> int:
        """Where the arrays begin. All but the blocks is of a known size."""
        facts = self.facts
        array_bytes = 8 * (facts.rows * (2 if facts.has_queries else 1) + _NUMBERS_A_BLOCK * facts.blocks)
        end = self._footer_begin - array_bytes
        if end < _FIRST_BLOCK or end % _FIRST_BLOCK:
            raise self.error("the arrays do not fit into the file")
        return end

    def read_arrays(self) -> dict[str, NDArray[Any]]:
        """Labels, index and, where there are any, queries."""
        facts = self.facts
        counts = {"labels": facts.rows, "queries": facts.rows, "index": _NUMBERS_A_BLOCK * facts.blocks}
        self._file.seek(self._end)
        arrays: dict[str, NDArray[Any]] = {}
        for name in _array_names(facts.has_queries):
            arrays[name] = np.fromfile(self._file, "<f8" if name == "labels" else "<i8", counts[name])
            known = self._sums.get(name) if isinstance(self._sums, dict) else None
            if len(arrays[name]) != counts[name] or known != hexadecimal_checksum(arrays[name]):
                raise self.error(f"the {name} are damaged")
        if not np.isfinite(arrays["labels"]).all():
            raise self.error("a label is not finite")
        return arrays

    def store(self, index: Int64s, features: int) -> BlockFile:
        """The blocks, for a matrix of that many columns."""
        descriptor = self._file.fileno()
        store = BlockFile(
            name_of(self.name), descriptor=descriptor, end=self._end, features=features, index=index
        )
        if (store.rows, store.entries) != (self.facts.rows, self.facts.entries):
            raise self.error("the footer and the blocks disagree about the rows")
        return store


def _typed_items(facts: Facts) -> Iterator[tuple[Any, str]]:
    for record in (facts, *facts.sources):
        for name, kind in type(record).__annotations__.items():
            if name != "sources":
                yield getattr(record, name), kind


def _is_proper(item: Any, kind: str) -> bool:
    if kind == "int":
        return type(item) is int and 0 <= item < 2**63
    return type(item) is {"bool": bool, "str": str}[kind]


def is_rows_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as rows files of any version do."""
    with open(path, "rb") as file:  # noqa: PTH123 (any PathLike, not only Path)
        return file.read(len(_KIND)) == _KIND


def is_of_this_version(file: IO[bytes]) -> bool:
    return file.read(len(_MAGIC)) == _MAGIC
