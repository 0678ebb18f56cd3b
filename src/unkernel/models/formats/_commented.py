"""Headers of lines ``value # description`` in a fixed order, as in files of SVMlight and TinySVM."""

from __future__ import annotations

import numpy as np

from unkernel.models.formats._text import TextLines, quote, read_numbers

_LARGEST_COUNT = 2**53


class CommentedHeader:
    """Reads one line after another, each identified by words in its comment."""

    def __init__(self, text: TextLines) -> None:
        self._text = text

    def words(self, description: str) -> bytes:
        """Return the value of the next line, whose comment must match."""
        line = self._text.expect(f"line about the {description}")
        value, mark, comment = line.partition(b"#")
        if not mark or description.encode() not in comment:
            raise self._text.error(f"expected a line 'value # {description}', got {quote(line)}")
        return value.strip()

    def reals(self, description: str, least: int = 1, most: int = 1) -> list[float]:
        """Return the numbers of the next line."""
        value = self.words(description)
        values, bad = read_numbers(self._text.name, value)
        if bad is not None:
            raise self._text.word_error(value, bad, f"is not a finite number, as the {description} is")
        if not least <= len(values) <= most:
            raise self._text.error(f"the {description} is one number, got {quote(value)}")
        return [float(number) for number in values]

    def real(self, description: str) -> float:
        """Return the number of the next line."""
        return self.reals(description)[0]

    def integer(self, description: str, least: int, *, most_numbers: int = 1) -> int:
        """Return the integer of the next line, or the first of several numbers."""
        value = self.reals(description, most=most_numbers)[0]
        if value != np.floor(value) or not least <= value <= _LARGEST_COUNT:
            raise self._text.error(
                f"the {description} is an integer of at least {least}, got {value!r}", column=1
            )
        return int(value)
