"""Translate the bins of Explainable Boosting Machines of the package interpret.

A machine is a sum of terms. A term depends on one or several columns, and has a table with one entry per
combination of their bins. A score adds up one entry of each table. Terms of several columns may have coarser
bins. Bins are numbered from 1; bin 0 is for missing values, and the last bin is for unknown values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.records import steps
from unkernel.records.feature_labels import make_interval_labels
from unkernel.records.plan_step import PlanStep
from unkernel.records.sklearn.plan_builder import Builder, Raw, Source, Vector, is_nan, refuse
from unkernel.records.steps import IGNORED

_LARGEST_EXACT_FLOAT = 2.0**53  # floats represent every whole number up to this one


@dataclass(frozen=True)
class BinnedColumn:
    """The bins of one column, for terms with the same number of columns.

    Attributes
    ----------
    column : int
        Index of the column.
    bins : dict or ndarray of float64
        For categories, the bin of each category. For numbers, the ascending cuts between the bins.
    """

    column: int
    bins: Any

    @property
    def is_nominal(self) -> bool:
        return isinstance(self.bins, dict)

    @property
    def n_bins(self) -> int:
        """Number of bins, not counting the bins of missing and of unknown values."""
        return max(self.bins.values(), default=0) if self.is_nominal else len(self.bins) + 1


Bins = NDArray[np.int64]  # the feature of each bin
Features = dict[tuple[int, int], Bins]


def is_boosting_machine(estimator: Any) -> bool:
    """Return whether an estimator is an Explainable Boosting Machine of the package interpret."""
    return any(
        kind.__name__ in ("ExplainableBoostingClassifier", "ExplainableBoostingRegressor")
        and kind.__module__.startswith("interpret.")
        for kind in type(estimator).__mro__
    )


def add_bins(builder: Builder, machine: Any, source: Source, where: str) -> tuple[Vector, Features]:
    """Add one feature per bin of each column that the machine's terms use.

    Returns
    -------
    vector : Vector
        All features.
    features : dict
        For each column and number of columns per term, the feature of each bin: an array that begins with the
        bin of missing values and ends with the bin of unknown values; -1 for a bin without a feature.
    """
    sizes = {(column, len(term)) for term in machine.term_features_ for column in term}
    levels = {key: _find_level(machine, *key) for key in sizes}
    blocks: list[Vector] = []
    offset = 0
    features: Features = {}
    for level in sorted(set(levels.values())):
        for is_nominal in (True, False):
            columns = _list_columns(machine, levels, level, is_nominal=is_nominal)
            if not columns:
                continue
            add = _add_categories if is_nominal else _add_intervals
            block, bins = add(builder, machine, columns, source, where)
            features |= {
                key: np.where(bins[key[0]] >= 0, bins[key[0]] + offset, IGNORED)
                for key, its_level in levels.items()
                if its_level == level and key[0] in bins
            }
            blocks.append(block)
            offset += len(block.names)
    if not blocks:
        refuse(where, "has no terms: it predicts the same for each record")
    return builder.concatenate(blocks), features


def _find_level(machine: Any, column: int, term_size: int) -> int:
    """Return which of a column's binnings terms of `term_size` columns use; the last is the coarsest."""
    return min(term_size, len(machine.bins_[column])) - 1


def _list_columns(
    machine: Any, levels: dict[tuple[int, int], int], level: int, *, is_nominal: bool
) -> list[BinnedColumn]:
    columns = sorted({column for (column, _), its_level in levels.items() if its_level == level})
    binned = [BinnedColumn(column, machine.bins_[column][level]) for column in columns]
    return [column for column in binned if column.is_nominal == is_nominal]


def make_example(machine: Any, columns: Sequence[str]) -> dict[str, Any]:
    """Return a value for each column that the terms use: its first category, or its middle cut."""
    example: dict[str, Any] = {}
    for column in sorted({column for term in machine.term_features_ for column in term}):
        bins = machine.bins_[column][0]
        if isinstance(bins, dict):
            if bins:
                example[columns[column]] = next(iter(bins))
        elif len(bins):
            example[columns[column]] = float(f"{bins[len(bins) // 2]:.4g}")
    return example


# --- Categories -----------------------------------------------------------------------------------------


def _add_categories(
    builder: Builder, machine: Any, columns: Sequence[BinnedColumn], source: Source, where: str
) -> tuple[Vector, dict[int, Bins]]:
    """Add one feature per category; return the vector, and the features of each column's bins."""
    if not isinstance(source, Raw):
        refuse(where, "has a column of categories, and gets the result of another step")
    if source.fills:
        refuse(where, "has a column of categories, and an imputer before it fills in missing values")
    tables: list[dict[str, Any]] = []
    names: list[str] = []
    features: dict[int, Bins] = {}
    for column in columns:
        first, count = len(names), column.n_bins
        unknown, missing = first + count, first + count + 1
        codes: dict[Any, int] = {}
        for category, number in column.bins.items():
            for key in _list_keys(category):
                codes[key] = first + number - 1
        tables.append(steps.categories(codes | {None: missing, float("nan"): missing}, unknown=unknown))
        names += _label_categories(builder.columns[source.columns[column.column]], column)
        features[column.column] = np.array([missing, *range(first, first + count), unknown])
    places = [source.columns[column.column] for column in columns]
    return builder.add(steps.one_hot(places, tables, names)), features


def _list_keys(category: str) -> list[Any]:
    """Return the values that belong to a category: the string and, if it represents a number, the number.

    Machines compare categories as strings, in which whole numbers have no decimal point.
    """
    try:
        number = float(category)
    except ValueError:
        return [category]
    is_whole = number.is_integer() and abs(number) < _LARGEST_EXACT_FLOAT
    is_number = category == (str(int(number)) if is_whole else str(number)) and not is_nan(number)
    return [category, number] if is_number else [category]


def _label_categories(name: str, column: BinnedColumn) -> list[str]:
    groups: list[list[str]] = [[] for _ in range(column.n_bins)]
    for category, number in column.bins.items():
        groups[number - 1].append(str(category))
    labels = [f"{name} = {' or '.join(group)}" for group in groups]
    return [*labels, f"{name} = (other)", f"{name} is missing"]


# --- Numbers --------------------------------------------------------------------------------------------


def _add_intervals(
    builder: Builder, machine: Any, columns: Sequence[BinnedColumn], source: Source, where: str
) -> tuple[Vector, dict[int, Bins]]:
    """Add one feature per interval; return the vector, and the features of each column's bins."""
    places = [column.column for column in columns]
    numbers = _select(builder, source, places, where)
    labels: list[str] = []
    features: dict[int, Bins] = {}
    for column, name in zip(columns, numbers.names, strict=True):
        first, missing = len(labels), len(labels) + column.n_bins
        labels += make_interval_labels(
            name, column.bins, are_integers=_are_integers(column.bins, machine.feature_bounds_[column.column])
        )
        labels.append(f"{name} is missing")
        # The bin of unknown values has no feature: a value that is not a number raises an error.
        features[column.column] = np.array([missing, *range(first, missing), IGNORED])
    step = steps.bins(
        numbers.step,
        [np.asarray(column.bins, dtype=np.float64) for column in columns],
        [column.n_bins for column in columns],
        labels,
        columns=list(numbers.names),
    )
    return builder.add(step), features


def _select(builder: Builder, source: Source, places: list[int], where: str) -> Vector:
    """Return a vector of the numbers of the columns at these indices."""
    if isinstance(source, Raw):
        columns = [source.columns[place] for place in places]
        fills = {column: source.fills[column] for column in columns if column in source.fills}
        return builder.numbers(Raw(columns, fills), where)
    vector = builder.dense(source)
    target = np.full(len(vector.names), -1, np.int32)
    target[places] = np.arange(len(places))
    names = [vector.names[place] for place in places]
    table = {"input": vector.step, "places": target, "width": len(places)}
    return builder.add(PlanStep("select", table, names))


def _are_integers(cuts: NDArray[np.float64], bounds: Any) -> bool:
    """Return whether training had only whole numbers: cuts then lie on whole numbers or halfway between."""
    halves = 2.0 * np.asarray(cuts, dtype=np.float64)
    limits = np.asarray(bounds, dtype=np.float64)
    return bool((halves == np.floor(halves)).all() and (limits == np.floor(limits)).all())
