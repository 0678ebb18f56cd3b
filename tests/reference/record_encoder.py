"""The slow twin of ``RecordEncoder``'s choice of kinds, categories, words and intervals, cell by cell."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reference import dates
from unkernel.records import steps
from unkernel.records.text_analysis import make_analyzer

_WORDS_IN_TEXT = 4.0


def kind_of(name: str, values: Any) -> str:
    """Return the kind of a column, from its values."""
    if isinstance(values, np.ndarray):
        return "binned"
    kinds = set(map(type, values)) - {type(None)}
    if any(issubclass(kind, float) for kind in kinds):  # NaN does not determine the kind
        kinds = {type(value) for value in values if not is_missing(value)}
    if kinds and all(dates.parse_moment(value) for value in values if not is_missing(value)):
        return "date"
    if all(issubclass(kind, (int, float, np.number)) for kind in kinds):
        return "category" if all(issubclass(kind, bool) for kind in kinds) else "binned"
    if all(issubclass(kind, str) for kind in kinds):
        counts = Counter(values)
        string_counts = {value: count for value, count in counts.items() if isinstance(value, str)}
        words = sum(count * (value.count(" ") + 1) for value, count in string_counts.items())
        total = sum(string_counts.values())
        return "text" if words > _WORDS_IN_TEXT * total and 2 * len(string_counts) > total else "category"
    if all(issubclass(kind, (list, tuple, set, frozenset)) for kind in kinds):
        return "strings"
    if all(issubclass(kind, (str, int, float, bool, np.number)) for kind in kinds):
        return "category"
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise TypeError(
        f"column {name!r} holds values of type {names}, which have no features: turn them into numbers or "
        f"strings, or leave the column out: kinds={{{name!r}: 'drop'}}"
    )


def is_missing(value: Any) -> bool:
    """Return whether a value is missing: None or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def _category(name: str, value: Any) -> Any:
    """Return a value as a key: missing values are None, whole floats equal their ints."""
    if is_missing(value):
        return None
    if not isinstance(value, (str, int, float, np.number, np.bool_)):
        raise TypeError(f"column {name!r} is a category, and holds a {type(value).__name__}")
    return value if isinstance(value, str) else _as_float(name, value)


def _category_counts(name: str, values: Any) -> Counter[Any]:
    """Return the count of each category, without missing values."""
    listed = values.tolist() if hasattr(values, "tolist") else values
    try:
        result = Counter(listed)
    except TypeError:  # such as a list, which _category names
        result = Counter(_category(name, value) for value in listed)
    counts: Counter[Any] = Counter()
    for value, count in result.items():
        counts[_category(name, value)] += count
    counts.pop(None, None)
    return counts


def _as_float(name: str, value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"column {name!r} holds a number that is larger than any float") from None


def _order(key: Any) -> tuple[bool, Any]:
    return (isinstance(key, str), key)


def _read_text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"column {name!r} is a text, and holds a {type(value).__name__}")
    return value


def _read_strings(name: str, value: Any) -> set[str]:
    if not isinstance(value, (list, tuple, set, frozenset)):
        raise TypeError(f"column {name!r} is a list of strings, and holds a {type(value).__name__}")
    for item in value:
        if not isinstance(item, str):
            raise TypeError(f"column {name!r} is a list of strings, and one holds a {type(item).__name__}")
    return set(value)


def _numbers(name: str, values: Any) -> NDArray[np.float64]:
    """Return the values that are not missing."""
    try:
        numbers = values
        if not isinstance(values, np.ndarray):
            numbers = [np.nan if value is None else value for value in values]
        array = np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"column {name!r} is a number, and holds something else: {error}") from error
    result = array[~np.isnan(array)]
    if not np.isfinite(result).all():
        raise ValueError(f"Input X contains infinity: column {name!r}")
    return result


def quantile_edges(values: NDArray[np.float64], n_bins: int) -> NDArray[np.float64]:
    """Return ascending edges of intervals with about equally many values.

    A value that is more frequent than the size of an interval gets its own interval. The other values share
    the remaining intervals.
    """
    distinct, counts = (array.tolist() for array in np.unique(values, return_counts=True))
    edges = []
    n_left, n_bins_left, n_in_bin = len(values), n_bins, 0
    for index in range(len(distinct) - 1):
        n_in_bin += counts[index]
        if n_bins_left > 1 and (n_in_bin + 0.5 * counts[index + 1]) * n_bins_left >= n_left:
            edges.append(_between(distinct[index], distinct[index + 1]))
            n_left, n_bins_left, n_in_bin = n_left - n_in_bin, n_bins_left - 1, 0
    return np.array(edges, dtype=np.float64)


def _between(low: float, high: float) -> float:
    """Return a number above `low` and not above `high`, even if there is none between them."""
    middle = 0.5 * low + 0.5 * high  # low + high may be infinite
    return float(middle if middle > low else high)


def number_ranges(values: NDArray[np.float64], max_ranges: int) -> tuple[list[tuple[float, float, int]], int]:
    """Return (smallest, largest, count) of each range, and the number of dropped bits.

    Numbers share a range if their bits are equal after dropping the last bits. As few bits are dropped as are
    needed for at most `max_ranges` ranges.
    """
    bits = (values + 0.0).view(np.uint64).tolist()
    keys = [key + 2**63 if key < 2**63 else 2**64 - 1 - key for key in bits]
    for dropped in range(65):
        ranges: dict[int, list[float]] = {}
        for key, value in zip(keys, values.tolist(), strict=True):
            ranges.setdefault(key >> dropped, []).append(value + 0.0)
        if len(ranges) <= max_ranges:
            break
    return [(min(numbers), max(numbers), len(numbers)) for _, numbers in sorted(ranges.items())], dropped


def frequent_categories(name: str, values: Any, min_count: int) -> list[Any]:
    """Return the categories of at least `min_count` records, in order."""
    counts = _category_counts(name, values)
    return sorted((key for key in counts if counts[key] >= min_count), key=_order)


def frequent_words(name: str, values: Any, min_count: int) -> list[str]:
    """Return the words of at least `min_count` records, in order."""
    analyze = make_analyzer(steps.text_table(0))
    counts: Counter[str] = Counter()
    for value in values:
        if not is_missing(value):
            counts.update(set(analyze(_read_text(name, value))))
    return sorted(word for word in counts if counts[word] >= min_count)


def frequent_items(name: str, values: Any, min_count: int) -> list[str]:
    """Return the strings of at least `min_count` lists, in order."""
    counts: Counter[str] = Counter()
    for value in values:
        if not is_missing(value):
            counts.update(_read_strings(name, value))
    return sorted(word for word in counts if counts[word] >= min_count)


def edges(name: str, values: Any, n_bins: int) -> NDArray[np.float64]:
    """Return the edges of the intervals of a column of numbers."""
    return quantile_edges(_numbers(name, values), n_bins)
