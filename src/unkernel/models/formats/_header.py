"""Read headers of lines ``key value ...``, as in files of LIBSVM and LIBLINEAR."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unkernel.errors import FormatError
from unkernel.models.formats._text import TextLines, quote, read_numbers

LARGEST_COUNT = 2**53  # a double represents every integer up to this one exactly


class _Entry(NamedTuple):
    line: int
    key_width: int
    value: bytes


class KeyedHeader:
    """The lines before the line ``end``. Each allowed key may occur once.

    Parameters
    ----------
    text : TextLines
    program : str
        The program that wrote the file, for error messages.
    allowed_keys : collection of bytes
        The allowed keys.
    end : bytes
        The line that ends the header.
    """

    def __init__(self, text: TextLines, program: str, allowed_keys: Collection[bytes], end: bytes) -> None:
        self._text = text
        self._program = program
        self._entries: dict[bytes, _Entry] = {}
        while (line := text.expect_line(f"line {quote(end)}")) != end:
            if line:
                self._add(line, allowed_keys)

    def _add(self, line: bytes, allowed_keys: Collection[bytes]) -> None:
        key = line.split(None, 1)[0]
        if key not in allowed_keys:
            raise self._text.error(
                f"{quote(key)} is not a line of {self._program} models; expected one of "
                + ", ".join(sorted(word.decode() for word in allowed_keys)),
                column=1,
            )
        if key in self._entries:
            raise self._text.error(f"a second line {quote(key)}; keep one of them", column=1)
        self._entries[key] = _Entry(self._text.line, len(key), line[len(key) :])

    def __contains__(self, key: bytes) -> bool:
        return key in self._entries

    def line_of(self, key: bytes) -> int:
        """Return the number of the line with a key; 0 if there is no such line."""
        entry = self._entries.get(key)
        return entry.line if entry else 0

    def get_choice(self, key: bytes, choices: Collection[str]) -> str:
        """Return the value of a key, which must be one of `choices`."""
        entry = self._get_entry(key)
        value = entry.value.strip()
        if value.decode("ascii", "replace") not in choices:
            raise self._text.error(
                f"{quote(value)} is no {key.decode()} of {self._program}; expected one of "
                + ", ".join(choices),
                line=entry.line,
                column=entry.key_width + 2,
            )
        return value.decode()

    def get_reals(self, key: bytes, count: int, suffix: str = "") -> NDArray[np.float64]:
        """Return the `count` numbers of a key; `suffix` ends the message for a wrong count."""
        entry = self._get_entry(key)
        values, bad_index = read_numbers(self._text.name, entry.value)
        if bad_index is not None:
            raise self._word_error(entry, bad_index, "is not a finite number")
        if len(values) != count:
            raise self._text.error(
                f"{quote(key)} has {len(values)} numbers, and {count} are needed{suffix}", line=entry.line
            )
        return values

    def get_integers(self, key: bytes, count: int, minimum: int, suffix: str = "") -> NDArray[np.int64]:
        """Return the integers of a key, which must be at least `minimum`."""
        values = self.get_reals(key, count, suffix)
        is_integer = values == np.floor(values)
        wrong_indices = np.flatnonzero(~is_integer | (values < minimum) | (np.abs(values) > LARGEST_COUNT))
        if len(wrong_indices):
            raise self._word_error(
                self._get_entry(key), int(wrong_indices[0]), f"is not an integer of at least {minimum}"
            )
        return values.astype(np.int64)

    def get_real(self, key: bytes) -> float:
        """Return the single number of a key."""
        return float(self.get_reals(key, 1)[0])

    def get_integer(self, key: bytes, minimum: int) -> int:
        """Return the single integer of a key."""
        return int(self.get_integers(key, 1, minimum)[0])

    def _get_entry(self, key: bytes) -> _Entry:
        entry = self._entries.get(key)
        if entry is None:
            raise self._text.error(
                f"the header has no line {quote(key)}: add it, or get or write the file anew", line=0
            )
        return entry

    def _word_error(self, entry: _Entry, number: int, reason: str) -> FormatError:
        return self._text.word_error(entry.value, number, reason, line=entry.line, before=entry.key_width)
