"""The types of columns in files that hold nothing but text, and what their cells stand for.

An empty cell is a missing value. A column is of numbers if all its cells are, but for missing ones, which may
also be written as ``NA`` or ``NaN``; numbers that begin with a zero, as postal codes do, are strings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

TYPES = ("number", "boolean", "string")
MISSING_NUMBERS = ("NA", "N/A", "NaN", "nan", "null", "NULL", "None", "#N/A")
BOOLEANS = {"true": True, "false": False, "True": True, "False": False, "TRUE": True, "FALSE": False}
ZERO_FIRST = r"^\s*[-+]?0[0-9]"
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*|\s*[-+]?inf(inity)?\s*", re.ASCII | re.I)
_SHOWN = 40  # characters of a cell in a message


def type_of(cells: Iterable[str]) -> str:
    """The type of a column."""
    there = [cell for cell in cells if cell]
    words = set(there) - set(MISSING_NUMBERS)
    if not words:
        return "string" if not there else "number"
    if words <= set(BOOLEANS):
        return "boolean" if len(words) == len(set(there)) else "string"
    zero_first = re.compile(ZERO_FIRST, re.ASCII)
    numbers = all(_NUMBER.fullmatch(word) and not zero_first.match(word) for word in words)
    return "number" if numbers else "string"


def value_of(cell: str, kind: str) -> Any:
    """What a cell stands for; a ``ValueError`` if it is not of the column's type."""
    if not cell:
        return None
    if kind == "string":
        return cell
    if kind == "boolean":
        if cell not in BOOLEANS:
            raise ValueError(f"expected true or false, got {shown(cell)}")
        return BOOLEANS[cell]
    if cell in MISSING_NUMBERS:
        return None
    if not _NUMBER.fullmatch(cell):
        raise ValueError(f"expected a number, got {shown(cell)}")
    return float(cell)


def shown(cell: str) -> str:
    """A cell for a message, which is short even where the cell is not."""
    return repr(cell if len(cell) <= _SHOWN else f"{cell[:_SHOWN]}…")


def values_of(cells: Sequence[str], kind: str) -> list[Any]:
    """The values of a column."""
    return [value_of(cell, kind) for cell in cells]
