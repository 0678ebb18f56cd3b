"""Extend a plan with features for categories and words that only new records have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.records import steps
from unkernel.records.column_summary import ColumnFacts, Records, summarize_columns
from unkernel.records.feature_labels import format_category
from unkernel.records.feature_names import JoinedNames
from unkernel.records.plan import Plan
from unkernel.records.plan_step import PlanStep

_CODES = ("string_codes", "number_codes", "none", "nan", "absent", "unknown")  # in a table of categories
_KINDS_OF_STEPS = {"one_hot": "category", "text": "text", "strings": "strings"}


def extend_plan(plan: Plan, X: Any, min_count: int = 1) -> tuple[Plan, NDArray[np.int64]]:
    """Add features for the categories and words of new records that a plan does not know.

    Parameters
    ----------
    plan : Plan
        A plan of a :class:`~unkernel.RecordEncoder`.
    X : DataFrame, Arrow table, list of dicts or dict of columns
        The new records.
    min_count : int, default=1
        Smallest number of new records in which a category or word must occur.

    Returns
    -------
    plan : Plan
        The extended plan. Old features keep their meaning, but not their index.
    indices : ndarray of int64, shape (n_old_features,)
        The index of each old feature among the features of the extended plan.
    """
    *inner, last = plan.steps
    if last.kind != "concatenate" or plan.whole:
        raise ValueError("only plans of a RecordEncoder can be extended")
    facts = _summarize(plan, X)
    extended = [_extend_step(step, plan.columns, facts, min_count) for step in inner]
    sources = last.table["inputs"].tolist()
    indices, width = [], 0
    for source in sources:
        step, indices_in_step = extended[source]
        indices.append(width + indices_in_step)
        width += len(step.names)
    labels = JoinedNames([extended[source][0].names for source in sources])
    joined = replace(plan, steps=[*(step for step, _ in extended), steps.concatenate(sources, labels)])
    return joined, np.concatenate(indices).astype(np.int64)


def _summarize(plan: Plan, X: Any) -> list[ColumnFacts]:
    """Summarise the columns of new records that may have new categories or words."""
    kinds = dict.fromkeys(plan.columns, "drop")
    for step in plan.steps:
        if step.kind in _KINDS_OF_STEPS:
            for column in step.table["columns"].tolist():
                kinds[plan.columns[column]] = _KINDS_OF_STEPS[step.kind]
    return summarize_columns(plan.columns, kinds, Records.from_input(X, plan.columns).summaries(kinds))


def _extend_step(
    step: PlanStep, columns: Sequence[str], facts: Sequence[ColumnFacts], min_count: int
) -> tuple[PlanStep, NDArray[np.int64]]:
    """Return the extended step, and the index of each old feature in it."""
    if step.kind == "one_hot":
        return _extend_categories(step, columns, facts, min_count)
    indices = np.arange(len(step.names))
    if step.kind in _KINDS_OF_STEPS:
        return _extend_vocabulary(step, facts[int(step.table["columns"][0])], min_count), indices
    return step, indices


def _extend_categories(
    step: PlanStep, columns: Sequence[str], facts: Sequence[ColumnFacts], min_count: int
) -> tuple[PlanStep, NDArray[np.int64]]:
    """Add categories. The features of a column are neighbours, so those of later columns move."""
    names: list[str] = []
    indices: list[NDArray[np.int64]] = []
    tables = []
    begin = 0
    for column, table in zip(step.table["columns"].tolist(), step.table["categories"], strict=True):
        end = 1 + max(int(np.max(table[part], initial=-1)) for part in _CODES)
        known = {*steps.split_strings(table["strings"], table["string_ends"]), *table["numbers"].tolist()}
        new = [key for key in facts[column].categories(min_count) if _normalise(key) not in known]
        are_booleans = facts[column].is_boolean()
        indices.append(np.arange(len(names), len(names) + end - begin))
        tables.append(_add_categories(_shift_codes(table, len(names) - begin), new, len(names) + end - begin))
        names += step.names[begin:end]
        names += [f"{columns[column]} = {format_category(bool(key) if are_booleans else key)}" for key in new]
        begin = end
    extended = PlanStep(step.kind, step.table | {"categories": tables, "width": len(names)}, names)
    return extended, np.concatenate(indices)


def _normalise(key: Any) -> Any:
    return key if isinstance(key, str) else float(key)


def _shift_codes(table: dict[str, Any], distance: int) -> dict[str, Any]:
    """Return a table of categories whose features have moved by `distance`."""

    def shift(codes: Any) -> Any:
        if isinstance(codes, int):
            return codes + distance if codes >= 0 else codes
        return np.where(codes >= 0, codes + distance, codes).astype(np.int32)

    return table | {part: shift(table[part]) for part in _CODES}


def _add_categories(table: dict[str, Any], keys: Sequence[Any], first_code: int) -> dict[str, Any]:
    """Return a table with additional categories, whose codes begin with `first_code`."""
    added = steps.categories(
        {key: first_code + index for index, key in enumerate(keys)}, unknown=table["unknown"]
    )
    numbers = np.concatenate([table["numbers"], added["numbers"]])
    order = np.argsort(numbers, kind="stable")
    return table | {
        "strings": np.concatenate([table["strings"], added["strings"]]),
        "string_ends": np.concatenate([table["string_ends"], len(table["strings"]) + added["string_ends"]]),
        "string_codes": np.concatenate([table["string_codes"], added["string_codes"]]),
        "numbers": numbers[order],
        "number_codes": np.concatenate([table["number_codes"], added["number_codes"]])[order],
    }


def _extend_vocabulary(step: PlanStep, facts: ColumnFacts, min_count: int) -> PlanStep:
    """Return a step for texts or lists with features for new strings, behind the old features."""
    table = step.table
    known = steps.split_strings(table["words"], table["word_ends"])
    found = facts.words(table, min_count) if step.kind == "text" else facts.items(min_count)
    new = sorted(set(found) - set(known))
    names = [*step.names, *(f"{facts.name} has {word!r}" for word in new)]
    ids = [*table["ids"].tolist(), *range(len(step.names), len(names))]
    return PlanStep(step.kind, table | steps.vocabulary([*known, *new], ids, len(names)), names)
