"""Count the records of Dask data frames and arrays on the workers, and encode records lazily.

The workers merge the counts of partitions along a tree. Strings are counted exactly. Numbers are counted
exactly in columns with at most ``MAX_NUMBER_GROUPS`` distinct numbers. In other columns, numbers that differ
only in their last bits form a group and are counted together; as many bits are ignored as necessary to get at
most ``MAX_NUMBER_GROUPS`` groups. The result does not depend on the partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
from scipy import sparse

from unkernel._core import ColumnSummary
from unkernel.distributed.collections.lazy_blocks import is_frame, map_blocks
from unkernel.records.column_summary import ColumnFacts, Kinds, Records
from unkernel.records.plan import Plan

MAX_NUMBER_GROUPS = 1 << 16
_NO_LIMIT = np.iinfo(np.int64).max
_TREE_FAN_OUT = 8  # fan-out of the tree that merges counts


@dataclass(frozen=True, eq=False)
class Counts:
    """The counts of a block of records.

    Attributes
    ----------
    rows : int
    states : list
        States of the summaries of columns, or None for columns that are dropped.
    """

    rows: int
    states: list[dict[str, Any] | None]


@dataclass(eq=False)
class LazyRecords:
    """Records of a Dask data frame or array, with the methods of ``Records``."""

    X: Any
    names: Sequence[str]
    n_rows: int | None = None  # not known before the records are read

    def __post_init__(self) -> None:
        is_frame(self.X)  # raises an error for other types

    def summaries(self, kinds: Kinds) -> Iterable[ColumnSummary | None]:
        """Return the summaries of the columns, or None for dropped columns."""
        names = list(self.names)
        counts_of_blocks = [dask.delayed(_count_block)(block, names, kinds) for block in _list_blocks(self.X)]
        while len(counts_of_blocks) > 1:
            groups = [
                counts_of_blocks[k : k + _TREE_FAN_OUT]
                for k in range(0, len(counts_of_blocks), _TREE_FAN_OUT)
            ]
            counts_of_blocks = [dask.delayed(_merge_counts)(group, names, kinds) for group in groups]
        counts = counts_of_blocks[0].compute()
        if counts.rows == 0:
            raise ValueError(
                "Found array with 0 sample(s) (shape=(0, ...)) while a minimum of 1 is required."
            )
        self.n_rows = counts.rows
        return _merge_states([counts], names, kinds)

    def encode(self, plan: Plan, threads: int, _facts: Sequence[ColumnFacts] = ()) -> Any:
        """Return the rows as a Dask array of sparse blocks."""
        return map_blocks(
            self.X,
            _encode_block,
            {"threads": threads},
            shared=dask.delayed(plan, pure=True, traverse=False),
            empty=sparse.csr_matrix((0, plan.n_features)),
        )


def _list_blocks(X: Any) -> list[Any]:
    if is_frame(X):
        return list(X.to_delayed())
    array = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    return list(array.to_delayed().ravel())


def _encode_block(block: Any, plan: Plan, *, threads: int) -> Any:
    return plan.encode(block, threads).to_scipy()


# --- Counts ----------------------------------------------------------------------------------------------


def _count_block(block: Any, names: list[str], kinds: Kinds) -> Counts:
    """Count a block of records; a column that the block lacks has missing values."""
    records = Records.from_input(block, names)
    return Counts(records.n_rows, _save_states(records.summaries(kinds), names, kinds))


def _merge_counts(counts_to_merge: Sequence[Counts], names: list[str], kinds: Kinds) -> Counts:
    return Counts(
        sum(counts.rows for counts in counts_to_merge),
        _save_states(_merge_states(counts_to_merge, names, kinds), names, kinds),
    )


def _merge_states(
    counts_to_merge: Sequence[Counts], names: list[str], kinds: Kinds
) -> list[ColumnSummary | None]:
    columns = zip(*(counts.states for counts in counts_to_merge), strict=True)
    return [_merge_column(states, name, kinds[name]) for name, states in zip(names, columns, strict=True)]


def _merge_column(
    states: Sequence[dict[str, Any] | None], name: str, kind: str | None
) -> ColumnSummary | None:
    if kind == "drop":
        return None
    summary = ColumnSummary(name)
    for state in states:
        assert state is not None  # only dropped columns have no state
        summary.join(state, _get_max_groups(kind))
    return summary


def _save_states(
    summaries: Iterable[ColumnSummary | None], names: list[str], kinds: Kinds
) -> list[dict[str, Any] | None]:
    return [
        None if summary is None else summary.state(_get_max_groups(kinds[name]))
        for name, summary in zip(names, summaries, strict=True)
    ]


def _get_max_groups(kind: str | None) -> int:
    """Return the largest number of groups of numbers; numbers that are categories are never grouped."""
    return _NO_LIMIT if kind == "category" else MAX_NUMBER_GROUPS
