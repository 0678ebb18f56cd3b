"""Training rows from any source, as blocks that workers can create and recreate."""

from __future__ import annotations

import glob
import importlib.util
import itertools
import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
from dask.base import is_dask_collection
from dask.delayed import Delayed
from dask.distributed import Client, Future, futures_of
from sklearn.utils import check_consistent_length

from unkernel.cutplane.solver_run import is_path
from unkernel.data.rows.row_checks import check_rows
from unkernel.data.rows.svmlight import ZeroBased
from unkernel.distributed.cluster.row_blocks import (
    make_block,
    make_block_of_tuple,
    make_blocks_of_partition,
    read_block,
)

_LARGE_BLOCK_ENTRIES = 1 << 20  # a client's matrix with more entries is divided into several blocks


@dataclass(frozen=True, eq=False)
class Sources:
    """The blocks that the workers are to create.

    Attributes
    ----------
    blocks : list of Delayed
        Tasks that create a Block or a list of Blocks.
    sizes : list of float
        The sizes of the blocks in any unit, because only their ratios matter.
    holders : list of Future, or None
        For each block, the future of its source if this is already on a worker, else None.
    has_labels : bool
        Whether the blocks contain labels, as files do.
    """

    blocks: list[Any]
    sizes: list[float]
    holders: list[Future | None]
    has_labels: bool = False

    def assign_to_workers(self, client: Client, max_parts: int) -> list[tuple[str, list[Any]]]:
        """Return the worker and the blocks of each part, with at most `max_parts` parts per worker.

        Blocks that are already on a worker stay there. The other blocks are divided into runs of consecutive
        blocks.
        """
        workers = sorted(client.nthreads())
        blocks_of_worker: dict[str, list[int]] = {}
        holders, groups = self._find_holders(client), assign_evenly(self.sizes, len(workers))
        for k, (holder, group) in enumerate(zip(holders, groups, strict=True)):
            blocks_of_worker.setdefault(holder or workers[group], []).append(k)
        return [
            (worker, [self.blocks[k] for k in part])
            for worker, worker_blocks in blocks_of_worker.items()
            for part in self._divide(worker_blocks, max_parts)
        ]

    def _divide(self, blocks: list[int], max_parts: int) -> list[list[int]]:
        """Divide the blocks of a worker into at most `max_parts` lists of about the same size."""
        parts: dict[int, list[int]] = {}
        for k, part in zip(blocks, assign_evenly([self.sizes[k] for k in blocks], max_parts), strict=True):
            parts.setdefault(part, []).append(k)
        return list(parts.values())

    def _find_holders(self, client: Client) -> list[str | None]:
        """Return, for each block, a worker that already has its source, else None."""
        futures = [future for future in self.holders if future is not None]
        if not futures:
            return [None] * len(self.holders)
        who_has = client.who_has(futures)
        workers_of_blocks = [
            who_has.get(future.key, ()) if future is not None else () for future in self.holders
        ]
        return [min(workers) if workers else None for workers in workers_of_blocks]


def assign_evenly(sizes: Sequence[float], count: int) -> list[int]:
    """Divide items into consecutive groups of about the same total size; return the group of each item."""
    ends = np.cumsum(sizes)
    middles = ends - np.asarray(sizes) / 2
    return [int(group) for group in np.minimum(count * middles / ends[-1], count - 1)]


def open_sources(
    client: Client, X: Any, targets: dict[str, Any], zero_based: ZeroBased = "auto", max_parts: int = 1
) -> Sources:
    """Return the blocks of X, from any source, each with its share of `targets` (y, qid, sample_weight)."""
    if is_path(X):
        return _from_files(list_files(X), targets, zero_based)
    reason = "blocks have their own labels, groups and weights, (X, y[, qid[, weights]]): give X only"
    if isinstance(X, list) and X and all(isinstance(block, Delayed | Future) for block in X):
        refuse_arrays(reason, *targets.values())
        return _from_delayed(X)
    if is_dask_collection(X) and hasattr(X, "to_delayed"):
        if hasattr(X, "chunks") or hasattr(X, "divisions"):
            return _from_dask_array(_to_dask_array(X), targets)
        refuse_arrays(reason, *targets.values())
        return _from_bag(X)
    return _from_matrix(X, targets, len(client.nthreads()), max_parts)


def refuse_arrays(message: str, *arrays: Any) -> None:
    """Raise an error if labels, groups or weights are given for blocks that contain them."""
    if any(array is not None for array in arrays):
        raise ValueError(message)


# --- Files -----------------------------------------------------------------------------------------------


def list_files(X: Any) -> list[str]:
    """Return the absolute names of the files that match a path, a pattern, or a list of both."""
    patterns = [X] if isinstance(X, str | os.PathLike) else X
    return [name for pattern in patterns for name in _expand_pattern(os.fspath(pattern))]


def _expand_pattern(pattern: str) -> list[str]:
    if "://" in pattern:
        return _expand_remote_pattern(pattern)
    names = sorted(glob.glob(pattern)) if glob.has_magic(pattern) else [pattern]  # noqa: PTH207 (a pattern is no path)
    if not names:
        raise FileNotFoundError(f"no file matches {pattern!r}")
    return [os.path.abspath(name) for name in names]  # noqa: PTH100 (workers may have another folder)


def _expand_remote_pattern(pattern: str) -> list[str]:
    if importlib.util.find_spec("fsspec") is None:
        raise ImportError(f"{pattern!r} is a remote file, which needs fsspec: pip install fsspec")
    import fsspec

    system, path = fsspec.core.url_to_fs(pattern)
    names = sorted(system.glob(path)) if glob.has_magic(path) else [path]
    if not names:
        raise FileNotFoundError(f"no file matches {pattern!r}")
    return [str(system.unstrip_protocol(name)) for name in names]


def _from_files(names: list[str], targets: dict[str, Any], zero_based: ZeroBased) -> Sources:
    refuse_arrays("files have their own labels and groups, and no weights: give X only", *targets.values())
    blocks = [dask.delayed(read_block)(name, zero_based) for name in names]
    return Sources(blocks, [guess_file_size(name) for name in names], [None] * len(names), True)


def guess_file_size(name: str) -> float:
    """Return the size of a file, or 1 if the client cannot access it, as a size for :class:`Sources`."""
    size = os.path.getsize(name) if os.path.exists(name) else 1  # noqa: PTH110, PTH202
    return float(size or 1)


# --- Blocks on workers -----------------------------------------------------------------------------------


def _from_delayed(items: list[Any]) -> Sources:
    blocks = [dask.delayed(make_block_of_tuple)(item) for item in items]
    holders = [item if isinstance(item, Future) else None for item in items]
    return Sources(blocks, [1.0] * len(items), holders)


def _from_bag(bag: Any) -> Sources:
    partitions = bag.to_delayed()
    blocks = [dask.delayed(make_blocks_of_partition)(partition) for partition in partitions]
    return Sources(blocks, [1.0] * len(blocks), find_futures(bag, partitions))


def find_futures(collection: Any, pieces: Sequence[Any]) -> list[Future | None]:
    """Return, for each piece of a collection, its future if it is already on a worker, else None."""
    futures = {future.key: future for future in futures_of(collection)}
    return [futures.get(piece.key) for piece in pieces]


def _to_dask_array(X: Any) -> Any:
    if not hasattr(X, "to_dask_array"):
        return X
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Dask currently has limited support")  # of strings; objects work
        return X.to_dask_array()


def _from_dask_array(X: Any, targets: dict[str, Any]) -> Sources:
    """Return one block per chunk of rows."""
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim}")
    if targets["y"] is None:
        raise ValueError("a dask array needs labels: y is None")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    pieces = X.to_delayed().ravel().tolist()
    others = [_split_like(X, other, name) for name, other in targets.items()]
    blocks = [dask.delayed(make_block)(*arguments) for arguments in zip(pieces, *others, strict=True)]
    rows = np.nan_to_num(np.array(X.chunks[0], dtype=np.float64), nan=1.0).clip(min=1.0)
    return Sources(blocks, rows.tolist(), find_futures(X, pieces))


def _split_like(X: Any, other: Any, name: str) -> list[Any]:
    """Split an array of labels, groups or weights at the row boundaries of the chunks of X."""
    chunks = X.chunks[0]
    if other is None:
        return [None] * len(chunks)
    unknown = any(map(math.isnan, chunks))
    if is_dask_collection(other):
        array = _to_dask_array(other)
        if not unknown and array.chunks[0] != chunks and not any(map(math.isnan, array.chunks[0])):
            _check_length(sum(array.chunks[0]), sum(chunks), name)
            array = array.rechunk({0: chunks})
        if len(array.chunks[0]) != len(chunks):
            raise ValueError(f"{name} has {len(array.chunks[0])} chunks of rows, and X has {len(chunks)}")
        pieces: list[Any] = array.to_delayed().ravel().tolist()
        return pieces
    if unknown:
        remedy = f"call X.compute_chunk_sizes(), or make {name} a dask array"
        raise ValueError(f"the chunks of X have no sizes: {remedy}")
    values = np.asarray(other)
    _check_length(len(values), sum(chunks), name)
    return np.split(values, np.cumsum(chunks)[:-1])


def _check_length(length: int, rows: int, name: str) -> None:
    if length != rows:
        raise ValueError(f"{name} has {length} entries, and X has {rows} rows")


# --- Rows of the client ----------------------------------------------------------------------------------


def _from_matrix(X: Any, targets: dict[str, Any], workers: int, max_parts: int) -> Sources:
    """Divide the client's rows into blocks with equal sums of entries and rows.

    The scheduler stores the blocks, and can send them repeatedly.
    """
    if isinstance(X, list) and any(getattr(block, "ndim", 0) == 2 for block in X):
        raise ValueError("X is a list of matrices: make each block dask.delayed((X, y)), or stack them")
    if targets["y"] is None:
        raise ValueError("requires y to be passed, but the target y is None")
    rows = check_rows(X).to_scipy()
    arrays = [None if other is None else _to_array(other) for other in targets.values()]
    check_consistent_length(rows, *arrays)
    total = rows.nnz + rows.shape[0]
    pieces = workers * min(max_parts, 1 + total // _LARGE_BLOCK_ENTRIES)
    cuts = np.linspace(0, total, pieces + 1)[1:-1]
    work = rows.indptr.astype(np.int64) + np.arange(rows.shape[0] + 1)
    bounds = np.unique([0, *np.searchsorted(work, cuts).tolist(), rows.shape[0]]).tolist()
    blocks, sizes = [], []
    for begin, end in itertools.pairwise(bounds):
        others = [None if array is None else array[begin:end] for array in arrays]
        blocks.append(dask.delayed(make_block)(dask.delayed(rows[begin:end]), *others))
        sizes.append(float(work[end] - work[begin]))
    return Sources(blocks, sizes, [None] * len(blocks))


def _to_array(other: Any) -> Any:
    return np.asarray(other.compute() if is_dask_collection(other) else other)
