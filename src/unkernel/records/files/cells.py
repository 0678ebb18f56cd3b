"""Infer the types of columns in text files, and parse the values of cells.

An empty cell is a missing value. A column has the type of numbers if all of its cells are numbers or missing;
in such a column, ``NA`` and ``NaN`` also count as missing. Digits that begin with a zero, such as postal
codes, are strings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

TOO_LARGE = "the number is larger than any float"  # models give the same message
TYPES = ("number", "boolean", "string")
MISSING_NUMBERS = ("NA", "N/A", "NaN", "nan", "null", "NULL", "None", "#N/A")
BOOLEANS = {"true": True, "false": False, "True": True, "False": False, "TRUE": True, "FALSE": False}
ZERO_FIRST = r"^\s*[-+]?0[0-9]"
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*|\s*[-+]?inf(inity)?\s*", re.ASCII | re.I)
_ZERO_FIRST = re.compile(ZERO_FIRST, re.ASCII)
_MAX_QUOTED_LENGTH = 40  # in characters


def infer_type(cells: Iterable[str]) -> str:
    """Return the type of a column (one of ``TYPES``), inferred from its cells."""
    nonempty = [cell for cell in cells if cell]
    distinct = set(nonempty) - set(MISSING_NUMBERS)
    if not distinct:
        return "string" if not nonempty else "number"
    if distinct <= set(BOOLEANS):
        return "boolean" if len(distinct) == len(set(nonempty)) else "string"
    return "number" if all(map(is_number, distinct)) else "string"


def is_number(cell: str) -> bool:
    """Return whether a cell is a number; codes that begin with a zero, such as 01234, are not."""
    return _NUMBER.fullmatch(cell) is not None and _ZERO_FIRST.match(cell) is None


def is_missing(value: Any) -> bool:
    """Return whether a value is missing, or is a cell such as "NA" that represents a missing number."""
    return value is None or (isinstance(value, str) and (not value or value in MISSING_NUMBERS))


def parse_cell(cell: str, kind: str) -> Any:
    """Return the value of a cell; raise a ``ValueError`` if it does not have the column's type."""
    if not cell:
        return None
    if kind == "string":
        return cell
    if kind == "boolean":
        if cell not in BOOLEANS:
            raise ValueError(f"expected true or false, got {quote(cell)}")
        return BOOLEANS[cell]
    if cell in MISSING_NUMBERS:
        return None
    if not _NUMBER.fullmatch(cell):
        raise ValueError(f"expected a number, got {quote(cell)}")
    value = float(cell)
    if math.isinf(value) and "inf" not in cell.lower():
        raise ValueError(TOO_LARGE)
    return value


def quote(cell: str) -> str:
    """Return a cell in quotation marks for a message, shortened if it is long."""
    return repr(cell if len(cell) <= _MAX_QUOTED_LENGTH else f"{cell[:_MAX_QUOTED_LENGTH]}…")


def parse_cells(cells: Sequence[str], kind: str) -> list[Any]:
    return [parse_cell(cell, kind) for cell in cells]
