"""Memory claims of plans against their file's limit: tables, and the vectors of one record.

Steps may use the vector of an earlier step any number of times, so a few steps can describe vectors of
billions of entries. The most memory that one record can need is claimed before the plan is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from unkernel.data import file_memory_limit
from unkernel.records.plan_step import PlanStep

_ENTRY_BYTES = 16  # for an entry of a vector: its number, its value, and spare room
_BYTES_PER_ARRAY_BYTE = 8  # memory of a step per byte of its arrays: strings go into hash tables
_LARGEST_POWER = 64  # the limit in cpp/unkernel/records/number_steps.cpp
_HASHED_ENTRIES = 1 << 10  # assumed entries of a record for a step with hashed features
_REPEATED_ENTRIES = 1 << 16  # assumed entries for each further copy of hashed features in a vector
_MAX_ENTRIES = 1 << 62  # no file's limit allows more
_ALL_ENTRIES = ("densify", "products", "indicate")  # steps that may have an entry for every feature


class Entries(NamedTuple):
    """The largest number of entries in a step's vector.

    Attributes
    ----------
    fixed : int
        Entries bounded by the plan.
    hashed : int
        How many copies of hashed features the vector has; their number of entries depends on the record.
    """

    fixed: int
    hashed: int


def claim_tables(steps: Sequence[PlanStep]) -> None:
    """Claim the memory for the arrays of steps, once per step: several steps of a file may use one array."""
    nbytes = 0
    for step in steps:
        nbytes += _BYTES_PER_ARRAY_BYTE * sum(array.nbytes for array in _list_arrays(step.table))
        if "powers" in step.table:  # a power takes memory for as many factors
            nbytes += 4 * int(np.clip(step.table["powers"], 0, _LARGEST_POWER).sum())
    file_memory_limit.claim(nbytes, "the tables of the plan")


def _list_arrays(value: Any) -> list[Any]:
    if isinstance(value, np.ndarray):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [array for item in inside for array in _list_arrays(item)]


def claim_vectors(steps: Sequence[PlanStep]) -> None:
    """Claim the memory for the vectors of all steps while one record is encoded.

    Hashed features take memory for the entries of the record, not for all possible features. Pipelines make
    vectors with one copy of the hashed features; a damaged file may describe vectors with many copies.
    """
    sources = sum(bool(step.table.get("hashed")) for step in steps)
    counted: list[Entries] = []
    total = largest = 0
    what = "the vectors of a record"
    for step in steps:
        entries = _count_entries(step, counted)
        counted.append(entries)
        repeated = max(entries.hashed - sources, 0)
        most = entries.fixed + _HASHED_ENTRIES * entries.hashed + _REPEATED_ENTRIES * repeated
        if most > largest:
            largest = most
            what = "a record with all its zeros" if step.kind == "densify" else "the vectors of a record"
        total += most
        if total > _MAX_ENTRIES:  # refused in any case: the numbers themselves would become long
            break
    file_memory_limit.claim(_ENTRY_BYTES * total, what)


def _count_entries(step: PlanStep, earlier: Sequence[Entries]) -> Entries:
    """Return the largest number of entries of a step's vector, given the numbers of earlier steps."""
    table = step.table
    if step.kind == "concatenate":
        inputs = [earlier[source] for source in table["inputs"].tolist()]
        return Entries(sum(each.fixed for each in inputs), sum(each.hashed for each in inputs))
    if step.kind == "one_hot":
        return Entries(len(table["columns"]), 0)
    if table.get("hashed"):
        return Entries(0, 1)
    if "input" in table and step.kind not in _ALL_ENTRIES:
        source: int = table["input"]
        return earlier[source]
    return Entries(len(step.names), 0)
