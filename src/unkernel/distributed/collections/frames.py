"""Records of Dask data frames and arrays: counted where they are, and encoded lazily.

The counts of partitions are joined along a tree, on the workers. Strings are counted exactly. Numbers are
counted each on its own while a column has at most ``MOST_NUMBERS`` different ones; beyond that, as many of
their last bits make no difference as leave that many ranges of numbers. Neither depends on how the records
are divided into partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
from scipy import sparse

from unkernel._core import ColumnSummary
from unkernel.distributed.collections.lazy_blocks import by_block, is_frame
from unkernel.records.column_summary import ColumnFacts, Kinds, Records
from unkernel.records.plan import Plan

MOST_NUMBERS = 1 << 16
_ALL = np.iinfo(np.int64).max
_FAN = 8  # of the tree that joins counts


@dataclass(frozen=True, eq=False)
class Counts:
    """What some records hold.

    Attributes
    ----------
    rows : int
    states : list
        Those of the summaries of columns; None where a column is dropped.
    """

    rows: int
    states: list[dict[str, Any] | None]


@dataclass(frozen=True, eq=False)
class LazyRecords:
    """Records of a Dask data frame or array, to learn from or to encode; as ``Records`` of one machine."""

    X: Any
    names: Sequence[str]
    n_rows: int | None = None  # is not known

    def __post_init__(self) -> None:
        is_frame(self.X)  # or an error says what it is

    def summaries(self, kinds: Kinds) -> Iterable[ColumnSummary | None]:
        """What the columns hold; None for those that are dropped."""
        names = list(self.names)
        found = [dask.delayed(_counts)(block, names, kinds) for block in _blocks(self.X)]
        while len(found) > 1:
            groups = [found[k : k + _FAN] for k in range(0, len(found), _FAN)]
            found = [dask.delayed(_joined)(group, names, kinds) for group in groups]
        counts = found[0].compute()
        if counts.rows == 0:
            raise ValueError(
                "Found array with 0 sample(s) (shape=(0, ...)) while a minimum of 1 is required."
            )
        return _summaries([counts], names, kinds)

    def encode(self, plan: Plan, threads: int, _facts: Sequence[ColumnFacts] = ()) -> Any:
        """The rows, as a Dask array of sparse blocks."""
        return by_block(
            self.X,
            _encoded,
            {"threads": threads},
            once=dask.delayed(plan, pure=True, traverse=False),
            nothing=sparse.csr_matrix((0, plan.n_features)),
        )


def _blocks(X: Any) -> list[Any]:
    if is_frame(X):
        return list(X.to_delayed())
    whole = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
    return list(whole.to_delayed().ravel())


def _encoded(block: Any, plan: Plan, *, threads: int) -> Any:
    return plan.encode(block, threads).to_scipy()


# --- Counts ----------------------------------------------------------------------------------------------


def _counts(block: Any, names: list[str], kinds: Kinds) -> Counts:
    """What a block of records holds. It may lack columns, whose values are missing then."""
    records = Records.of(block, names)
    return Counts(records.n_rows, _states(records.summaries(kinds), names, kinds))


def _joined(some: Sequence[Counts], names: list[str], kinds: Kinds) -> Counts:
    return Counts(sum(counts.rows for counts in some), _states(_summaries(some, names, kinds), names, kinds))


def _summaries(some: Sequence[Counts], names: list[str], kinds: Kinds) -> list[ColumnSummary | None]:
    columns = zip(*(counts.states for counts in some), strict=True)
    return [_summary(states, name, kinds[name]) for name, states in zip(names, columns, strict=True)]


def _summary(states: Sequence[dict[str, Any] | None], name: str, kind: str | None) -> ColumnSummary | None:
    if kind == "drop":
        return None
    summary = ColumnSummary(name)
    for state in states:
        assert state is not None  # as the column is not dropped
        summary.join(state, _most(kind))
    return summary


def _states(
    summaries: Iterable[ColumnSummary | None], names: list[str], kinds: Kinds
) -> list[dict[str, Any] | None]:
    return [
        None if summary is None else summary.state(_most(kinds[name]))
        for name, summary in zip(names, summaries, strict=True)
    ]


def _most(kind: str | None) -> int:
    """Ranges of numbers that are told apart: categories are single numbers, however many there are."""
    return _ALL if kind == "category" else MOST_NUMBERS
