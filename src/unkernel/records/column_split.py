"""Split a plan into two parts. The features of each part depend only on the columns of this part."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.records import steps
from unkernel.records.plan import Plan
from unkernel.records.plan_step import PlanStep

Indices = NDArray[np.int32]
# Steps in which each output feature depends on a single input feature.
_FEATUREWISE_STEPS = ("scale", "impute", "binarize", "densify", "tfidf", "function", "finite", "power")
# The arrays of these steps have one number per feature, or are empty.
_FEATUREWISE_ARRAYS = ("subtract", "divide", "multiply", "add", "fill", "idf", "lambdas")
# The arrays of splines have the same number of entries for each column, or are empty.
_SPLINE_ARRAYS = ("knots", "low", "high", "low_values", "low_slopes", "high_values", "high_slopes")


@dataclass(frozen=True)
class Part:
    """A plan for some of the columns.

    Attributes
    ----------
    plan : Plan
    places : ndarray of int32
        The index of each feature in the plan that was split.
    """

    plan: Plan
    places: Indices


def split(plan: Plan, shared: Collection[str]) -> tuple[Part, Part] | None:
    """Split a plan into a part that reads the columns `shared` and one that reads the other columns.

    Returns
    -------
    (Part, Part) or None
        The two parts. None if a step combines columns of both parts, as norms of rows and products do, or if
        a part has no features.
    """
    if plan.whole:
        return None
    try:
        parts = [_PartBuilder(plan, shared, is_shared_part).build() for is_shared_part in (True, False)]
    except _NotSplittableError:
        return None
    if parts[0] is None or parts[1] is None:
        return None
    return parts[0], parts[1]


class _NotSplittableError(Exception):
    """A step needs the columns of both parts."""


@dataclass
class _KeptStep:
    """A step that the part keeps, and the indices of its features in the original step."""

    step: int  # index of the step in the part
    features: Indices


@dataclass
class _PartBuilder:
    """Builds one part of a plan."""

    plan: Plan
    shared: Collection[str]
    is_shared_part: bool  # whether this part reads the shared columns
    steps: list[PlanStep] = field(default_factory=list)
    kept_steps: list[_KeptStep | None] = field(default_factory=list)  # one entry for each step of the plan

    def build(self) -> Part | None:
        """Return the part; None if it has no features, or if they would be in another order."""
        for step in self.plan.steps:
            self.kept_steps.append(self._keep(step))
        last = self.kept_steps[-1]
        if last is None or (np.diff(last.features) <= 0).any():
            return None
        names = [name for name in self.plan.columns if self._is_own_column(name)]
        other_names = [name for name in self.plan.columns if not self._is_own_column(name)]
        return Part(
            Plan(
                names,
                self.steps[: last.step + 1],
                required=self.plan.required,
                ignores_unknown_keys=self.plan.ignores_unknown_keys,
                bound=[] if self.is_shared_part else other_names,
            ),
            last.features,
        )

    def _is_own_column(self, name: str) -> bool:
        return (name in self.shared) == self.is_shared_part

    def _keep(self, step: PlanStep) -> _KeptStep | None:
        """Add a step with the features that depend only on the part's columns; None if there are none."""
        if "columns" in step.table:
            return self._keep_own_columns(step)
        if step.kind == "concatenate":
            return self._keep_concatenated(step)
        source = int(step.table["input"])
        kept_input = self.kept_steps[source]
        if step.kind in ("normalize", "products"):
            return self._keep_only_if_complete(step, kept_input, len(self.plan.steps[source].names))
        if kept_input is None:
            return None
        if step.kind in _FEATUREWISE_STEPS:
            return self._keep_featurewise(step, kept_input)
        keep_methods: dict[str, Callable[[PlanStep, _KeptStep], _KeptStep | None]] = {
            "bins": self._keep_bins,
            "indicate": self._keep_indicators,
            "quantiles": self._keep_quantiles,
            "splines": self._keep_splines,
            "select": self._keep_selected,
            "snap": self._keep_points,
        }
        if step.kind not in keep_methods:
            raise _NotSplittableError
        return keep_methods[step.kind](step, kept_input)

    def _add(self, step: PlanStep, table: dict[str, Any], features: Any) -> _KeptStep:
        indices = np.asarray(features, dtype=np.int32)
        names = [step.names[index] for index in indices.tolist()]
        self.steps.append(PlanStep(step.kind, step.table | table, names))
        return _KeptStep(len(self.steps) - 1, indices)

    def _keep_own_columns(self, step: PlanStep) -> _KeptStep | None:
        """Add a step that reads columns, with the part's own columns only."""
        own_columns = [name for name in self.plan.columns if self._is_own_column(name)]
        columns = [self.plan.columns[int(column)] for column in step.table["columns"]]
        own_indices = [index for index, name in enumerate(columns) if self._is_own_column(name)]
        if not own_indices:
            return None
        table: dict[str, Any] = {
            "columns": np.array([own_columns.index(columns[index]) for index in own_indices], np.int32)
        }
        if "categories" in step.table:
            table["categories"] = [step.table["categories"][index] for index in own_indices]
        if step.kind == "dates":
            table["parts"] = step.table["parts"][own_indices]
        if step.kind in ("numbers", "dates", "ordinal"):
            return self._add(step, table, own_indices)
        return self._add(step, table, range(len(step.names)))

    def _keep_featurewise(self, step: PlanStep, kept_input: _KeptStep) -> _KeptStep:
        arrays = {name: step.table[name] for name in _FEATUREWISE_ARRAYS if len(step.table.get(name, ()))}
        table = {name: array[kept_input.features] for name, array in arrays.items()}
        if "names" in step.table:
            table["names"] = [step.table["names"][k] for k in kept_input.features.tolist()]
        return self._add(step, table | {"input": kept_input.step}, kept_input.features)

    def _keep_only_if_complete(
        self, step: PlanStep, kept_input: _KeptStep | None, width: int
    ) -> _KeptStep | None:
        """Add a step, such as a norm, whose features depend on all features of its input."""
        if kept_input is None:
            return None
        if len(kept_input.features) != width or self._depends_on_other_part(int(step.table["input"])):
            raise _NotSplittableError
        return self._add(step, {"input": kept_input.step}, range(len(step.names)))

    def _depends_on_other_part(self, step_index: int) -> bool:
        """Return whether the output of a step depends on columns of the other part."""
        table = self.plan.steps[step_index].table
        if "columns" in table:
            return not all(self._is_own_column(self.plan.columns[int(column)]) for column in table["columns"])
        sources = table["inputs"] if "inputs" in table else [table["input"]]
        return any(self._depends_on_other_part(int(source)) for source in sources)

    def _keep_indicators(self, step: PlanStep, kept_input: _KeptStep) -> _KeptStep | None:
        indicated = step.table["indicated"]
        own_indices = np.flatnonzero(np.isin(indicated, kept_input.features))
        if not len(own_indices):
            return None
        own_indicated = np.searchsorted(kept_input.features, indicated[own_indices]).astype(np.int32)
        return self._add(step, {"input": kept_input.step, "indicated": own_indicated}, own_indices)

    def _keep_bins(self, step: PlanStep, kept_input: _KeptStep) -> _KeptStep:
        """Add a step for the intervals of the part's own numbers; a number may have several features."""
        table = step.table
        begins, missing = table["begins"], table["missing"]
        widths = np.maximum(np.diff(begins) + 1, missing + 1) if table["one_hot"] else np.ones(len(missing))
        ends = np.cumsum(widths).astype(int)
        own_indices = kept_input.features.tolist()
        edges = [table["edges"][begins[k] : begins[k + 1]] for k in own_indices]
        features = [np.arange(ends[k] - int(widths[k]), ends[k]) for k in own_indices]
        own_bins = {
            "input": kept_input.step,
            "edges": np.concatenate([*edges, np.empty(0)]),
            "begins": np.cumsum([0, *map(len, edges)]).astype(np.int32),
            "missing": missing[kept_input.features],
            "names": [table["names"][k] for k in own_indices],
        }
        return self._add(step, own_bins, np.concatenate(features))

    def _keep_points(self, step: PlanStep, kept_input: _KeptStep) -> _KeptStep:
        ends = step.table["begins"][1:-1]
        points, tolerances = (
            [np.split(step.table[name], ends)[k] for k in kept_input.features.tolist()]
            for name in ("points", "tolerances")
        )
        table = steps.snap(kept_input.step, points, tolerances, []).table
        return self._add(step, table, kept_input.features)

    def _keep_quantiles(self, step: PlanStep, kept_input: _KeptStep) -> _KeptStep:
        by_column = step.table["quantiles"].reshape(len(step.names), -1)
        table = {"input": kept_input.step, "quantiles": by_column[kept_input.features].ravel()}
        return self._add(step, table, kept_input.features)

    def _keep_splines(self, step: PlanStep, kept_input: _KeptStep) -> _KeptStep:
        columns = kept_input.features
        width = len(step.table["names"])
        table = {
            name: step.table[name].reshape(width, -1)[columns].ravel()
            for name in _SPLINE_ARRAYS
            if len(step.table[name])
        }
        table |= {"input": kept_input.step, "names": [step.table["names"][k] for k in columns.tolist()]}
        features = np.arange(len(step.names)).reshape(width, -1)[columns]
        return self._add(step, table, features.ravel())

    def _keep_selected(self, step: PlanStep, kept_input: _KeptStep) -> _KeptStep | None:
        places = step.table["places"][kept_input.features]
        features = np.sort(places[places >= 0])
        if not len(features):
            return None
        # The features of the new step are numbered consecutively, in the order of the original step.
        mapped = np.where(places >= 0, np.searchsorted(features, places), -1).astype(np.int32)
        table = {"input": kept_input.step, "places": mapped, "width": len(features)}
        return self._add(step, table, features)

    def _keep_concatenated(self, step: PlanStep) -> _KeptStep | None:
        """Add a concatenation of the inputs that the part keeps; None if it keeps none."""
        sources = [int(source) for source in step.table["inputs"]]
        offsets = np.cumsum([0, *(len(self.plan.steps[source].names) for source in sources)])
        offset_inputs = [
            (self.kept_steps[source], offset) for source, offset in zip(sources, offsets[:-1], strict=True)
        ]
        kept_inputs = [(kept_input, offset) for kept_input, offset in offset_inputs if kept_input is not None]
        if not kept_inputs:
            return None
        inputs = np.array([kept_input.step for kept_input, _ in kept_inputs], np.int32)
        features = np.concatenate([kept_input.features + offset for kept_input, offset in kept_inputs])
        return self._add(step, {"inputs": inputs}, features)
