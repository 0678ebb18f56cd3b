"""Read headers of lines ``value # description`` in a fixed order, as in files of SVMlight and TinySVM."""

from __future__ import annotations

import numpy as np

from unkernel.models.formats._text import TextLines, quote, read_numbers

_LARGEST_COUNT = 2**53


class CommentedHeader:
    """Reads header lines one by one; the comment of each line must contain the expected description."""

    def __init__(self, text: TextLines) -> None:
        self._text = text

    def read_words(self, description: str) -> bytes:
        """Return the value of the next line, whose comment must contain the description."""
        line = self._text.expect_line(f"line about the {description}")
        value, mark, comment = line.partition(b"#")
        if not mark or description.encode() not in comment:
            raise self._text.error(f"expected a line 'value # {description}', got {quote(line)}")
        return value.strip()

    def read_reals(self, description: str, min_count: int = 1, max_count: int = 1) -> list[float]:
        """Return the numbers of the next line."""
        value = self.read_words(description)
        values, bad_index = read_numbers(self._text.name, value)
        if bad_index is not None:
            raise self._text.word_error(value, bad_index, f"is not a finite number, as the {description} is")
        if not min_count <= len(values) <= max_count:
            raise self._text.error(f"the {description} is one number, got {quote(value)}")
        return [float(number) for number in values]

    def read_real(self, description: str) -> float:
        """Return the number of the next line."""
        return self.read_reals(description)[0]

    def read_integer(self, description: str, minimum: int, *, max_count: int = 1) -> int:
        """Return the integer of the next line, or the first of several numbers."""
        value = self.read_reals(description, max_count=max_count)[0]
        if value != np.floor(value) or not minimum <= value <= _LARGEST_COUNT:
            raise self._text.error(
                f"the {description} is an integer of at least {minimum}, got {value!r}", column=1
            )
        return int(value)
