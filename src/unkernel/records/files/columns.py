"""Infer the types and kinds of a plan's columns, and the features of each column."""

from __future__ import annotations

import re
from typing import Any

from unkernel.records.plan import Plan
from unkernel.records.plan_step import PlanStep

_NUMBERS = "numbers"
_KINDS = {"one_hot": "category", "ordinal": "category", "dates": "date", "pairs": "dict"}
_LABEL_ENDINGS = re.compile(  # matches the rest of a label after the name of the column
    r" (((year|month|day|weekday|hour) )?(= |<= |>= |\d+–\d+$)|in \[|< |is missing|has |is a |-\d+ to -?\d+$)"
)


def list_read_columns(plan: Plan) -> list[str]:
    """Return the columns that at least one step reads."""
    read_columns = {int(column) for step in plan.steps for column in step.table.get("columns", ())}
    return [name for index, name in enumerate(plan.columns) if index in read_columns]


def infer_column_types(plan: Plan) -> dict[str, str]:
    """Return the type of each column, inferred from the plan's tables, for reading text files."""
    types: dict[str, str] = {}
    for step in plan.steps:
        for index, column in enumerate(step.table.get("columns", ())):
            name = plan.columns[int(column)]
            types[name] = "string" if types.get(name) == "string" else _infer_type(step, index)
    return types


def _infer_type(step: PlanStep, index: int) -> str:
    if step.kind == _NUMBERS:
        return "number"
    tables: Any = step.table.get("categories")
    if not tables or len(tables[index]["string_ends"]) or not len(tables[index]["numbers"]):
        return "string"
    return "number"


def infer_column_kinds(plan: Plan) -> dict[str, str]:
    """Return the kind of each column that the plan reads, as in ``RecordEncoder``."""
    binned = {int(step.table["input"]) for step in plan.steps if step.kind == "bins"}
    kinds: dict[str, str] = {}
    for number, step in enumerate(plan.steps):
        for column in step.table.get("columns", ()):
            kind = ("binned" if number in binned else "number") if step.kind == _NUMBERS else step.kind
            kinds.setdefault(plan.columns[int(column)], _KINDS.get(kind, kind))
    return {name: kinds[name] for name in plan.columns if name in kinds}


def count_column_features(plan: Plan) -> dict[str, int]:
    """Return the number of features of each column; a feature belongs to the column that its label names."""
    counts = dict.fromkeys(list_read_columns(plan), 0)
    for column in find_feature_columns(plan):
        if column is not None:
            counts[column] += 1
    return counts


def find_feature_columns(plan: Plan) -> list[str | None]:
    """Return, for each feature, the column that its label names; None if the label names no column."""
    columns = list_read_columns(plan)
    return [
        max((name for name in columns if _belongs_to_column(label, name)), key=len, default=None)
        for label in plan.feature_names
    ]


def _belongs_to_column(label: str, name: str) -> bool:
    return label == name or (label.startswith(name) and _LABEL_ENDINGS.match(label, len(name)) is not None)
