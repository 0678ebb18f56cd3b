"""Find the columns that each feature of a plan depends on, and the interval that it represents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.records.plan import Plan
from unkernel.records.plan_step import PlanStep

Indices = NDArray[np.int64]
Numbers = NDArray[np.float64]
# Steps whose features depend on the input feature with the same index. Normalising divides a feature by the
# norm of the whole row, but the feature still describes its own column.
_FEATUREWISE_STEPS = (
    "scale",
    "impute",
    "binarize",
    "tfidf",
    "normalize",
    "function",
    "power",
    "quantiles",
)


@dataclass(frozen=True, eq=False)
class FeatureColumns:
    """The columns of the features of a plan.

    Attributes
    ----------
    sets : list of tuple of int
        Distinct sets of columns, as ascending indices in ``plan.columns``.
    set_of_feature : (features,) int64
        For each feature, the index of its set of columns in `sets`.
    low, high : (features,) float64
        The interval [low, high) of numbers that a feature represents; NaN for features without an interval.
    """

    sets: list[tuple[int, ...]]
    set_of_feature: Indices
    low: Numbers
    high: Numbers


@dataclass(frozen=True, eq=False)
class _Traced:
    """The features of one step, with the same arrays as :class:`FeatureColumns`."""

    set_of_feature: Indices
    low: Numbers
    high: Numbers

    def select(self, features: NDArray[Any]) -> _Traced:
        return _Traced(self.set_of_feature[features], self.low[features], self.high[features])

    def without_intervals(self) -> _Traced:
        nothing = np.full(len(self.set_of_feature), np.nan)
        return _Traced(self.set_of_feature, nothing, nothing)


def trace_columns(plan: Plan) -> FeatureColumns:
    """Follow the features of a plan back to the columns that they depend on."""
    return _Tracer(plan).trace()


class _Tracer:
    """Traces the features of each step of a plan in turn."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.index_of_set: dict[tuple[int, ...], int] = {}
        self.traced: list[_Traced] = []

    def trace(self) -> FeatureColumns:
        """Return the columns of the features of the last step."""
        for step in self.plan.steps:
            self.traced.append(self._trace_step(step))
        last = self.traced[-1]
        return FeatureColumns(list(self.index_of_set), last.set_of_feature, last.low, last.high)

    def _trace_step(self, step: PlanStep) -> _Traced:
        if "columns" in step.table:
            return self._trace_reader(step)
        if step.kind == "concatenate":
            return _join([self.traced[int(source)] for source in step.table["inputs"]])
        source = self.traced[int(step.table["input"])]
        if step.kind in _FEATUREWISE_STEPS:
            return source.without_intervals()
        trace_methods: dict[str, Callable[[PlanStep, _Traced], _Traced]] = {
            "bins": self._trace_bins,
            "densify": lambda _, source: source,
            "finite": lambda _, source: source,
            "snap": lambda _, source: source,
            "indicate": lambda step, source: source.select(step.table["indicated"]).without_intervals(),
            "products": self._trace_products,
            "select": lambda step, source: source.select(np.flatnonzero(step.table["places"] >= 0)),
            "splines": _repeat,
        }
        return trace_methods.get(step.kind, self._trace_mixture)(step, source)

    def _trace_reader(self, step: PlanStep) -> _Traced:
        """Trace a step that reads columns."""
        columns = [int(column) for column in step.table["columns"]]
        if step.kind == "one_hot":
            sets: list[set[int]] = [set() for _ in step.names]
            for column, table in zip(columns, step.table["categories"], strict=True):
                for feature in _list_codes(table):
                    sets[feature].add(column)
            return self._make([tuple(sorted(columns_of_feature)) for columns_of_feature in sets])
        if len(columns) == len(step.names):
            return self._make([(column,) for column in columns])
        return self._make([tuple(sorted(set(columns)))] * len(step.names))

    def _trace_bins(self, step: PlanStep, source: _Traced) -> _Traced:
        """Trace intervals. Edges are recorded only if the step's input has the column's own numbers."""
        begins, missing = step.table["begins"], step.table["missing"]
        if not step.table["one_hot"]:
            return source.without_intervals()
        has_raw_numbers = self._reads_numbers(int(step.table["input"]))
        parts = []
        for k, (begin, end) in enumerate(pairwise(begins.tolist())):
            edges = step.table["edges"][begin:end]
            width = max(len(edges) + 1, int(missing[k]) + 1)
            low, high = np.full(width, np.nan), np.full(width, np.nan)
            if has_raw_numbers:
                low[: len(edges) + 1] = [-np.inf, *edges]
                high[: len(edges) + 1] = [*edges, np.inf]
            parts.append(_Traced(np.repeat(source.set_of_feature[k], width), low, high))
        return _join(parts)

    def _reads_numbers(self, number: int) -> bool:
        """Return whether a step passes on the numbers of columns, perhaps with missing ones filled in."""
        step = self.plan.steps[number]
        while step.kind in ("densify", "impute", "select", "finite", "snap"):
            step = self.plan.steps[int(step.table["input"])]
        return step.kind == "numbers"

    def _trace_products(self, step: PlanStep, source: _Traced) -> _Traced:
        begins, factors = step.table["begins"], step.table["factors"]
        sets = list(self.index_of_set)
        columns_of_products = []
        for begin, end in pairwise(begins.tolist()):
            columns = {
                column for feature in factors[begin:end] for column in sets[source.set_of_feature[feature]]
            }
            columns_of_products.append(tuple(sorted(columns)))
        return self._make(columns_of_products)

    def _make(self, columns_of_features: Sequence[tuple[int, ...]]) -> _Traced:
        """Return features without intervals, given the columns of each feature."""
        indices = [
            self.index_of_set.setdefault(columns, len(self.index_of_set)) for columns in columns_of_features
        ]
        nothing = np.full(len(indices), np.nan)
        return _Traced(np.array(indices, np.int64), nothing, nothing)

    def _trace_mixture(self, step: PlanStep, source: _Traced) -> _Traced:
        """Trace a step in which every feature depends on all columns of the input."""
        sets = list(self.index_of_set)
        columns = {column for index in set(source.set_of_feature.tolist()) for column in sets[index]}
        return self._make([tuple(sorted(columns))] * len(step.names))


def _repeat(step: PlanStep, source: _Traced) -> _Traced:
    """Trace a step in which every feature of the input has the same number of features, one after another."""
    times = len(step.names) // len(source.set_of_feature)
    return source.select(np.repeat(np.arange(len(source.set_of_feature)), times)).without_intervals()


def _join(parts: Sequence[_Traced]) -> _Traced:
    return _Traced(
        np.concatenate([part.set_of_feature for part in parts]),
        np.concatenate([part.low for part in parts]),
        np.concatenate([part.high for part in parts]),
    )


def _list_codes(table: dict[str, object]) -> list[int]:
    """Return the codes of a column's categories, which are the indices of its features."""
    codes = [*np.asarray(table["string_codes"]).tolist(), *np.asarray(table["number_codes"]).tolist()]
    codes += [table["none"], table["nan"], table["absent"], table["unknown"]]
    return [int(code) for code in codes if int(code) >= 0]
