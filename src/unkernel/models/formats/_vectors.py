"""The lines of support vectors: ``coefficient ... index:value ...``, one vector per line."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unkernel._core import SvmlightParser
from unkernel.data.rows.csr import CsrRows
from unkernel.errors import FormatError
from unkernel.models.formats._text import (
    LARGEST_INDEX,
    PIECE_BYTES,
    TextLines,
    quote,
    read_numbers,
)

_COMMENT = re.compile(rb"#[^\n]*")
_NAMED_FIELD = re.compile(rb"[A-Za-z_]\w*:\S*")


class Vectors(NamedTuple):
    """Support vectors, their coefficients, and whether the file counts features from 0."""

    matrix: CsrRows
    coefficients: NDArray[np.float64]
    zero_based: bool


class Expected(NamedTuple):
    """The header's statements about the lines of support vectors."""

    vectors: int | None  # None if the header gives no number
    coefficients: int  # per line
    count_name: str  # the header's name for the number of vectors
    comments: bool  # whether a line may have a comment
    max_missing: int = 0  # by how much the header's number may be too large


def read_vectors(text: TextLines, expected: Expected) -> Vectors:
    """Read the rest of a file; no memory is allocated for a number that the header only claims."""
    return _Reader(text, expected).read()


class _Reader:
    """Passes the lines to the native reader, with blank lines in place of the header.

    So the errors of the native reader have the line and column numbers of the file.
    """

    def __init__(self, text: TextLines, expected: Expected) -> None:
        self._text = text
        self._expected = expected
        self._parser = SvmlightParser(text.name, 1, PIECE_BYTES, 0, LARGEST_INDEX)
        self._parser.feed(b"\n" * text.line)
        self._line = text.line  # the last line of the previous blocks
        self._first_coefficients: list[NDArray[np.float64]] = []

    def read(self) -> Vectors:
        for block in self._text.rest():
            self._read_block(block)
            self._line += block.count(b"\n")
        self._parser.finish()
        self._check_too_few()
        zero_based = bool(self._parser.has_zero_index)
        n_features = int(self._parser.largest_index) + (1 if zero_based else 0)
        offsets, columns, values, last, _ = self._parser.take(0 if zero_based else 1)
        coefficients = np.column_stack([*self._stack_first(), last])
        return Vectors(CsrRows.of(offsets, columns, values, max(n_features, 0)), coefficients, zero_based)

    def _read_block(self, block: bytes) -> None:
        if self._expected.comments:
            block = _COMMENT.sub(b"", block)
        elif b"#" in block:
            raise self._error_at(block, block.index(b"#"), "'#' is no part of a support vector")
        if self._expected.coefficients > 1:
            block = self._take_first_coefficients(block)
        if b"qid:" in block:
            self._check_named_field(block)
        before = self._parser.rows
        self._parser.feed(block)
        self._check_too_many(block, before)
        if self._parser.ignored_fields:
            self._check_named_field(block)
        self._check_ascending_indices(block)

    def _check_named_field(self, block: bytes) -> None:
        if (named := _NAMED_FIELD.search(block)) is not None:
            raise self._error_at(block, named.start(), f"{quote(named[0])} is no part of a support vector")

    def _take_first_coefficients(self, block: bytes) -> bytes:
        """Take all but the last coefficient of each line, and return the lines with blanks in their place."""
        extra = self._expected.coefficients - 1
        lines = block.split(b"\n")[:-1]
        words: list[bytes] = []
        filled: list[int] = []
        short: FormatError | None = None
        for number, line in enumerate(lines):
            parts = line.split(None, extra)
            if not parts:
                continue
            if len(parts) <= extra:
                short = self._error_in(number, f"a support vector of this model has {extra + 1} coefficients")
                break
            filled.append(number)
            words += parts[:extra]
            lines[number] = parts[-1].rjust(len(line))
        values, bad = read_numbers(self._text.name, b"\n".join(words))
        if bad is not None:
            number = filled[bad // extra]
            place, reason = self._line + number + 1, "is not a coefficient: it is not a finite number"
            raise self._text.word_error(block.split(b"\n")[number], bad % extra, reason, line=place)
        if short is not None:
            raise short
        self._first_coefficients.append(values.reshape(-1, extra))
        return b"".join(line + b"\n" for line in lines)

    def _stack_first(self) -> list[NDArray[np.float64]]:
        none = np.empty((0, self._expected.coefficients - 1))
        return [np.concatenate([none, *self._first_coefficients])] if none.shape[1] else []

    def _check_too_many(self, block: bytes, before: int) -> None:
        if self._expected.vectors is None or self._parser.rows <= self._expected.vectors:
            return
        filled = [number for number, line in enumerate(block.split(b"\n")) if line.strip()]
        raise self._error_in(
            filled[self._expected.vectors - before],
            f"more support vectors than the {self._expected.vectors} that {self._expected.count_name} says: "
            "correct it, or get or write the file anew",
        )

    def _check_too_few(self) -> None:
        if (
            self._expected.vectors is not None
            and self._parser.rows < self._expected.vectors - self._expected.max_missing
        ):
            raise self._text.error(
                f"{self._parser.rows} support vectors, and {self._expected.count_name} says "
                f"{self._expected.vectors}: the file has been cut short; download or write it again",
                line=self._line,
            )

    def _check_ascending_indices(self, block: bytes) -> None:
        """Check that the indices of a line ascend; other programs rely on this without a check."""
        characters = np.frombuffer(block, dtype=np.uint8)
        colons = np.flatnonzero(characters == ord(":"))
        line_of_colon = np.searchsorted(np.flatnonzero(characters == ord("\n")), colons)
        indices = _number_before(characters, colons)
        descents = (indices[1:] <= indices[:-1]) & (line_of_colon[1:] == line_of_colon[:-1])
        if descents.any():
            begin = int(colons[1:][descents.argmax()])
            while block[begin - 1 : begin].isdigit():
                begin -= 1
            raise self._error_at(block, begin, "the indices of a support vector do not ascend; sort them")

    def _error_at(self, block: bytes, place: int, reason: str) -> FormatError:
        number = block.count(b"\n", 0, place)
        return self._error_in(number, reason, place - block.rfind(b"\n", 0, place))

    def _error_in(self, number: int, reason: str, column: int = 0) -> FormatError:
        """Return an error in a line of the current block, counted from 0."""
        return self._text.error(reason, line=self._line + number + 1, column=column)


def _number_before(characters: NDArray[np.uint8], ends: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return the integers whose digits end before these offsets; the native reader has checked the digits."""
    result = np.zeros(len(ends), dtype=np.int64)
    alive = np.arange(len(ends))
    scale = 1
    for width in range(1, 20):
        digits = characters[ends[alive] - width] - np.uint8(ord("0"))
        is_digit = digits < 10
        alive, digits = alive[is_digit], digits[is_digit]
        if not len(alive):
            break
        result[alive] += digits.astype(np.int64) * scale
        scale *= 10
    return result
