"""The allowed differences: values that a format cannot express, or expresses as another value.

A format's own reader defines a record: pandas for frames, pyarrow for tables, Python's json for JSON. The
record that it returns must have the answer of ``predict_one``. These are the additional rules.
"""

from __future__ import annotations

import datetime as dt
import math
from enum import Enum
from typing import Any


class Limit(Enum):
    """Reasons why some interfaces are not used for a record."""

    LIBRARY = "pandas, Dask or pyarrow does not take the values, or not beside each other in one column"
    NO_COLUMNS = "a table without columns has no records"
    STRUCT = "a dict is a struct of Arrow's, which is refused by the type of its column and not by its value"
    LIST = "a list of Arrow's that holds no strings is refused as such, whatever its column is"
    INFINITY = "JSON has no infinity"
    LIST_OF_INPUTS = "a list of JSON is several inputs, so a text without columns cannot be a list"
    NOT_EXPLAINED = "the page explains its answers, and some models cannot be explained at all"
    OTHER_INPUT = "a tensor that the model does not have is refused, even where unknown columns are ignored"
    TENSOR_TYPE = "a tensor holds numbers or texts, as the model's metadata says, and no flags or lists"
    TENSOR_BYTES = "a tensor of bytes has no null among its texts, and its numbers are floats"
    CELL_TYPE = "a cell of CSV is read as the type of its column, so a number in a column of texts is text"
    CSV_TEXT = "CSV is UTF-8, which has no lone surrogates"


class CannotExpressError(Exception):
    """An interface's format cannot express a record."""

    def __init__(self, limit: Limit) -> None:
        super().__init__(limit.value)
        self.limit = limit


def json_value(value: Any) -> Any:
    """Return a value as read back from JSON: None for NaN, and dates as strings.

    A model that knows NaN but not None treats null as NaN.
    """
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, float) and math.isinf(value):
        raise CannotExpressError(Limit.INFINITY)
    return value.isoformat() if isinstance(value, dt.date) else value


def csv_value(value: Any, kind: str | None) -> Any:
    """Return a value as read from a column of CSV: an empty cell stands for None, NaN and the empty text."""
    value = value.isoformat() if isinstance(value, dt.date) else value
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, str) if kind != "number" else type(value) in (int, float):
        if isinstance(value, str) and not is_utf8(value):
            raise CannotExpressError(Limit.CSV_TEXT)
        return value
    raise CannotExpressError(Limit.CELL_TYPE)


def is_utf8(text: str) -> bool:
    """Return whether a text has no lone surrogates."""
    return not any("\ud800" <= character <= "\udfff" for character in text)
