"""Training rows in all the forms they come in, as blocks that workers make and can make again."""

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
from unkernel.distributed.cluster.row_tasks import block_of, block_of_tuple, blocks_of_partition, read_block

_LARGE_BLOCK = 1 << 20  # entries of rows of the client from which a worker gets several blocks


@dataclass(frozen=True, eq=False)
class Sources:
    """Blocks to be made.

    Attributes
    ----------
    blocks : list of Delayed
        Each makes a Block, or a list of them.
    sizes : list of float
        How large they are, as far as that is known; only the ratios matter.
    holders : list of Future, or None
        What each is made of, where that is on a worker already.
    own_labels : bool
        Whether labels come with the rows, as in files.
    """

    blocks: list[Any]
    sizes: list[float]
    holders: list[Future | None]
    own_labels: bool = False

    def by_worker(self, client: Client, parts_each: int) -> list[tuple[str, list[Any]]]:
        """Blocks that become one part, and the worker for it: at most so many parts for each worker.

        What is on a worker stays there; all else is dealt out in its order, neighbours together.
        """
        workers = sorted(client.nthreads())
        chosen: dict[str, list[int]] = {}
        for k, (holder, place) in enumerate(
            zip(self._held(client), dealt(self.sizes, len(workers)), strict=True)
        ):
            chosen.setdefault(holder or workers[place], []).append(k)
        return [
            (worker, [self.blocks[k] for k in part])
            for worker, own in chosen.items()
            for part in self._divided(own, parts_each)
        ]

    def _divided(self, blocks: list[int], most: int) -> list[list[int]]:
        parts: dict[int, list[int]] = {}
        for k, part in zip(blocks, dealt([self.sizes[k] for k in blocks], most), strict=True):
            parts.setdefault(part, []).append(k)
        return list(parts.values())

    def _held(self, client: Client) -> list[str | None]:
        futures = [future for future in self.holders if future is not None]
        if not futures:
            return [None] * len(self.holders)
        where = client.who_has(futures)
        places = [where.get(future.key, ()) if future is not None else () for future in self.holders]
        return [min(place) if place else None for place in places]


def dealt(sizes: Sequence[float], takers: int) -> list[int]:
    """Who takes each of some things in a row, so that all take about as much, and neighbours together."""
    ends = np.cumsum(sizes)
    middles = ends - np.asarray(sizes) / 2
    return [int(place) for place in np.minimum(takers * middles / ends[-1], takers - 1)]


def open_sources(
    client: Client, X: Any, beside: dict[str, Any], zero_based: ZeroBased = "auto", parts_each: int = 1
) -> Sources:
    """The blocks of whatever X is, and of the y, qid and sample_weight that are given beside it."""
    if is_path(X):
        return _of_files(file_names(X), beside, zero_based)
    if isinstance(X, list) and X and all(isinstance(block, Delayed | Future) for block in X):
        _check_beside_blocks(beside)
        return _of_delayed(X)
    if is_dask_collection(X) and hasattr(X, "to_delayed"):
        if hasattr(X, "chunks") or hasattr(X, "divisions"):
            return _of_dask_array(_array(X), beside)
        _check_beside_blocks(beside)
        return _of_bag(X)
    return _of_matrix(X, beside, len(client.nthreads()), parts_each)


# --- Files -----------------------------------------------------------------------------------------------


def file_names(X: Any) -> list[str]:
    """The files that a path, a pattern or a list of them names."""
    patterns = [X] if isinstance(X, str | os.PathLike) else X
    return [name for pattern in patterns for name in _matching(os.fspath(pattern))]


def _matching(pattern: str) -> list[str]:
    if "://" in pattern:
        return _matching_remote(pattern)
    names = sorted(glob.glob(pattern)) if glob.has_magic(pattern) else [pattern]  # noqa: PTH207 (a pattern is no path)
    if not names:
        raise FileNotFoundError(f"no file matches {pattern!r}")
    return [os.path.abspath(name) for name in names]  # noqa: PTH100 (workers may have another folder)


def _matching_remote(pattern: str) -> list[str]:
    if importlib.util.find_spec("fsspec") is None:
        raise ImportError(f"{pattern!r} is on another machine, and fsspec reads it: pip install fsspec")
    import fsspec

    system, path = fsspec.core.url_to_fs(pattern)
    names = sorted(system.glob(path)) if glob.has_magic(path) else [path]
    if not names:
        raise FileNotFoundError(f"no file matches {pattern!r}")
    return [str(system.unstrip_protocol(name)) for name in names]


def _of_files(names: list[str], beside: dict[str, Any], zero_based: ZeroBased) -> Sources:
    if any(other is not None for other in beside.values()):
        raise ValueError("files have their own labels and groups, and no weights: X only")
    blocks = [dask.delayed(read_block)(name, zero_based) for name in names]
    return Sources(blocks, [file_size(name) for name in names], [None] * len(names), True)


def file_size(name: str) -> float:
    """The size of a file for :class:`Sources`: 1 where it is not known from here."""
    size = os.path.getsize(name) if os.path.exists(name) else 1  # noqa: PTH110, PTH202
    return float(size or 1)


# --- Blocks on workers -----------------------------------------------------------------------------------


def _check_beside_blocks(beside: dict[str, Any]) -> None:
    if any(other is not None for other in beside.values()):
        raise ValueError("blocks have their own labels, groups and weights, (X, y[, qid[, weights]]): X only")


def _of_delayed(items: list[Any]) -> Sources:
    blocks = [dask.delayed(block_of_tuple)(item) for item in items]
    holders = [item if isinstance(item, Future) else None for item in items]
    return Sources(blocks, [1.0] * len(items), holders)


def _of_bag(bag: Any) -> Sources:
    partitions = bag.to_delayed()
    blocks = [dask.delayed(blocks_of_partition)(partition) for partition in partitions]
    return Sources(blocks, [1.0] * len(blocks), futures_behind(bag, partitions))


def futures_behind(collection: Any, pieces: Sequence[Any]) -> list[Future | None]:
    """What each piece of a collection is, where that is on a worker already."""
    futures = {future.key: future for future in futures_of(collection)}
    return [futures.get(piece.key) for piece in pieces]


def _array(X: Any) -> Any:
    if not hasattr(X, "to_dask_array"):
        return X
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Dask currently has limited support")  # strings become objects
        return X.to_dask_array()


def _of_dask_array(X: Any, beside: dict[str, Any]) -> Sources:
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim}")
    if beside["y"] is None:
        raise ValueError("a dask array needs labels: y is None")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    pieces = X.to_delayed().ravel().tolist()
    others = [_chunks_like(X, other, name) for name, other in beside.items()]
    blocks = [dask.delayed(block_of)(*arguments) for arguments in zip(pieces, *others, strict=True)]
    rows = np.nan_to_num(np.array(X.chunks[0], dtype=np.float64), nan=1.0).clip(min=1.0)
    return Sources(blocks, rows.tolist(), futures_behind(X, pieces))


def _chunks_like(X: Any, other: Any, name: str) -> list[Any]:
    """What goes with each chunk of rows."""
    chunks = X.chunks[0]
    if other is None:
        return [None] * len(chunks)
    unknown = any(map(math.isnan, chunks))
    if is_dask_collection(other):
        array = _array(other)
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


def _of_matrix(X: Any, beside: dict[str, Any], workers: int, parts_each: int) -> Sources:
    """Sent to the workers in equal blocks. The scheduler keeps them, so that they can be sent again."""
    if isinstance(X, list) and any(getattr(block, "ndim", 0) == 2 for block in X):
        raise ValueError("X is a list of matrices: make each block dask.delayed((X, y)), or stack them")
    if beside["y"] is None:
        raise ValueError("requires y to be passed, but the target y is None")
    rows = check_rows(X).to_scipy()
    arrays = [None if other is None else _values(other) for other in beside.values()]
    check_consistent_length(rows, *arrays)
    total = rows.nnz + rows.shape[0]
    pieces = workers * min(parts_each, 1 + total // _LARGE_BLOCK)
    wanted = np.linspace(0, total, pieces + 1)[1:-1]
    work = rows.indptr.astype(np.int64) + np.arange(rows.shape[0] + 1)
    bounds = np.unique([0, *np.searchsorted(work, wanted).tolist(), rows.shape[0]]).tolist()
    blocks, sizes = [], []
    for begin, end in itertools.pairwise(bounds):
        others = [None if array is None else array[begin:end] for array in arrays]
        blocks.append(dask.delayed(block_of)(dask.delayed(rows[begin:end]), *others))
        sizes.append(float(work[end] - work[begin]))
    return Sources(blocks, sizes, [None] * len(blocks))


def _values(other: Any) -> Any:
    return np.asarray(other.compute() if is_dask_collection(other) else other)
