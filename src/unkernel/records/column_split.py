"""Divides a plan by columns: each part makes the features that depend only on its own columns."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.records.plan import Plan
from unkernel.records.plan_step import PlanStep

Places = NDArray[np.int32]
_EACH = ("scale", "impute", "binarize", "densify", "tfidf")  # each feature depends on one input feature
_WEIGHTS = ("subtract", "divide", "multiply", "add", "fill", "idf")  # one number per feature, or none


@dataclass(frozen=True)
class Part:
    """A plan for some of the columns.

    Attributes
    ----------
    plan : Plan
    places : ndarray of int32
        For each of its features, the index in the whole plan.
    """

    plan: Plan
    places: Places


def split(plan: Plan, shared: Collection[str]) -> tuple[Part, Part] | None:
    """Return the parts of a plan that read the columns `shared`, and all others.

    Returns
    -------
    (Part, Part) or None
        None if a step combines columns of both, like norms of rows and products, or if a part has no
        features.
    """
    if plan.whole:
        return None
    try:
        parts = [_Divided(plan, shared, side).part() for side in (True, False)]
    except _TogetherError:
        return None
    if parts[0] is None or parts[1] is None:
        return None
    return parts[0], parts[1]


class _TogetherError(Exception):
    """A step needs columns of both parts."""


@dataclass
class _Kept:
    """A step of the part, and the index of each of its features in the whole step."""

    step: int
    features: Places


@dataclass
class _Divided:
    """Makes one part of a plan."""

    plan: Plan
    shared: Collection[str]
    side: bool  # True for the part of the shared columns
    steps: list[PlanStep] = field(default_factory=list)
    kept: list[_Kept | None] = field(default_factory=list)

    def part(self) -> Part | None:
        """Return the part; None if it makes no features."""
        for step in self.plan.steps:
            self.kept.append(self._keep(step))
        last = self.kept[-1]
        if last is None or (np.diff(last.features) <= 0).any():
            return None
        names = [name for name in self.plan.columns if self._is_ours(name)]
        bound = [name for name in self.plan.columns if not self._is_ours(name)]
        return Part(
            Plan(
                names,
                self.steps[: last.step + 1],
                required=self.plan.required,
                ignores_unknown_keys=self.plan.ignores_unknown_keys,
                bound=[] if self.side else bound,
            ),
            last.features,
        )

    def _is_ours(self, name: str) -> bool:
        return (name in self.shared) == self.side

    def _keep(self, step: PlanStep) -> _Kept | None:
        if "columns" in step.table:
            return self._reads(step)
        if step.kind == "concatenate":
            return self._concatenate(step)
        source = int(step.table["input"])
        kept = self.kept[source]
        if step.kind in ("normalize", "products"):
            return self._whole(step, kept, len(self.plan.steps[source].names))
        if kept is None:
            return None
        if step.kind in _EACH:
            return self._each(step, kept)
        ways: dict[str, Callable[[PlanStep, _Kept], _Kept | None]] = {
            "bins": self._bins,
            "indicate": self._indicate,
            "select": self._select,
        }
        if step.kind not in ways:
            raise _TogetherError
        return ways[step.kind](step, kept)

    def _add(self, step: PlanStep, table: dict[str, Any], features: Any) -> _Kept:
        places = np.asarray(features, dtype=np.int32)
        names = [step.names[place] for place in places.tolist()]
        self.steps.append(PlanStep(step.kind, step.table | table, names))
        return _Kept(len(self.steps) - 1, places)

    def _reads(self, step: PlanStep) -> _Kept | None:
        """Return a step that reads columns of the record."""
        ours = [name for name in self.plan.columns if self._is_ours(name)]
        columns = [self.plan.columns[int(column)] for column in step.table["columns"]]
        chosen = [place for place, name in enumerate(columns) if self._is_ours(name)]
        if not chosen:
            return None
        table: dict[str, Any] = {"columns": np.array([ours.index(columns[k]) for k in chosen], np.int32)}
        if "categories" in step.table:
            table["categories"] = [step.table["categories"][place] for place in chosen]
        if step.kind == "dates":
            table["parts"] = step.table["parts"][chosen]
        if step.kind in ("numbers", "dates", "ordinal"):
            return self._add(step, table, chosen)
        return self._add(step, table, range(len(step.names)))

    def _each(self, step: PlanStep, kept: _Kept) -> _Kept:
        arrays = {name: step.table[name] for name in _WEIGHTS if len(step.table.get(name, ()))}
        table = {name: array[kept.features] for name, array in arrays.items()}
        return self._add(step, table | {"input": kept.step}, kept.features)

    def _whole(self, step: PlanStep, kept: _Kept | None, width: int) -> _Kept | None:
        """Return a step whose features all depend on all previous features."""
        if kept is None:
            return None
        if len(kept.features) != width or self._other_reads(int(step.table["input"])):
            raise _TogetherError
        return self._add(step, {"input": kept.step}, range(len(step.names)))

    def _other_reads(self, number: int) -> bool:
        """Return whether the result of a step depends on columns of the other part."""
        table = self.plan.steps[number].table
        if "columns" in table:
            return not all(self._is_ours(self.plan.columns[int(column)]) for column in table["columns"])
        sources = table["inputs"] if "inputs" in table else [table["input"]]
        return any(self._other_reads(int(source)) for source in sources)

    def _indicate(self, step: PlanStep, kept: _Kept) -> _Kept | None:
        indicated = step.table["indicated"]
        chosen = np.flatnonzero(np.isin(indicated, kept.features))
        if not len(chosen):
            return None
        places = np.searchsorted(kept.features, indicated[chosen]).astype(np.int32)
        return self._add(step, {"input": kept.step, "indicated": places}, chosen)

    def _bins(self, step: PlanStep, kept: _Kept) -> _Kept:
        table = step.table
        begins, missing = table["begins"], table["missing"]
        widths = np.maximum(np.diff(begins) + 1, missing + 1) if table["one_hot"] else np.ones(len(missing))
        ends = np.cumsum(widths).astype(int)
        chosen = kept.features.tolist()
        edges = [table["edges"][begins[k] : begins[k + 1]] for k in chosen]
        features = [np.arange(ends[k] - int(widths[k]), ends[k]) for k in chosen]
        fewer = {
            "input": kept.step,
            "edges": np.concatenate([*edges, np.empty(0)]),
            "begins": np.cumsum([0, *map(len, edges)]).astype(np.int32),
            "missing": missing[kept.features],
            "names": [table["names"][k] for k in chosen],
        }
        return self._add(step, fewer, np.concatenate(features))

    def _select(self, step: PlanStep, kept: _Kept) -> _Kept | None:
        places = step.table["places"][kept.features]
        features = np.sort(places[places >= 0])
        if not len(features):
            return None
        mapped = np.where(places >= 0, np.searchsorted(features, places), -1).astype(np.int32)
        table = {"input": kept.step, "places": mapped, "width": len(features)}
        return self._add(step, table, features)

    def _concatenate(self, step: PlanStep) -> _Kept | None:
        sources = [int(source) for source in step.table["inputs"]]
        firsts = np.cumsum([0, *(len(self.plan.steps[source].names) for source in sources)])
        found = [(self.kept[source], first) for source, first in zip(sources, firsts[:-1], strict=True)]
        inside = [(kept, first) for kept, first in found if kept is not None]
        if not inside:
            return None
        inputs = np.array([kept.step for kept, _ in inside], np.int32)
        features = np.concatenate([kept.features + first for kept, first in inside])
        return self._add(step, {"inputs": inputs}, features)
