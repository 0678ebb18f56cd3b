"""What workers hold and do: parts of the rows, and the functions that tasks call on them.

A part is made by a pure function of blocks that Dask can make again, so that a part that is lost with its
worker comes back elsewhere. Beside its rows a part remembers scores, the state of the round; a part that came
back has none, says so, and is given the weights to find them again. So a task that runs twice, or late, does
no harm: it finds the round it is of, or answers that it does not know it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from dask.distributed import get_worker
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from unkernel._core import Oracle, RowStore, margin_oracle, pack_rows
from unkernel.cutplane.rankings import check_groups
from unkernel.cutplane.solver_run import compute_checksum
from unkernel.data import read_svmlight
from unkernel.data.rows.csr import CsrRows, canonical_rows
from unkernel.data.rows.row_checks import check_inputs
from unkernel.data.rows.svmlight import ZeroBased
from unkernel.distributed.cluster.packed_vectors import Answer, PackedVector, Vector, packed
from unkernel.distributed.cutplane.line_search import Lacks, line_table
from unkernel.learners.targets import check_weights

# --- Blocks of rows, as they come ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Block:
    """Rows and what belongs to them.

    Attributes
    ----------
    X : CSR matrix
    y : array of labels
    qid, weights : array, or None
    first_index : int
        The number of column 0: 1 for files that count from 1.
    """

    X: Any
    y: NDArray[Any]
    qid: NDArray[Any] | None
    weights: Vector | None
    first_index: int = 0


def block_of(X: Any, y: Any, qid: Any = None, weights: Any = None) -> Block:
    """A checked block of a matrix and labels."""
    check_inputs(X, y, qid, weights)
    rows = check_array(
        X, accept_sparse="csr", dtype=np.float64, accept_large_sparse=True, ensure_min_samples=0
    )
    if y is None:
        raise ValueError("rows need labels: give y, or blocks (X, y)")
    labels = column_or_1d(np.asarray(y))
    groups = check_groups(None if qid is None else np.asarray(qid), rows)
    check_consistent_length(rows, labels)
    checked = None if weights is None else _checked_weights(np.asarray(weights), rows)
    return Block(canonical_rows(sparse.csr_matrix(rows)), labels, groups, checked)


def _checked_weights(weights: NDArray[Any], rows: Any) -> Vector:
    """Those of one block may be all 0: a whole file may be of rows to be ignored."""
    is_number = weights.dtype.kind in "biuf"
    if is_number and weights.shape == (rows.shape[0],) and not weights.any():
        return np.zeros(rows.shape[0])
    return check_weights(weights, rows)


def block_of_tuple(block: Any) -> Block:
    """A block of (X, y[, qid[, weights]])."""
    if isinstance(block, Block):
        return block
    if not isinstance(block, tuple | list) or not 2 <= len(block) <= 4:
        raise ValueError(f"a block is a tuple (X, y[, qid[, weights]]), got {type(block).__name__}")
    return block_of(*block)


def blocks_of_partition(partition: Any) -> list[Block]:
    """The blocks in a partition of a bag."""
    return [block_of_tuple(block) for block in partition]


def read_block(path: str, zero_based: ZeroBased) -> Block:
    """An svmlight file of this machine, or one that fsspec can open."""
    if "://" in path:
        import fsspec

        with fsspec.open(path, "rb") as file:
            found = read_svmlight(file, zero_based=zero_based)
    else:
        found = read_svmlight(path, zero_based=zero_based)
    return Block(canonical_rows(found.X), found.y, found.qid, None, 0 if found.zero_based else 1)


def joined(blocks: Sequence[Block | list[Block]]) -> list[Block]:
    """The blocks that become one part."""
    return [block for item in blocks for block in (item if isinstance(item, list) else [item])]


# --- What must be known of all parts before training ------------------------------------------------------

_HASHED_AT_ONCE = 1 << 14  # rows, whose hashes take memory


@dataclass(frozen=True, eq=False)
class Survey:
    """What the client must know of a part."""

    rows: int
    entries: int
    end_index: int  # one more than the largest index
    first_index: int
    labels: NDArray[Any]  # each once
    totals: Vector  # the weight of the rows that have it
    counts: NDArray[Any]  # how many of them have a weight
    has_qid: bool
    has_weights: bool
    fingerprint: int  # a sum over rows


def survey(blocks: list[Block], identify: bool) -> Survey:
    """Look over the blocks of a part."""
    _check_alike(blocks)
    labels = np.concatenate([block.y for block in blocks])
    known, codes = np.unique(labels, return_inverse=True)
    weights = _concatenated([block.weights for block in blocks])
    return Survey(
        rows=len(labels),
        entries=sum(block.X.nnz for block in blocks),
        end_index=max(block.X.shape[1] + block.first_index for block in blocks),
        first_index=min(block.first_index for block in blocks),
        labels=known,
        totals=np.bincount(codes, weights=weights, minlength=len(known)).astype(np.float64),
        counts=np.bincount(codes if weights is None else codes[weights > 0], minlength=len(known)),
        has_qid=blocks[0].qid is not None,
        has_weights=weights is not None,
        fingerprint=sum(map(fingerprint, blocks)) % 2**64 if identify else 0,
    )


def fingerprint(block: Block) -> int:
    """A number that changes when a row or what belongs to it does; not when rows are divided otherwise.

    It is the sum of hashes of the rows, each of which is a hash of the sum of hashes of its entries.
    """
    beside = [_hashes(own) for own in (block.y, block.qid, block.weights) if own is not None]
    total = 0
    for begin in range(0, len(block.y), _HASHED_AT_ONCE):
        some = slice(begin, begin + _HASHED_AT_ONCE)
        X = block.X[some]
        columns = _mixed(X.indices.astype(np.uint64) + np.uint64(block.first_index))
        entries = _mixed(columns + np.ascontiguousarray(X.data, np.float64).view(np.uint64))
        before = np.concatenate([np.zeros(1, np.uint64), np.cumsum(entries, dtype=np.uint64)])
        rows = np.diff(before[X.indptr])
        for hashes in beside:
            rows = _mixed(rows) + hashes[some]
        total += int(_mixed(rows).sum(dtype=np.uint64))
    return total % 2**64


def _hashes(values: NDArray[Any]) -> NDArray[np.uint64]:
    if values.dtype.kind in "biuf":
        return _mixed(values.astype(np.float64).view(np.uint64))
    known, codes = np.unique(values, return_inverse=True)
    found = [compute_checksum([np.frombuffer(str(value).encode(), np.uint8)]) for value in known]
    return np.array(found, np.uint64)[codes]


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64: each bit depends on all others."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))


def _check_alike(blocks: list[Block]) -> None:
    for name in ("qid", "weights"):
        if len({getattr(block, name) is None for block in blocks}) > 1:
            raise ValueError(f"some blocks have {name} and some have none: all have them, or none has")


def _concatenated(arrays: Sequence[NDArray[Any] | None]) -> Any:
    return None if arrays[0] is None else np.concatenate([array for array in arrays if array is not None])


# --- Parts -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Packing:
    """How blocks become a part."""

    number: int
    first_index: int
    n_features: int
    intercept: float
    threads: int | None  # None is as many as the worker has


class PartProblem(Protocol):
    """What is solved, as far as a part must know it."""

    @property
    def name(self) -> str:
        """Tells it from others."""

    def losses_of(self, part: Part) -> Any:
        """What the part's rows cost as a function of their scores, for the tasks of that problem."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A loss that counts each row on its own; which rows are positive, and what classes cost."""

    name: str
    classes: NDArray[Any]
    positive: int
    factors: Vector
    squared: bool

    def losses_of(self, part: Part) -> MarginLosses:
        """What the rows cost."""
        codes = np.searchsorted(self.classes, part.labels).clip(max=len(self.classes) - 1)
        costs: Vector = np.where(codes == self.positive, 1.0, -1.0) * self.factors[codes]
        return MarginLosses(costs if part.weights is None else costs * part.weights, self.squared)


class MarginLosses:
    """Losses that count each row on its own."""

    def __init__(self, signed_costs: Vector, squared: bool) -> None:
        self._signed_costs = signed_costs  # with the sign of the row's class
        self._squared = squared
        oracle: Oracle = margin_oracle(signed_costs, squared=squared)
        self.along, self.cut = oracle.along, oracle.cut

    def table(self, here: Vector, there: Vector) -> Vector:
        """The losses on a line."""
        return line_table(Lacks.of(here, there, self._signed_costs), self._squared)


@dataclass(eq=False)
class RoundState:
    """The scores that a part has in a round."""

    problem: PartProblem
    losses: Any  # of the problem
    round: int
    here: Vector
    there: Vector
    coefficients: Vector | None = None  # of the last cut
    gradient: Vector | None = None  # and its gradient
    updates: int = 0


class Part:
    """Rows on a worker. It stays there: Dask makes it again elsewhere rather than moving it."""

    def __init__(self, blocks: list[Block], packing: Packing) -> None:
        self.number = packing.number
        self.labels = np.concatenate([block.y for block in blocks])
        self.groups = _concatenated([block.qid for block in blocks])
        self.weights = _concatenated([block.weights for block in blocks])
        self._intercept = packing.intercept
        self.threads = packing.threads or int(get_worker().state.nthreads)  # for a task
        self._store: RowStore = _packed_rows(blocks, packing, self.threads)
        self.state: RoundState | None = None
        self.lock = threading.Lock()

    def __sizeof__(self) -> int:
        """For Dask's account of memory."""
        return int(getattr(self._store, "nbytes", 0)) + 64 * len(self.labels)

    def __reduce__(self) -> Any:
        raise TypeError("a part of the training rows stays on its worker")

    def scores(self, weights: Vector) -> Vector:
        """X w."""
        return np.asarray(self._store.scores(weights, self._intercept, self.threads))

    def transposed(self, coefficients: Vector) -> Vector:
        """X'c."""
        return np.asarray(self._store.transposed(coefficients, self._intercept, self.threads))


def _packed_rows(blocks: list[Block], packing: Packing, threads: int) -> RowStore:
    rows = aligned_rows(blocks, packing.first_index, packing.n_features)
    return pack_rows(rows, threads=threads)


def aligned_rows(blocks: list[Block], first_index: int, n_features: int) -> CsrRows:
    """All blocks as one matrix, their columns counted alike."""
    shifted = []
    for block in blocks:
        X, shift = block.X, block.first_index - first_index
        shape = (X.shape[0], n_features)
        indices = X.indices + X.indices.dtype.type(shift) if shift else X.indices
        shifted.append(sparse.csr_matrix((X.data, indices, X.indptr), shape=shape, copy=False))
    whole = shifted[0] if len(shifted) == 1 else sparse.vstack(shifted, format="csr")
    return canonical_rows(whole)


# --- Tasks -----------------------------------------------------------------------------------------------

_MOST_UPDATES = 32  # of a gradient before it is summed anew: each adds its rounding


@dataclass(frozen=True, eq=False)
class Round:
    """Which line the questions are about."""

    problem: PartProblem
    number: int  # from 1
    moved: float  # how far the last line was followed


def labels_of(part: Part) -> tuple[NDArray[Any], NDArray[Any] | None, Vector | None]:
    """What oracles that look at all rows together must know."""
    return part.labels, part.groups, part.weights


def look_ahead(part: Part, now: Round, there: PackedVector) -> Answer:
    """Begin a round: find the scores of new weights, and table the losses on the line to them."""
    with part.lock:
        state = state_in(part, now, there)
        if state is None:
            return Answer(None, (part.number,))
        return Answer(packed(state.losses.table(state.here, state.there)))


def restore(part: Part, now: Round, here: PackedVector, there: PackedVector) -> None:
    """Give a part that has lost its scores those of the round."""
    with part.lock:
        ends = part.scores(here.unpacked()), part.scores(there.unpacked())
        part.state = _new_state(part, now, *ends)


def values_along(part: Part, now: Round, steps: Vector, there: PackedVector | None = None) -> Answer:
    """The losses at steps that no table has: values, then slopes. New weights begin a round."""
    with part.lock:
        state = state_in(part, now, there)
        if state is None:
            return Answer(None, (part.number,))
        points = [state.losses.along(state.here, state.there, step, part.threads) for step in steps.tolist()]
        return Answer(packed(np.array(points).T.ravel()))


def cut_at(part: Part, now: Round, step: float, there: PackedVector | None = None) -> Answer:
    """The gradient of a cut, and after it the offset. New weights begin a round."""
    with part.lock:
        state = state_in(part, now, there)
        if state is None:
            return Answer(None, (part.number,))
        offset, coefficients = state.losses.cut(state.here, state.there, step, part.threads)
        gradient = _gradient(part, state, np.asarray(coefficients))
        return Answer(packed(np.append(gradient, offset)))


def scores_of(part: Part, weights: PackedVector) -> Vector:
    """The scores, for oracles that look at all rows together."""
    return part.scores(weights.unpacked())


def combination_of(part: Part, coefficients: PackedVector) -> Answer:
    """The part's share of a gradient."""
    return Answer(packed(part.transposed(coefficients.unpacked())))


def state_in(part: Part, now: Round, there: PackedVector | None = None) -> RoundState | None:
    """What the part knows of that round, which begins with new weights; None if it has lost its scores."""
    state = part.state
    if state is not None and state.problem.name != now.problem.name:
        state = None
    if state is not None and state.round == now.number:
        return state
    if there is None:
        return None
    if now.number == 1:  # training begins at w = 0
        part.state = _new_state(part, now, np.zeros(len(part.labels)), part.scores(there.unpacked()))
        return part.state
    if state is None or state.round != now.number - 1:
        return None
    new_there = part.scores(there.unpacked())
    state.here = state.here + now.moved * (state.there - state.here)
    state.there, state.round = new_there, now.number
    return state


def _new_state(part: Part, now: Round, here: Vector, there: Vector) -> RoundState:
    return RoundState(now.problem, now.problem.losses_of(part), now.number, here, there)


def _gradient(part: Part, state: RoundState, coefficients: Vector) -> Vector:
    """X'c. From one cut to the next few rows change sides: where these are fewer, only they are read."""
    before, gradient = state.coefficients, state.gradient
    if before is None or gradient is None or not _update_pays(state, coefficients - before, coefficients):
        gradient = part.transposed(coefficients)
        state.updates = 0
    else:
        gradient = gradient + part.transposed(coefficients - before)
        state.updates += 1
    state.coefficients, state.gradient = coefficients, gradient
    return gradient


def _update_pays(state: RoundState, changes: Vector, coefficients: Vector) -> bool:
    fewer = np.count_nonzero(changes) < np.count_nonzero(coefficients)
    return bool(fewer) and state.updates < _MOST_UPDATES
