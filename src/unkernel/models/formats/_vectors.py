"""Read lines of support vectors: ``coefficient ... index:value ...``, one vector per line."""

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
    """Properties of the lines of support vectors, according to the header."""

    vectors: int | None  # number of vectors; None if the header does not contain this number
    coefficients: int  # number of coefficients per line
    count_name: str  # what the header calls the number of vectors
    comments: bool  # whether a line may have a comment
    max_missing: int = 0  # how many more vectors the header may claim than there are


def read_vectors(text: TextLines, expected: Expected) -> Vectors:
    """Read the lines after the header; a wrong number of vectors in the header allocates no memory."""
    return _Reader(text, expected).read()


class _Reader:
    """Passes the lines to the core's reader, after blank lines in place of the header.

    Because of the blank lines, errors of the core's reader have the line numbers of the file.
    """

    def __init__(self, text: TextLines, expected: Expected) -> None:
        self._text = text
        self._expected = expected
        self._parser = SvmlightParser(text.name, 1, PIECE_BYTES, 0, LARGEST_INDEX)
        self._parser.feed(b"\n" * text.line)
        self._line = text.line  # number of the last line before the current block
        self._first_coefficients: list[NDArray[np.float64]] = []

    def read(self) -> Vectors:
        for block in self._text.read_blocks():
            self._read_block(block)
            self._line += block.count(b"\n")
        self._parser.finish()
        self._check_too_few()
        zero_based = bool(self._parser.has_zero_index)
        n_features = int(self._parser.largest_index) + (1 if zero_based else 0)
        offsets, columns, values, last, _ = self._parser.take(0 if zero_based else 1)
        coefficients = np.column_stack([*self._stack_first_coefficients(), last])
        return Vectors(CsrRows.of(offsets, columns, values, max(n_features, 0)), coefficients, zero_based)

    def _read_block(self, block: bytes) -> None:
        if self._expected.comments:
            block = _COMMENT.sub(b"", block)
        elif b"#" in block:
            raise self._new_error_at(block, block.index(b"#"), "'#' is no part of a support vector")
        if self._expected.coefficients > 1:
            block = self._extract_first_coefficients(block)
        if b"qid:" in block:
            self._check_named_field(block)
        rows_before = self._parser.rows
        self._parser.feed(block)
        self._check_too_many(block, rows_before)
        if self._parser.ignored_fields:
            self._check_named_field(block)
        self._check_ascending_indices(block)

    def _check_named_field(self, block: bytes) -> None:
        if (named := _NAMED_FIELD.search(block)) is not None:
            raise self._new_error_at(
                block, named.start(), f"{quote(named[0])} is no part of a support vector"
            )

    def _extract_first_coefficients(self, block: bytes) -> bytes:
        """Read all coefficients of each line except the last; return the lines with blanks in their place."""
        n_first = self._expected.coefficients - 1
        lines = block.split(b"\n")[:-1]
        words: list[bytes] = []
        nonblank_lines: list[int] = []
        missing_error: FormatError | None = None
        for number, line in enumerate(lines):
            parts = line.split(None, n_first)
            if not parts:
                continue
            if len(parts) <= n_first:
                missing_error = self._new_error_in_line(
                    number, f"a support vector of this model has {n_first + 1} coefficients"
                )
                break
            nonblank_lines.append(number)
            words += parts[:n_first]
            lines[number] = parts[-1].rjust(len(line))
        values, bad_index = read_numbers(self._text.name, b"\n".join(words))
        if bad_index is not None:
            number = nonblank_lines[bad_index // n_first]
            line_number, reason = self._line + number + 1, "is not a coefficient: it is not a finite number"
            raise self._text.word_error(
                block.split(b"\n")[number], bad_index % n_first, reason, line=line_number
            )
        if missing_error is not None:
            raise missing_error
        self._first_coefficients.append(values.reshape(-1, n_first))
        return b"".join(line + b"\n" for line in lines)

    def _stack_first_coefficients(self) -> list[NDArray[np.float64]]:
        if self._expected.coefficients == 1:
            return []
        empty = np.empty((0, self._expected.coefficients - 1))
        return [np.concatenate([empty, *self._first_coefficients])]

    def _check_too_many(self, block: bytes, rows_before: int) -> None:
        if self._expected.vectors is None or self._parser.rows <= self._expected.vectors:
            return
        nonblank_lines = [number for number, line in enumerate(block.split(b"\n")) if line.strip()]
        raise self._new_error_in_line(
            nonblank_lines[self._expected.vectors - rows_before],
            f"more support vectors than the {self._expected.vectors} that {self._expected.count_name} says: "
            "correct it, or get or write the file anew",
        )

    def _check_too_few(self) -> None:
        if self._expected.vectors is None:
            return
        if self._parser.rows < self._expected.vectors - self._expected.max_missing:
            raise self._text.error(
                f"{self._parser.rows} support vectors, and {self._expected.count_name} says "
                f"{self._expected.vectors}: the file has been cut short; download or write it again",
                line=self._line,
            )

    def _check_ascending_indices(self, block: bytes) -> None:
        """Check that the indices of each line ascend. Other programs require this but do not check it."""
        characters = np.frombuffer(block, dtype=np.uint8)
        colons = np.flatnonzero(characters == ord(":"))
        line_of_colon = np.searchsorted(np.flatnonzero(characters == ord("\n")), colons)
        indices = _parse_numbers_before(characters, colons)
        descents = (indices[1:] <= indices[:-1]) & (line_of_colon[1:] == line_of_colon[:-1])
        if descents.any():
            begin = int(colons[1:][descents.argmax()])
            while block[begin - 1 : begin].isdigit():
                begin -= 1
            raise self._new_error_at(block, begin, "the indices of a support vector do not ascend; sort them")

    def _new_error_at(self, block: bytes, offset: int, reason: str) -> FormatError:
        number = block.count(b"\n", 0, offset)
        return self._new_error_in_line(number, reason, offset - block.rfind(b"\n", 0, offset))

    def _new_error_in_line(self, number: int, reason: str, column: int = 0) -> FormatError:
        """Return an error in a line of the current block; lines are counted from 0."""
        return self._text.error(reason, line=self._line + number + 1, column=column)


def _parse_numbers_before(characters: NDArray[np.uint8], ends: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return the integers whose last digits precede `ends`; the core's reader has checked the digits."""
    result = np.zeros(len(ends), dtype=np.int64)
    active = np.arange(len(ends))
    scale = 1
    for width in range(1, 20):
        digits = characters[ends[active] - width] - np.uint8(ord("0"))
        is_digit = digits < 10
        active, digits = active[is_digit], digits[is_digit]
        if not len(active):
            break
        result[active] += digits.astype(np.int64) * scale
        scale *= 10
    return result
