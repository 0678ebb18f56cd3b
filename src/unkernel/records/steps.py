"""Make the steps of plans. The table of a step describes its operation; see :class:`PlanStep`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unkernel.records.plan_step import PlanStep

# The code of a category is the index of its feature, or one of the following.
IGNORED = -1  # the code of a category without a feature
FORBIDDEN = -2  # the code of a category that raises an error
# The functions of steps of kind "function", and whether they map 0 to 0. They are computed in
# cpp/unkernel/records/function_steps.cpp.
KEEPS_ZERO = {
    "absolute": True,
    "arcsinh": True,
    "arctan": True,
    "cbrt": True,
    "ceil": True,
    "cos": False,
    "degrees": True,
    "exp": False,
    "exp2": False,
    "expm1": True,
    "floor": True,
    "log": False,
    "log10": False,
    "log1p": True,
    "log2": False,
    "negative": True,
    "radians": True,
    "reciprocal": False,
    "rint": True,
    "sign": True,
    "sin": True,
    "sqrt": True,
    "square": True,
    "tanh": True,
    "trunc": True,
}
DATE_PARTS = ("year", "month", "day", "weekday", "hour")  # numbered as in cpp/unkernel/records/dates.hpp


def int32(values: Iterable[int]) -> NDArray[np.int32]:
    """Return an int32 array, which is the type of indices in the core."""
    return np.fromiter(values, np.int32)


def make_string_table(words: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Concatenate strings in UTF-8; return the bytes and the end of each string."""
    encoded = [word.encode("utf-8") for word in words]
    ends = np.cumsum([len(word) for word in encoded], dtype=np.int64) if encoded else np.empty(0, np.int64)
    return np.frombuffer(b"".join(encoded), np.uint8).copy(), ends


def split_strings(text: NDArray[np.uint8], ends: NDArray[np.int64]) -> list[str]:
    """Return the strings of a string table."""
    content, last = text.tobytes(), ends.tolist()
    return [content[begin:end].decode("utf-8") for begin, end in zip([0, *last], last, strict=False)]


def categories(
    codes: dict[Any, int],
    *,
    unknown: int,
    absent: int | None = None,
    values: NDArray[np.float64] | None = None,
) -> dict[str, Any]:
    """Return the table of a column's categories.

    Parameters
    ----------
    codes : dict
        The code of each category: a string, a number, None or NaN.
    unknown : int
        The code of values that are not in `codes`.
    absent : int, default=None
        The code of a record that lacks the column; by default, the code of the category None.
    values : ndarray, default=None
        The value of each code, for steps of kind ``"ordinal"``.
    """
    strings = [key for key in codes if isinstance(key, str)]
    numbers = sorted(
        {float(key): code for key, code in codes.items() if _is_number(key) and not np.isnan(key)}.items()
    )
    nan = next((code for key, code in codes.items() if _is_number(key) and np.isnan(key)), unknown)
    none = codes.get(None, unknown)
    words, ends = make_string_table(strings)
    return {
        "strings": words,
        "string_ends": ends,
        "string_codes": int32(codes[key] for key in strings),
        "numbers": np.array([number for number, _ in numbers], np.float64),
        "number_codes": int32(code for _, code in numbers),
        "none": int(none),
        "nan": int(nan),
        "absent": int(none if absent is None else absent),
        "unknown": int(unknown),
    } | ({} if values is None else {"values": values})


def _is_number(key: Any) -> bool:
    return isinstance(key, (int, float, np.number, np.bool_)) and not isinstance(key, str)


def one_hot(columns: Sequence[int], tables: list[dict[str, Any]], names: Sequence[str]) -> PlanStep:
    """Make a step with one feature per category."""
    return PlanStep("one_hot", {"columns": int32(columns), "categories": tables, "width": len(names)}, names)


def numbers(columns: Sequence[int], names: Sequence[str]) -> PlanStep:
    """Make a step that reads the numbers of columns."""
    return PlanStep("numbers", {"columns": int32(columns)}, names)


def dates(columns: Sequence[int], parts: Sequence[int], names: Sequence[str]) -> PlanStep:
    """Make a step that reads parts of dates; `parts` has indices of ``DATE_PARTS``."""
    return PlanStep("dates", {"columns": int32(columns), "parts": int32(parts)}, names)


def bins(
    source: int,
    edges: Sequence[NDArray[np.float64]],
    missing: Sequence[int],
    names: Sequence[str],
    *,
    columns: Sequence[str],
    one_hot: bool = True,
) -> PlanStep:
    """Make a step that finds the interval of each number. The code for NaN of column k is ``missing[k]``."""
    begins = np.cumsum([0, *(len(column_edges) for column_edges in edges)])
    table = {
        "input": source,
        "edges": np.concatenate([*edges, np.empty(0)]).astype(np.float64),
        "begins": begins.astype(np.int32),
        "missing": int32(missing),
        "one_hot": one_hot,
        "names": list(columns),
    }
    return PlanStep("bins", table, names)


def scale(source: int, names: Sequence[str], **parts: Any) -> PlanStep:
    """Make a step ``((x - subtract) / divide) * multiply + add``, clipped to [least, most]."""
    table: dict[str, Any] = {"input": source}
    for part in ("subtract", "divide", "multiply", "add"):
        values = parts.get(part)
        table[part] = np.empty(0) if values is None else np.ascontiguousarray(values, dtype=np.float64)
    return PlanStep("scale", table | {"least": parts.get("least"), "most": parts.get("most")}, names)


def concatenate(sources: Sequence[int], names: Sequence[str]) -> PlanStep:
    """Make a step that concatenates the vectors of earlier steps."""
    return PlanStep("concatenate", {"inputs": int32(sources)}, names)


def impute(source: int, fill: ArrayLike, names: Sequence[str], missing: float = float("nan")) -> PlanStep:
    """Make a step that replaces missing numbers."""
    table = {"input": source, "missing": float(missing), "fill": np.asarray(fill, dtype=np.float64)}
    return PlanStep("impute", table, names)


def indicate(
    source: int, columns: Sequence[int], names: Sequence[str], missing: float = float("nan")
) -> PlanStep:
    """Make a step whose features are 1 if the number of a column is missing."""
    return PlanStep(
        "indicate", {"input": source, "missing": float(missing), "indicated": int32(columns)}, names
    )


def snap(
    source: int,
    points: Sequence[NDArray[np.float64]],
    tolerances: Sequence[NDArray[np.float64]],
    names: Sequence[str],
) -> PlanStep:
    """Make a step that moves numbers to the nearest point of their columns, if it is within its tolerance."""
    table = {
        "input": source,
        "points": np.concatenate([*points, np.empty(0)]),
        "begins": np.cumsum([0, *map(len, points)]).astype(np.int32),
        "tolerances": np.concatenate([*tolerances, np.empty(0)]),
    }
    return PlanStep("snap", table, names)


def products(source: int, factors: Sequence[Sequence[int]], names: Sequence[str]) -> PlanStep:
    """Make a step that multiplies features; `factors` lists the features of each product."""
    begins = np.cumsum([0, *(len(columns) for columns in factors)])
    table = {
        "input": source,
        "begins": begins.astype(np.int32),
        "factors": int32(column for columns in factors for column in columns),
    }
    return PlanStep("products", table, names)


def vocabulary(
    words: Sequence[str], ids: Sequence[int] | None = None, width: int | None = None
) -> dict[str, Any]:
    """Return the part of a step's table that maps strings to features."""
    text, ends = make_string_table(words)
    return {
        "hashed": False,
        "alternate_sign": False,
        "words": text,
        "word_ends": ends,
        "ids": int32(range(len(words)) if ids is None else ids),
        "width": len(words) if width is None else width,
    }


def text_table(column: int, **options: Any) -> dict[str, Any]:
    """Return the part of a step's table that describes how to split texts into n-grams."""
    stop_words, ends = make_string_table(options.pop("stop_words", ()))
    table = {
        "columns": int32([column]),
        "analyzer": "word",
        "lowercase": True,
        "strip_accents": None,
        "token_pattern": None,
        "shortest_token": 2,
        "shortest": 1,
        "longest": 1,
        "binary": True,
        "missing": FORBIDDEN,
        "stop_words": stop_words,
        "stop_word_ends": ends,
    }
    return table | options
