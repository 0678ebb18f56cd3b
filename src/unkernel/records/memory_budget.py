"""Limit the memory of plans that are read from files: for their tables, and for encoding one record.

Steps may use the output of an earlier step several times. A few steps in a damaged file can therefore
describe vectors of billions of entries. Before a plan is compiled, the memory that a record may take is
claimed from the file's memory limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from unkernel.data import file_memory_limit
from unkernel.records.plan_step import PlanStep

_ENTRY_BYTES = 16  # bytes per entry of a vector: index, value, and spare capacity
_BYTES_PER_ARRAY_BYTE = 8  # bytes of memory per byte of a step's arrays: strings become hash tables
_LARGEST_POWER = 64  # the limit in cpp/unkernel/records/number_steps.cpp
_HASHED_ENTRIES = 1 << 10  # assumed number of entries per record in a step with hashed features
_REPEATED_ENTRIES = 1 << 16  # assumed number of entries for each further copy of hashed features
_MAX_ENTRIES = 1 << 62  # larger than the limit of any file
_DENSE_STEPS = (
    "densify",
    "products",
    "indicate",
    "splines",
)  # steps whose vector may have an entry for every feature


class Entries(NamedTuple):
    """The largest number of entries in a step's vector.

    Attributes
    ----------
    fixed : int
        Number of entries that the plan limits.
    hashed : int
        Number of copies of hashed features in the vector. The number of entries per copy depends on the
        record.
    """

    fixed: int
    hashed: int


def claim_tables(steps: Sequence[PlanStep]) -> None:
    """Claim the memory for the arrays of all steps. An array is counted once for each step that uses it."""
    nbytes = 0
    for step in steps:
        nbytes += _BYTES_PER_ARRAY_BYTE * sum(array.nbytes for array in _list_arrays(step.table))
        if "powers" in step.table:  # the core stores a power as repeated factors
            nbytes += 4 * int(np.clip(step.table["powers"], 0, _LARGEST_POWER).sum())
    file_memory_limit.claim(nbytes, "the tables of the plan")


def _list_arrays(value: Any) -> list[Any]:
    """Return all arrays in nested dicts and lists."""
    if isinstance(value, np.ndarray):
        return [value]
    items: Iterable[Any] = ()
    if isinstance(value, dict):
        items = value.values()
    elif isinstance(value, list):
        items = value
    return [array for item in items for array in _list_arrays(item)]


def claim_vectors(steps: Sequence[PlanStep]) -> None:
    """Claim the memory for the vectors of all steps while one record is encoded.

    Hashed features take memory only for entries that the record has. Plans made from pipelines have one copy
    of hashed features per vector; a damaged file may describe vectors with many copies.
    """
    sources = sum(bool(step.table.get("hashed")) for step in steps)
    entries_of_steps: list[Entries] = []
    total = largest = 0
    purpose = "the vectors of a record"
    for step in steps:
        entries = _count_entries(step, entries_of_steps)
        entries_of_steps.append(entries)
        repeated = max(entries.hashed - sources, 0)
        n_entries = entries.fixed + _HASHED_ENTRIES * entries.hashed + _REPEATED_ENTRIES * repeated
        if n_entries > largest:
            largest = n_entries
            purpose = "a record with all its zeros" if step.kind == "densify" else "the vectors of a record"
        total += n_entries
        if total > _MAX_ENTRIES:  # the claim will fail; without this exit, later sums could be huge
            break
    file_memory_limit.claim(_ENTRY_BYTES * total, purpose)


def _count_entries(step: PlanStep, earlier: Sequence[Entries]) -> Entries:
    """Return the largest number of entries of a step's vector, given the entries of earlier steps."""
    table = step.table
    if step.kind == "concatenate":
        inputs = [earlier[source] for source in table["inputs"].tolist()]
        return Entries(sum(entry.fixed for entry in inputs), sum(entry.hashed for entry in inputs))
    if step.kind == "one_hot":
        return Entries(len(table["columns"]), 0)
    if table.get("hashed"):
        return Entries(0, 1)
    if "input" in table and step.kind not in _DENSE_STEPS:
        source: int = table["input"]
        return earlier[source]
    return Entries(len(step.names), 0)
