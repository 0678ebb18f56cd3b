"""Functions of blocks of rows or records, applied lazily to Dask arrays and data frames."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import dask.array
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph


def is_frame(X: Any) -> bool:
    """Whether a collection is a data frame; if not, it is an array, or a ``TypeError``."""
    if isinstance(X, dask.array.Array):
        return False
    if hasattr(type(X), "divisions"):
        return True
    raise TypeError(f"X must be a Dask array or data frame, and is a {type(X).__name__}")


def by_block(X: Any, do: Callable[..., Any], options: dict[str, Any], *, once: Any, nothing: Any) -> Any:
    """The results of a function for each partition or chunk of rows, as a Dask array.

    Parameters
    ----------
    X : dask array or data frame
    do : callable
        Called as ``do(block, once, **options)``, for blocks that are not empty.
    options : dict
    once : Delayed
        What all calls need: a task of its own, whose result Dask has once on each worker.
    nothing : array or sparse matrix
        What the function would give for no rows.
    """
    work = partial(_of_block, do=do, nothing=nothing, options=options)
    return _by_partition(X, work, once, nothing) if is_frame(X) else _by_chunk(X, work, once, nothing)


def _of_block(block: Any, once: Any, *, do: Callable[..., Any], nothing: Any, options: dict[str, Any]) -> Any:
    """What is left of a block by a filter, say, may be empty."""
    return do(block, once, **options) if block.shape[0] else nothing


def _by_chunk(X: Any, work: Any, once: Any, nothing: Any) -> Any:
    """One chunk of results for each chunk of rows, which may be divided by columns as well."""
    return dask.array.blockwise(
        work,
        "ik"[: nothing.ndim],
        *(X, "ij"[: X.ndim]),
        *(once, None),
        new_axes={"k": nothing.shape[1]} if nothing.ndim == 2 else None,
        concatenate=True,
        meta=nothing,
    )


def _by_partition(X: Any, work: Any, once: Any, nothing: Any) -> Any:
    """One chunk of results, of unknown size, for each partition.

    ``map_partitions`` takes no task of another kind beside the frame: its fusion of tasks fails at times.
    """
    partitions = X.to_delayed()
    name = f"{work.keywords['do'].__name__.strip('_')}-{tokenize(X, once, work)}"
    places = [(name, number, *[0] * (nothing.ndim - 1)) for number in range(len(partitions))]
    tasks = {
        place: (work, partition.key, once.key) for place, partition in zip(places, partitions, strict=True)
    }
    graph = HighLevelGraph.from_collections(name, tasks, dependencies=[*partitions, once])
    chunks = ((math.nan,) * len(partitions), *((size,) for size in nothing.shape[1:]))
    return dask.array.Array(graph, name, chunks, meta=nothing)
