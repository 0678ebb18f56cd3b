"""Generate records for a plan, from its categories, edges of intervals and words, and from other values.

``compile`` uses these records to check that a pipeline and its compiled form give the same predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.records.plan import Plan
from unkernel.records.plan_step import PlanStep
from unkernel.records.steps import FORBIDDEN

_MAX_KNOWN_VALUES = 200  # largest number of categories, edges or words to use per column
_NO_LIMITS = (-np.inf, np.inf)
_POSITIVE = (np.nextafter(0.0, 1.0), np.inf)
# The numbers that functions take without giving NaN or infinity.
_LIMITS = {
    "log": _POSITIVE,
    "log2": _POSITIVE,
    "log10": _POSITIVE,
    "log1p": (np.nextafter(-1.0, 0.0), np.inf),
    "sqrt": (0.0, np.inf),
}
_NUMBERS = (0.0, 1.0, -1.0, 2.5, -3.25, 17.0, 0.125)
_WORDS = ("the", "cat", "sat", "on", "mat", "x1", "e-mail")
_UNSEEN = ("unseen value", "Ünseen Wörd", "日本", "")
_UNSEEN_TEXTS = ("an unseen sentence, isn't it", "CAFÉ Straße İstanbul", "", "x  y\tz 42")


@dataclass
class ColumnValues:
    """The possible values of a column in generated records."""

    known: list[Any] = field(default_factory=list)
    unseen: list[Any] = field(default_factory=list)
    missing: list[Any] = field(default_factory=list)
    least: float = -np.inf
    most: float = np.inf

    def limit(self, limits: tuple[float, float]) -> None:
        """Leave out numbers outside of limits, which a step refuses."""
        self.least, self.most = max(self.least, limits[0]), min(self.most, limits[1])

    def remove_outside(self) -> None:
        self.known = [
            value for value in self.known if not isinstance(value, float) or self.least <= value <= self.most
        ]

    def draw(self, generator: np.random.Generator, *, unseen: bool, missing: bool) -> Any:
        if missing and self.missing and generator.random() < 0.25:
            return _draw_one(self.missing, generator)
        if unseen and self.unseen and generator.random() < 0.25:
            return _draw_one(self.unseen, generator)
        return _draw_one(self.known, generator) if self.known else 0.0


def generate_records(
    plan: Plan, count: int, *, unseen: bool = False, missing: bool = False, seed: int = 0
) -> list[list[Any]]:
    """Return random records, each a list of one value per column.

    Parameters
    ----------
    plan : Plan
    count : int
    unseen, missing : bool, default=False
        Whether to include values that do not occur in the plan, and missing values.
    seed : int, default=0
    """
    generator = np.random.default_rng(seed)
    columns = collect_column_values(plan, generator)
    return [
        [values.draw(generator, unseen=unseen, missing=missing) for values in columns] for _ in range(count)
    ]


def collect_column_values(plan: Plan, generator: np.random.Generator) -> list[ColumnValues]:
    """Return the possible values of each column, collected from all steps that read the column."""
    values = [ColumnValues() for _ in plan.columns]
    sources: dict[int, list[int]] = {}  # for each step that passes numbers of columns on: these columns
    for number, step in enumerate(plan.steps):
        table = step.table
        if step.kind in ("one_hot", "ordinal"):
            for column, categories in zip(table["columns"], table["categories"], strict=True):
                _add_categories(values[int(column)], categories, generator)
        elif step.kind == "numbers":
            sources[number] = [int(column) for column in table["columns"]]
            for column in sources[number]:
                _add_numbers(values[column], _NUMBERS)
        elif step.kind == "dates":
            for column in set(table["columns"].tolist()):
                _add_dates(values[column], generator)
        elif step.kind in ("text", "strings", "pairs"):
            _add_strings(values[int(table["columns"][0])], step, generator)
        elif table.get("input") in sources:
            _add_step_numbers(values, step, sources[table["input"]], generator)
            if step.kind in ("impute", "densify", "finite", "snap"):
                sources[number] = sources[table["input"]]
    for column_values in values:
        column_values.remove_outside()
    return values


def _draw_one(values: Sequence[Any], generator: np.random.Generator) -> Any:
    return values[int(generator.integers(len(values)))]


def _draw_some(values: Sequence[Any], generator: np.random.Generator) -> list[Any]:
    """Return at most ``_MAX_KNOWN_VALUES`` values, in their order."""
    if len(values) <= _MAX_KNOWN_VALUES:
        return list(values)
    return [
        values[index]
        for index in sorted(generator.choice(len(values), _MAX_KNOWN_VALUES, replace=False).tolist())
    ]


def _draw_strings(
    content: NDArray[np.uint8], ends: NDArray[np.int64], generator: np.random.Generator
) -> list[str]:
    """Return at most ``_MAX_KNOWN_VALUES`` strings of a string table."""
    text = bytes(content)
    indices = _draw_some(range(len(ends)), generator)
    begins = [int(ends[index - 1]) if index else 0 for index in indices]
    return [
        text[begin : int(ends[index])].decode("utf-8") for begin, index in zip(begins, indices, strict=True)
    ]


def _add_categories(values: ColumnValues, categories: dict[str, Any], generator: np.random.Generator) -> None:
    strings = _draw_strings(categories["strings"], categories["string_ends"], generator)
    numbers = _draw_some(categories["numbers"].tolist(), generator)
    values.known += strings + numbers
    if categories["unknown"] != FORBIDDEN:
        values.unseen += [-12345.0, 0.5] if numbers and not strings else list(_UNSEEN)
    if categories["none"] != FORBIDDEN and strings:
        values.missing.append(None)
    if categories["nan"] != FORBIDDEN:
        values.missing.append(float("nan"))


def _add_numbers(values: ColumnValues, numbers: Sequence[float]) -> None:
    values.known += [float(number) for number in numbers if np.isfinite(number)]


def _add_around(values: ColumnValues, numbers: NDArray[np.float64], generator: np.random.Generator) -> None:
    """Add ascending numbers, the middles between them, and numbers beyond both ends."""
    beyond = 1.0 + 0.3 * (numbers[-1] - numbers[0])
    chosen = np.sort(np.asarray(_draw_some(numbers.tolist(), generator)))
    middles = chosen[:-1] + 0.5 * np.diff(chosen)
    _add_numbers(values, [*chosen, *middles, numbers[0] - beyond, numbers[-1] + beyond])


def _add_dates(values: ColumnValues, generator: np.random.Generator) -> None:
    seconds = generator.integers(-(2**31), 2**31, 32)
    values.known += [f"{moment}Z" for moment in np.datetime64(0, "s") + seconds]
    values.unseen += ["0001-01-01", "9999-12-31T23:59:59.999+00:30"]
    values.missing.append(None)


def _add_step_numbers(
    values: list[ColumnValues], step: PlanStep, columns: list[int], generator: np.random.Generator
) -> None:
    """Add numbers at which the output of a step may change; the step reads the numbers of `columns`."""
    table = step.table
    for index, column in enumerate(columns):
        if step.kind == "bins":
            edges = table["edges"][table["begins"][index] : table["begins"][index + 1]]
            _add_numbers(
                values[column], [*_draw_some(edges, generator), *(edges[:1] - 1.0), *(edges[-1:] + 1.0)]
            )
        elif step.kind == "scale" and len(table["divide"]):
            center = table["subtract"][index] if len(table["subtract"]) else 0.0
            _add_numbers(
                values[column], [center + times * table["divide"][index] for times in (-2, -0.5, 0, 1)]
            )
        elif step.kind == "impute":
            _add_numbers(values[column], [table["fill"][index]])
            values[column].missing.append(float(table["missing"]))
        elif step.kind == "function":
            values[column].limit(_LIMITS.get(table["function"], _NO_LIMITS))
            _add_numbers(values[column], (0.5, 3.0, 40.0))
        elif step.kind == "power":
            values[column].limit(_POSITIVE if table["method"] == "box-cox" else _NO_LIMITS)
            _add_numbers(values[column], (0.5, 3.0))
        elif step.kind == "quantiles":
            _add_around(values[column], np.split(table["quantiles"], len(columns))[index], generator)
        elif step.kind == "splines":
            _add_around(values[column], np.split(table["knots"], len(columns))[index], generator)
            if "error" in (table["below"], table["above"]):
                values[column].limit((table["low"][index], table["high"][index]))
        accepts_missing = step.kind in ("power", "quantiles") or table.get("allows_missing", False)
        if accepts_missing and step.kind != "finite":
            values[column].missing.append(float("nan"))
        if step.kind == "bins" and table["missing"][index] != FORBIDDEN:
            values[column].missing.append(float("nan"))


def _add_strings(values: ColumnValues, step: PlanStep, generator: np.random.Generator) -> None:
    """Add texts, lists of strings or dicts, depending on the kind of the step."""
    table = step.table
    words = list(_WORDS)
    if not table["hashed"] and len(table["word_ends"]):
        words = _draw_strings(table["words"], table["word_ends"], generator)
    make_values = {"text": _make_texts, "strings": _make_lists, "pairs": _make_dicts}[step.kind]
    known, unseen = make_values(words, table, generator)
    values.known += known
    values.unseen += unseen
    if table.get("missing", FORBIDDEN) != FORBIDDEN:
        values.missing.append(None)


def _make_texts(words: list[str], table: dict[str, Any], generator: np.random.Generator) -> tuple[Any, Any]:
    known = []
    for _ in range(32):
        text = " ".join(generator.choice(words, generator.integers(1, 9)).tolist())
        known.append(text.upper() if table["lowercase"] and generator.random() < 0.2 else text)
    return known, list(_UNSEEN_TEXTS)


def _make_lists(words: list[str], table: dict[str, Any], generator: np.random.Generator) -> tuple[Any, Any]:
    known = [generator.choice(words, generator.integers(1, 6)).tolist() for _ in range(32)]
    return known, [["unseen", "Ünseen"], []]


def _make_dicts(words: list[str], table: dict[str, Any], generator: np.random.Generator) -> tuple[Any, Any]:
    separator = str(table["separator"])
    known = []
    for _ in range(32):
        record: dict[str, Any] = {}
        for word in generator.choice(words, generator.integers(1, 6)).tolist():
            key, has_value, value = word.partition(separator) if separator else (word, "", "")
            record[key] = value if has_value else float(generator.integers(-3, 4))
        known.append(record)
    return known, [{"unseen": 1.0}, {"unseen": "value", "Ünseen": 2}, {}]
