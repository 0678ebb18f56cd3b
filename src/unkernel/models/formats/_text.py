"""Read text files of models: first a header, line by line, then many lines of numbers in blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from unkernel._core import SvmlightParser
from unkernel.data import file_memory_limit
from unkernel.data.files import Source, name_of, read_blocks
from unkernel.errors import FormatError

# Longest header line in bytes. For k classes, LIBSVM writes k(k-1)/2 numbers rho in one line; this limit
# suffices for 1,000 classes.
_LONGEST_HEADER_LINE = 1 << 24
LARGEST_INDEX = 2**62 - 2
PIECE_BYTES = 1 << 17
_ARRAY_BYTES_PER_TEXT_BYTE = 8  # at most: the line '0' of 2 bytes becomes a label and an offset of 16 bytes
_SHOWN_CHARACTERS = 40
_FOREIGN = re.compile(rb"[#\x80-\xff]")  # comments and byte order marks, which the core's reader would skip
_BLANKS_TO_NEWLINES = bytes.maketrans(b" \t\r\v\f", b"\n" * 5)


class TextLines:
    """A plain or compressed file that is read sequentially, with its line numbers.

    Attributes
    ----------
    name : str
        Name of the file in error messages.
    line : int
        Number of the line that was read last.
    """

    def __init__(self, source: Source) -> None:
        self.name = name_of(source)
        self.line = 0
        self._blocks = read_blocks(source)
        self._closing = closing(self._blocks)  # type: ignore[type-var]
        self._text = b""
        self._position = 0

    def __enter__(self) -> TextLines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.__exit__(kind, error, trace)

    def error(self, reason: str, *, line: int | None = None, column: int = 0) -> FormatError:
        """Return an error in the given line, by default in the line that was read last."""
        return FormatError(self.name, self.line if line is None else line, column, reason)

    def word_error(
        self, text: bytes, number: int, reason: str, *, line: int | None = None, before: int = 0
    ) -> FormatError:
        """Return an error at a word of `text`, counted from 0; `before` characters precede the text."""
        match = next(islice(re.finditer(rb"\S+", text), number, None), None)
        word, column = (b"", len(text) + 1) if match is None else (match[0], match.start() + 1)
        return self.error(f"{quote(word)} {reason}", line=line, column=before + column)

    def peek(self) -> bytes:
        """Return the next bytes, at least 64 unless the file ends."""
        while len(self._text) - self._position < 64 and self._read_more():
            pass
        return self._text[self._position : self._position + 64]

    def _read_line(self) -> bytes | None:
        """Return the next line without its end and surrounding blanks; None after the last line."""
        end = self._text.find(b"\n", self._position)
        while end < 0 and self._read_more():
            end = self._text.find(b"\n", self._position)
        if end < 0 and self._position == len(self._text):
            return None
        self.line += 1
        end = len(self._text) if end < 0 else end
        size = end - self._position
        if size > _LONGEST_HEADER_LINE:
            raise self.error(f"a header line of {size} bytes; a model of a thousand classes has shorter ones")
        line = self._text[self._position : end]
        self._position = min(end + 1, len(self._text))
        return line.strip()

    def expect_line(self, description: str) -> bytes:
        """Return the next line; the end of the file is an error."""
        line = self._read_line()
        if line is None:
            raise self.error(
                f"the file ends before its {description}: it has been cut short; get or write it anew"
            )
        return line

    def read_blocks(self) -> Iterator[bytes]:
        """Yield all remaining lines, in blocks of whole lines, each with its newline.

        Memory for the numbers is claimed, because a compressed file may contain far more numbers than its
        size suggests.
        """
        unfinished = self._text[self._position :]
        self._text, self._position = b"", 0
        for block in self._blocks:
            file_memory_limit.claim(_ARRAY_BYTES_PER_TEXT_BYTE * len(block), "the numbers in it")
            end = block.rfind(b"\n") + 1
            if end:
                yield unfinished + block[:end]
                unfinished = block[end:]
            else:
                unfinished += block
        if unfinished:
            yield unfinished if unfinished.endswith(b"\n") else unfinished + b"\n"

    def _read_more(self) -> bool:
        """Read the next block; return False at the end of the file, or if the current line is too long."""
        if len(self._text) - self._position > _LONGEST_HEADER_LINE:
            return False
        block = next(self._blocks, None)
        if block is None:
            return False
        self._text = self._text[self._position :] + block
        self._position = 0
        return True


def read_numbers(name: str, text: bytes) -> tuple[NDArray[np.float64], int | None]:
    """Return the numbers in a text, separated by blanks, and the index of the first invalid word, or None.

    The core's reader checks that the numbers are finite.
    """
    foreign = _FOREIGN.search(text)
    if foreign is not None:
        return np.empty(0), len(text[: foreign.end()].split()) - 1
    parser = SvmlightParser(name, 1, PIECE_BYTES, 0, LARGEST_INDEX)
    one_per_line = re.sub(rb"\n\n+", b"\n", text.strip().translate(_BLANKS_TO_NEWLINES))
    try:
        parser.feed(one_per_line)
        parser.finish()
    except FormatError as error:
        return np.empty(0), error.line - 1
    _offsets, _columns, _values, labels, _queries = parser.take(0)
    return np.asarray(labels), None


def quote(text: bytes) -> str:
    """Return bytes of a file in quotation marks for an error message."""
    short = text[:_SHOWN_CHARACTERS].decode("ascii", "backslashreplace")
    return ascii(short) + ("..." if len(text) > _SHOWN_CHARACTERS else "")
