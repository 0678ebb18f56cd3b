"""Summarise the columns of records in one pass of the core; features are chosen from these summaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import ColumnSummary, summarize, summarize_stream
from unkernel.errors import warn_caller
from unkernel.records.plan import Plan
from unkernel.records.tables import Table, is_arrow, make_table
from unkernel.records.text_analysis import make_analyzer

KINDS = ("category", "number", "binned", "date", "text", "strings", "drop")
_NUMBERS = ("number", "binned")
_LISTS = (list, tuple, set, frozenset)
Kinds = Mapping[str, str | None]  # the kind of each column; None means that the kind is inferred
MOST_ARE_NUMBERS = 0.9  # with a larger share of numbers, the other values are probably mistakes
_WORDS_IN_TEXT = 4.0  # strings with a larger mean number of words are texts
_NO_LIMIT = np.iinfo(np.int64).max  # on the number of groups of numbers


class MixedColumnWarning(UserWarning):
    """Warns that a column is treated as categories although nearly all of its values are numbers."""


@dataclass(frozen=True, eq=False)
class ColumnFacts:
    """The facts about a column from which its features are chosen.

    Attributes
    ----------
    name : str
    index : int
        Index of the column.
    kind : str
        One of ``KINDS``.
    summary : ColumnSummary
        The counted values; None if the column is dropped.
    """

    name: str
    index: int
    kind: str
    summary: ColumnSummary | None

    @property
    def _summary(self) -> ColumnSummary:
        assert self.summary is not None  # dropped columns have no features
        return self.summary

    def categories(self, min_count: int) -> list[Any]:
        """Return the categories with at least `min_count` records: sorted numbers, then sorted strings."""
        for kind in self._summary.types:
            if not issubclass(kind, (str, int, float, np.number, np.bool_)):
                raise TypeError(
                    f"column {self.name!r} is a category, and holds a value of type {kind.__name__}"
                )
        numbers: list[Any] = self._summary.frequent_numbers(min_count).tolist()
        return numbers + self._summary.frequent_texts(min_count)

    def count_values(self) -> int:
        """Return the number of records that have a value."""
        count, _, _ = self._summary.text_counts
        if self.kind not in ("date", "strings"):
            return count + self._number_count_and_median[0]
        state: dict[str, Any] = self._summary.state(_NO_LIMIT)
        # Dates that are not strings are counted by the hour.
        return count + int(np.sum(state["hours"][2])) + int(state["lists"])

    def count_rare(self, min_count: int) -> int:
        """Return the number of values that are categories with fewer than `min_count` records."""
        if min_count == 1:
            return 0
        state: dict[str, Any] = self._summary.state(_NO_LIMIT)
        counts = np.concatenate([state["texts"][1], state["numbers"][2]])
        return int(counts[counts < min_count].sum())

    def is_boolean(self) -> bool:
        """Return whether all values are True or False."""
        return all(issubclass(kind, (bool, np.bool_)) for kind in self._summary.types)

    def words(self, table: dict[str, Any], min_count: int) -> list[str]:
        """Return the words that occur in at least `min_count` records.

        `table` is the table of a step for texts; it defines how texts are split into words.
        """
        for kind in self._summary.types:
            if not issubclass(kind, str):
                raise TypeError(f"column {self.name!r} is a text, and holds a value of type {kind.__name__}")
        return self._summary.frequent_words(table, make_analyzer(table), min_count)

    def items(self, min_count: int) -> list[str]:
        """Return the strings that occur in at least `min_count` lists."""
        for kind in self._summary.types:
            if not issubclass(kind, _LISTS):
                raise TypeError(
                    f"column {self.name!r} is a list of strings, and holds a value of type {kind.__name__}"
                )
        if self._summary.item_problem:
            raise TypeError(
                f"column {self.name!r} is a list of strings, and one holds a value of type "
                f"{self._summary.item_problem}"
            )
        return self._summary.frequent_items(min_count)

    def edges(self, n_bins: int) -> NDArray[np.float64]:
        """Return ascending edges of intervals that contain about the same number of values."""
        self._check_numbers()
        return np.asarray(self._summary.edges(n_bins))

    def date_part_differs(self, part: int) -> bool:
        """Return whether a part of the dates varies; `part` is an index of ``steps.DATE_PARTS``."""
        self._check_dates()
        return self._summary.date_part_differs(part)

    def date_edges(self, part: int, n_bins: int) -> NDArray[np.float64]:
        """Return ascending edges of intervals of a date part that contain about the same number of dates."""
        self._check_dates()
        return np.asarray(self._summary.date_edges(part, n_bins))

    def _check_dates(self) -> None:
        problem = self._summary.not_a_date
        if problem:
            raise ValueError(
                f"column {self.name!r} is a date, and holds something else: {problem}; dates are written "
                "as 2026-11-17 or 2026-11-17T14:05"
            )

    def usual_value(self, min_count: int) -> Any:
        """Return the most frequent category or string, or the median of numbers or dates; None for texts."""
        if self.kind == "category":
            value = _find_most_frequent(self.categories, min_count)
            return bool(value) if self.is_boolean() and value is not None else value
        if self.kind == "strings":
            item = _find_most_frequent(self.items, min_count)
            return None if item is None else [item]
        if self.kind in _NUMBERS:
            return self._find_median()
        return self._find_median_date() if self.kind == "date" else None

    def _find_median(self) -> float | None:
        _, value = self._number_count_and_median
        if value is None:
            return None
        return int(value) if self.is_whole() else float(f"{value:.4g}")

    @cached_property
    def _number_count_and_median(self) -> tuple[int, float | None]:
        """The number of numbers and their median, which are cached because they need a sort."""
        lows, _, counts, _ = self._summary.counted_numbers()
        if not len(counts):
            return 0, None
        ends = np.cumsum(counts)
        return int(ends[-1]), float(lows[np.searchsorted(ends, ends[-1] / 2)])

    def _find_median_date(self) -> str | None:
        """Return a typical date: the median of strings, or else the median year, month and day combined."""
        texts = self._summary.frequent_texts(1)
        if texts:
            return texts[len(texts) // 2]
        years, months, days = (np.asarray(self._summary.date_edges(part, 2)) for part in range(3))
        if not len(years):
            return None
        month, day = (int(edges[0]) if len(edges) else 1 for edges in (months, days))
        return f"{int(years[0]):04}-{month:02}-{min(day, 28):02}"

    def is_whole(self) -> bool:
        """Return whether all numbers are whole."""
        return self._summary.is_whole

    def deviation(self) -> float:
        """Return the standard deviation of the numbers."""
        self._check_numbers()
        lows, highs, counts, _ = self._summary.counted_numbers()
        # Use the midpoints of the counted intervals. If single numbers are counted, lows and highs are equal.
        numbers = 0.5 * lows + 0.5 * highs
        mean = np.average(numbers, weights=counts) if len(counts) else 0.0
        return float(np.sqrt(np.average((numbers - mean) ** 2, weights=counts))) if len(counts) else 0.0

    def _check_numbers(self) -> None:
        for kind in self._summary.not_numbers:
            raise ValueError(
                f"column {self.name!r} is a number, and holds something else: a value of type {kind.__name__}"
            )
        if self._summary.has_infinity:
            raise ValueError(f"Input X contains infinity: column {self.name!r}")


def _find_most_frequent(list_frequent: Callable[[int], list[Any]], min_count: int) -> Any:
    """Return the most frequent value, the first of several; None if no value has `min_count` records.

    `list_frequent` lists the values with at least a given count, which is found by bisection.
    """
    low, high = min_count, 2 * min_count
    if not list_frequent(low):
        return None
    while list_frequent(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if list_frequent(middle) else (low, middle)
    return list_frequent(low)[0]


@dataclass(frozen=True, eq=False)
class Records:
    """Training records: a table in memory, or an Arrow table that is read without a copy."""

    names: Sequence[str]
    n_rows: int
    table: Table | None
    stream: Any

    @classmethod
    def from_input(cls, X: Any, names: Sequence[str]) -> Records:
        """Return all columns of X, under these names."""
        if is_arrow(X):
            return cls(names, len(X), None, X)
        table = make_table(X, names)
        return cls(names, table.n_rows, table, None)

    def summaries(self, kinds: Kinds) -> Iterable[ColumnSummary | None]:
        """Return a summary of each column; None for dropped columns."""
        if self.table is None:
            names = [None if kinds[name] == "drop" else name for name in self.names]
            return summarize_stream(self.stream.__arrow_c_stream__(), names)
        return (
            None if kinds[name] == "drop" else summarize(column, name, kinds[name] in _NUMBERS)
            for name, column in zip(self.names, self.table.columns, strict=True)
        )

    def encode(self, plan: Plan, threads: int, facts: Sequence[ColumnFacts]) -> Any:
        """Return the rows of these records as a SciPy matrix.

        Texts are read from the summaries, which contain converted copies.
        """
        if self.table is None:
            return plan.encode(self.stream, threads).to_scipy()
        columns = [
            fact.summary if fact.summary is not None and fact.summary.holds_texts(self.n_rows) else column
            for fact, column in zip(facts, self.table.columns, strict=True)
        ]
        return plan.encode_table(Table(columns, self.n_rows), threads).to_scipy()


def summarize_columns(
    names: Sequence[str], kinds: Kinds, summaries: Iterable[ColumnSummary | None]
) -> list[ColumnFacts]:
    """Return the facts about each column; kinds that are not given are inferred from the values."""
    facts = []
    for index, (name, summary) in enumerate(zip(names, summaries, strict=True)):
        kind = kinds[name]
        if kind is None:
            assert summary is not None  # a column is only dropped if its kind is given
            kind = infer_kind(name, summary)
            if kind == "category":
                _warn_about_mixed_column(name, summary)
        facts.append(ColumnFacts(name, index, kind, summary))
    return facts


def infer_kind(name: str, summary: ColumnSummary) -> str:
    """Return the kind of a column, inferred from the types of its values."""
    kinds = summary.types
    if all(issubclass(kind, (bool, np.bool_)) for kind in kinds):
        return "category"
    if all(issubclass(kind, (int, float, np.number)) for kind in kinds):
        return "binned"
    if not summary.not_a_date:
        return "date"
    if all(issubclass(kind, str) for kind in kinds):
        texts, distinct, words = summary.text_counts
        return "text" if words > _WORDS_IN_TEXT * texts and 2 * distinct > texts else "category"
    if all(issubclass(kind, _LISTS) for kind in kinds):
        return "strings"
    if all(issubclass(kind, (str, int, float, np.number, np.bool_)) for kind in kinds):
        return "category"
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise TypeError(
        f"column {name!r} holds values of type {names}, which have no features: turn them into numbers or "
        f"strings, or leave the column out: kinds={{{name!r}: 'drop'}}"
    )


def _warn_about_mixed_column(name: str, summary: ColumnSummary) -> None:
    """Warn if most categories are numbers: one mistyped cell turns a column of numbers into categories."""
    from unkernel.records.files.cells import MISSING_NUMBERS, is_number

    texts = [text for text in summary.frequent_texts(1) if text and text not in MISSING_NUMBERS]
    non_numbers = [text for text in texts if not is_number(text)]
    n_values = len(texts) + len(summary.frequent_numbers(1))
    if not non_numbers or len(non_numbers) > (1.0 - MOST_ARE_NUMBERS) * n_values:
        return
    warn_caller(
        f"column {name!r} is taken for categories: {n_values - len(non_numbers):,} of its {n_values:,} "
        f"different values are numbers, but not {non_numbers[0]!r}; correct such values, or say what the "
        f"column is: kinds={{{name!r}: 'category'}}",
        MixedColumnWarning,
    )
