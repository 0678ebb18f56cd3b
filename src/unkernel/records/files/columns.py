"""The columns of a plan, for reading files."""

from __future__ import annotations

import re
from typing import Any

from unkernel.records.plan import Plan
from unkernel.records.plan_step import PlanStep

_NUMBERS = "numbers"
_KINDS = {"one_hot": "category", "ordinal": "category", "dates": "date", "pairs": "dict"}
_LABEL_ENDINGS = re.compile(  # the rest of a label, after the name of the column
    r" (((year|month|day|weekday|hour) )?(= |<= |>= |\d+–\d+$)|in \[|< |is missing|has |is a |-\d+ to -?\d+$)"
)


def columns_read(plan: Plan) -> list[str]:
    """Return the columns that at least one step reads."""
    read = {int(column) for step in plan.steps for column in step.table.get("columns", ())}
    return [name for place, name in enumerate(plan.columns) if place in read]


def column_types(plan: Plan) -> dict[str, str]:
    """Return the types for reading text files, from the tables of the plan."""
    types: dict[str, str] = {}
    for step in plan.steps:
        for place, column in enumerate(step.table.get("columns", ())):
            name = plan.columns[int(column)]
            types[name] = "string" if types.get(name) == "string" else _find_type(step, place)
    return types


def _find_type(step: PlanStep, place: int) -> str:
    if step.kind == _NUMBERS:
        return "number"
    tables: Any = step.table.get("categories")
    if not tables or len(tables[place]["string_ends"]) or not len(tables[place]["numbers"]):
        return "string"
    return "number"


def column_kinds(plan: Plan) -> dict[str, str]:
    """Return the kind of each column that is read, one of the kinds of ``RecordEncoder``."""
    binned = {int(step.table["input"]) for step in plan.steps if step.kind == "bins"}
    found: dict[str, str] = {}
    for number, step in enumerate(plan.steps):
        for column in step.table.get("columns", ()):
            kind = ("binned" if number in binned else "number") if step.kind == _NUMBERS else step.kind
            found.setdefault(plan.columns[int(column)], _KINDS.get(kind, kind))
    return {name: found[name] for name in plan.columns if name in found}


def features_of_columns(plan: Plan) -> dict[str, int]:
    """Count the features of each column, by their labels."""
    counts = dict.fromkeys(columns_read(plan), 0)
    for owner in owners_of_features(plan):
        if owner is not None:
            counts[owner] += 1
    return counts


def owners_of_features(plan: Plan) -> list[str | None]:
    """Return the column of each feature, by the features' labels; None if no column matches."""
    columns = columns_read(plan)
    return [
        max((name for name in columns if _belongs_to_column(label, name)), key=len, default=None)
        for label in plan.feature_names
    ]


def _belongs_to_column(label: str, name: str) -> bool:
    return label == name or (label.startswith(name) and _LABEL_ENDINGS.match(label, len(name)) is not None)
