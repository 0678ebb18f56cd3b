"""Count the missing and unknown values of records by column.

A plan with one feature per thing to count marks these values. The core thus counts while it reads records, in
the same way as it encodes them for a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.data.rows.csr import CsrRows
from unkernel.records import steps
from unkernel.records.plan import Plan
from unkernel.records.plan_step import PlanStep
from unkernel.records.training_counts import TrainingCounts

MISSING, UNKNOWN = "missing", "unknown"


@dataclass(frozen=True)
class Mark:
    """What a feature of a plan of marks stands for.

    Attributes
    ----------
    column : str
    what : str
        ``"missing"``, ``"unknown"``, or "" for a feature that is not counted.
    """

    column: str
    what: str


@dataclass(frozen=True, eq=False)
class MarkingPlan:
    """A plan whose features mark the missing and unknown values of records.

    Attributes
    ----------
    plan : Plan
    marks : sequence of Mark
        The meaning of each feature.
    """

    plan: Plan
    marks: Sequence[Mark]

    def count(self, rows: CsrRows) -> dict[str, dict[str, int]]:
        """Count the marks of encoded records, by meaning and column: ``counts["missing"]["age"]``."""
        features = np.bincount(rows.indices, minlength=len(self.marks)).tolist()
        return {
            what: {
                mark.column: count
                for mark, count in zip(self.marks, features, strict=True)
                if mark.what == what
            }
            for what in (MISSING, UNKNOWN)
        }


@dataclass(frozen=True)
class ValueShares:
    """The shares of missing and unknown values of a column, among new records and in training.

    Attributes
    ----------
    column : str
    missing : float
    training_missing : float or None
        None if the training shares are unknown.
    unknown : float or None
        None if the column is not one of categories.
    training_unknown : float or None
    """

    column: str
    missing: float
    training_missing: float | None
    unknown: float | None
    training_unknown: float | None

    @property
    def change(self) -> float:
        """The larger difference between the new and the training shares."""
        return max(
            abs(self.missing - (self.training_missing or 0.0)),
            abs((self.unknown or 0.0) - (self.training_unknown or 0.0)),
        )


def compare_values(marking: MarkingPlan, rows: CsrRows, training: TrainingCounts | None) -> list[ValueShares]:
    """Return the shares of missing and unknown values, the column with the largest change first.

    Parameters
    ----------
    marking : MarkingPlan
    rows : CsrRows
        New records, encoded by the marking plan.
    training : TrainingCounts or None
        The counts of the training records, if they are known.
    """
    counts = marking.count(rows)

    def share(what: str, column: str) -> float | None:
        return counts[what][column] / rows.shape[0] if column in counts[what] else None

    def training_share(stored: Mapping[str, int], column: str) -> float | None:
        return stored[column] / training.n_records if training and column in stored else None

    shares = [
        ValueShares(
            column,
            count / rows.shape[0],
            training_share(training.missing if training else {}, column),
            share(UNKNOWN, column),
            training_share(training.unknown if training else {}, column),
        )
        for column, count in counts[MISSING].items()
    ]
    return sorted(shares, key=lambda shares_of_column: -shares_of_column.change)


def make_marking_plan(plan: Plan) -> MarkingPlan | None:
    """Return a plan that marks the missing and unknown values of the columns that another plan reads.

    Unknown values exist in columns of categories: they have no feature of their own, because they did not
    occur in training or were too rare. Columns of dicts are not marked, and neither are records that are
    single values, such as texts. If no column is marked, the result is None.
    """
    columns = _ColumnsByKind(plan)
    parts: list[PlanStep] = []
    marks: list[Mark] = []
    sources: list[int] = []
    for new_steps, new_marks in (
        columns.mark_cells(),
        columns.mark_dates(first=1 if columns.tables else 0),
        *map(columns.mark_list, columns.lists),
    ):
        if new_steps:
            parts += new_steps
            marks += new_marks
            sources.append(len(parts) - 1)
    if not parts:
        return None
    names = _make_labels(marks)
    return MarkingPlan(Plan(plan.columns, [*parts, steps.concatenate(sources, names)]), marks)


class _ColumnsByKind:
    """The columns of a plan, by the kind of step that can mark their values."""

    def __init__(self, plan: Plan) -> None:
        self._names = plan.columns
        self.tables: dict[int, dict[str, Any] | None] = {}  # categories; None for numbers and texts
        self.dates: list[int] = []
        self.lists: list[int] = []
        for step in plan.steps if not plan.whole else ():
            for index, column in enumerate(step.table.get("columns", ())):
                self._add(step, index, int(column))

    def _add(self, step: PlanStep, index: int, column: int) -> None:
        """Add a column, which is the input with this index of a step."""
        if step.kind in ("one_hot", "ordinal"):
            self.tables[column] = step.table["categories"][index]
        elif step.kind in ("dates", "strings"):
            group = self.dates if step.kind == "dates" else self.lists
            group += [] if column in group else [column]
        elif step.kind != "pairs":
            self.tables.setdefault(column, None)

    def mark_cells(self) -> tuple[list[PlanStep], list[Mark]]:
        """Return a step for columns of categories, numbers and texts."""
        tables: list[dict[str, Any]] = []
        marks: list[Mark] = []
        columns = sorted(self.tables)
        for column in columns:
            categories = self.tables[column]
            unknown = steps.IGNORED if categories is None else len(marks)
            marks += [] if categories is None else [Mark(self._names[column], UNKNOWN)]
            tables.append(
                _mark_categories(categories or steps.categories({}, unknown=-1), unknown, len(marks))
            )
            marks.append(Mark(self._names[column], MISSING))
        return ([steps.one_hot(columns, tables, _make_labels(marks))] if tables else []), marks

    def mark_dates(self, first: int) -> tuple[list[PlanStep], list[Mark]]:
        """Return steps for columns of dates, of which the first will have the index `first`."""
        if not self.dates:
            return [], []
        names = [self._names[column] for column in self.dates]
        marks = [Mark(name, what) for name in names for what in ("", MISSING)]
        no_edges = [np.empty(0)] * len(names)
        return [
            steps.dates(self.dates, [0] * len(names), names),
            steps.bins(first, no_edges, [1] * len(names), _make_labels(marks), columns=names),
        ], marks

    def mark_list(self, column: int) -> tuple[list[PlanStep], list[Mark]]:
        """Return a step for a column of lists of strings."""
        marks = [Mark(self._names[column], MISSING)]
        table = {"columns": steps.int32([column]), "binary": True} | steps.vocabulary([], width=1)
        return [PlanStep("strings", table | {"missing": 0}, _make_labels(marks))], marks


def _mark_categories(table: dict[str, Any], unknown: int, missing: int) -> dict[str, Any]:
    """Return a table of categories in which only unknown and missing values have features."""
    codes = {name: _ignore_all(table[name]) for name in ("string_codes", "number_codes")}
    return {
        **{name: table[name] for name in ("strings", "string_ends", "numbers")},
        **codes,
        **dict.fromkeys(("none", "nan", "absent"), missing),
        "unknown": unknown,
    }


def _ignore_all(codes: NDArray[np.int32]) -> NDArray[np.int32]:
    return np.full(len(codes), steps.IGNORED, np.int32)


def _make_labels(marks: Sequence[Mark]) -> list[str]:
    return [f"{mark.column} is {mark.what or 'present'}" for mark in marks]
