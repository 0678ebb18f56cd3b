"""Make, check and survey blocks of rows on the workers, before they are packed into parts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from unkernel.cutplane.rankings import check_groups
from unkernel.cutplane.solver_run import compute_checksum
from unkernel.data import read_svmlight
from unkernel.data.rows.csr import CsrRows, canonical_rows
from unkernel.data.rows.row_checks import check_inputs
from unkernel.data.rows.svmlight import ZeroBased
from unkernel.distributed.cluster.packed_vectors import Vector
from unkernel.learners.targets import check_targets, check_weights

_MAX_HASHED_ROWS = 1 << 14  # rows hashed at a time, because hashes take memory


@dataclass(frozen=True, eq=False)
class Block:
    """Rows with their labels, groups and weights.

    Attributes
    ----------
    X : CSR matrix
    y : array of labels
    qid, weights : array, or None
    first_index : int
        Number of the first column: 0, or 1 for files that number their columns from 1.
    """

    X: Any
    y: NDArray[Any]
    qid: NDArray[Any] | None
    weights: Vector | None
    first_index: int = 0


def make_block(X: Any, y: Any, qid: Any = None, weights: Any = None) -> Block:
    """Return a checked block of a matrix and labels."""
    check_inputs(X, y, qid, weights)
    rows = check_array(
        X, accept_sparse="csr", dtype=np.float64, accept_large_sparse=True, ensure_min_samples=0
    )
    if y is None:
        raise ValueError("rows need labels: give y, or blocks (X, y)")
    labels = column_or_1d(np.asarray(y))
    groups = check_groups(None if qid is None else np.asarray(qid), rows)
    check_consistent_length(rows, labels)
    checked_weights = None if weights is None else _check_weights(np.asarray(weights), rows)
    return Block(canonical_rows(sparse.csr_matrix(rows)), labels, groups, checked_weights)


def _check_weights(weights: NDArray[Any], rows: Any) -> Vector:
    """Return checked weights. A block may have only zero weights: then its rows are ignored."""
    is_number = weights.dtype.kind in "biuf"
    if is_number and weights.shape == (rows.shape[0],) and not weights.any():
        return np.zeros(rows.shape[0])
    return check_weights(weights, rows)


def make_block_of_tuple(block: Any) -> Block:
    """Return the block made from a tuple (X, y[, qid[, weights]])."""
    if isinstance(block, Block):
        return block
    if not isinstance(block, tuple | list) or not 2 <= len(block) <= 4:
        raise ValueError(f"a block is a tuple (X, y[, qid[, weights]]), got {type(block).__name__}")
    return make_block(*block)


def make_blocks_of_partition(partition: Any) -> list[Block]:
    return [make_block_of_tuple(block) for block in partition]


def read_block(path: str, zero_based: ZeroBased) -> Block:
    """Return the block in an svmlight file, from a path or any address that fsspec can open."""
    with open_if_remote(path) as file:
        data = read_svmlight(file, zero_based=zero_based)
    return Block(canonical_rows(data.X), data.y, data.qid, None, 0 if data.zero_based else 1)


@contextlib.contextmanager
def open_if_remote(path: str) -> Iterator[Any]:
    """Yield an open file for a remote address, or the path of a local file."""
    if "://" not in path:
        yield path
        return
    import fsspec

    with fsspec.open(path, "rb") as file:
        yield file


def list_blocks(blocks: Sequence[Block | list[Block]]) -> list[Block]:
    """Flatten blocks and lists of blocks into one list of blocks."""
    result: list[Block] = []
    for item in blocks:
        result += item if isinstance(item, list) else [item]
    return result


def align_rows(blocks: list[Block], first_index: int, n_features: int) -> CsrRows:
    """Return the rows of all blocks as one matrix whose first column has the number `first_index`."""
    shifted = []
    for block in blocks:
        X, shift = block.X, block.first_index - first_index
        shape = (X.shape[0], n_features)
        indices = X.indices + X.indices.dtype.type(shift) if shift else X.indices
        shifted.append(sparse.csr_matrix((X.data, indices, X.indptr), shape=shape, copy=False))
    rows = shifted[0] if len(shifted) == 1 else sparse.vstack(shifted, format="csr")
    return canonical_rows(rows)


def concatenate_arrays(arrays: Sequence[NDArray[Any] | None]) -> Any:
    """Concatenate the groups or weights of several blocks; return None if the blocks have none."""
    present = [array for array in arrays if array is not None]
    return np.concatenate(present) if present else None


# --- Surveys ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Survey:
    """Facts about a part that the client needs before training."""

    rows: int
    entries: int
    end_index: int  # the largest index plus 1
    first_index: int
    labels: NDArray[Any]  # the distinct labels; in regression, their mean alone
    totals: Vector  # the total weight of the rows of each label
    counts: NDArray[Any]  # the number of rows of each label with a weight above 0
    has_qid: bool
    has_weights: bool
    fingerprint: int  # the sum of the fingerprints of the blocks


def survey(blocks: list[Block], identify: bool, regression: bool = False) -> Survey:
    """Survey the blocks of a part.

    With `identify`, compute the fingerprint of the rows. In a `regression`, check that the labels are
    numbers, and count them all as their mean, because there may be as many labels as rows.
    """
    _check_same_targets(blocks)
    labels = np.concatenate([block.y for block in blocks])
    weights = concatenate_arrays([block.weights for block in blocks])
    if regression:
        distinct = np.array([_compute_mean(check_targets(labels), weights)])
        codes = np.zeros(len(labels), np.int64)
    else:
        distinct, codes = np.unique(labels, return_inverse=True)
    return Survey(
        rows=len(labels),
        entries=sum(block.X.nnz for block in blocks),
        end_index=max(block.X.shape[1] + block.first_index for block in blocks),
        first_index=min(block.first_index for block in blocks),
        labels=distinct,
        totals=np.bincount(codes, weights=weights, minlength=len(distinct)).astype(np.float64),
        counts=np.bincount(codes if weights is None else codes[weights > 0], minlength=len(distinct)),
        has_qid=blocks[0].qid is not None,
        has_weights=weights is not None,
        fingerprint=sum(map(fingerprint, blocks)) % 2**64 if identify else 0,
    )


def _compute_mean(targets: Vector, weights: Vector | None) -> float:
    """Return the weighted mean of targets, or 0 if no target has a weight."""
    has_weight = len(targets) > 0 if weights is None else weights.any()
    return float(np.average(targets, weights=weights)) if has_weight else 0.0


def fingerprint(block: Block) -> int:
    """Return a number that depends on all rows, labels, groups and weights, but not on their order.

    The fingerprint is the sum of the hashes of the rows; the sum of several blocks is the fingerprint of all
    their rows. The hash of a row is the hash of the sum of the hashes of its entries.
    """
    target_hashes = [
        _hash_values(values) for values in (block.y, block.qid, block.weights) if values is not None
    ]
    total = 0
    for begin in range(0, len(block.y), _MAX_HASHED_ROWS):
        batch = slice(begin, begin + _MAX_HASHED_ROWS)
        X = block.X[batch]
        columns = _mix_bits(X.indices.astype(np.uint64) + np.uint64(block.first_index))
        entries = _mix_bits(columns + np.ascontiguousarray(X.data, np.float64).view(np.uint64))
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(entries, dtype=np.uint64)])
        row_hashes = np.diff(sums[X.indptr])
        for hashes in target_hashes:
            row_hashes = _mix_bits(row_hashes) + hashes[batch]
        total += int(_mix_bits(row_hashes).sum(dtype=np.uint64))
    return total % 2**64


def _hash_values(values: NDArray[Any]) -> NDArray[np.uint64]:
    if values.dtype.kind in "biuf":
        return _mix_bits(values.astype(np.float64).view(np.uint64))
    distinct, codes = np.unique(values, return_inverse=True)
    hashes = [compute_checksum([np.frombuffer(str(value).encode(), np.uint8)]) for value in distinct]
    return np.array(hashes, np.uint64)[codes]


def _mix_bits(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Apply the finaliser of SplitMix64: each bit of the result depends on all bits of the number."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))


def _check_same_targets(blocks: list[Block]) -> None:
    for name in ("qid", "weights"):
        if len({getattr(block, name) is None for block in blocks}) > 1:
            raise ValueError(f"some blocks have {name} and some have none: all have them, or none has")
