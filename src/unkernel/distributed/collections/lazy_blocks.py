"""Apply functions lazily to the blocks of Dask arrays and data frames."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import dask.array
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph


def is_frame(X: Any) -> bool:
    """Return True for a data frame and False for an array; raise a ``TypeError`` for other objects."""
    if isinstance(X, dask.array.Array):
        return False
    if hasattr(type(X), "divisions"):
        return True
    raise TypeError(f"X must be a Dask array or data frame, got a {type(X).__name__}")


def map_blocks(
    X: Any, function: Callable[..., Any], options: dict[str, Any], *, shared: Any, empty: Any
) -> Any:
    """Return the results of a function for each partition or chunk of rows, as a Dask array.

    Parameters
    ----------
    X : dask array or data frame
    function : callable
        Called as ``function(block, shared, **options)`` for each nonempty block.
    options : dict
    shared : Delayed
        An argument of all calls. It is a task of its own, and all calls on a worker share its result.
    empty : array or sparse matrix
        The result for a block without rows.
    """
    apply = partial(_apply_to_block, function=function, empty=empty, options=options)
    return _map_partitions(X, apply, shared, empty) if is_frame(X) else _map_chunks(X, apply, shared, empty)


def _apply_to_block(
    block: Any, shared: Any, *, function: Callable[..., Any], empty: Any, options: dict[str, Any]
) -> Any:
    """Apply the function to a block. A block may be empty, for example after a filter."""
    return function(block, shared, **options) if block.shape[0] else empty


def _map_chunks(X: Any, apply: Any, shared: Any, empty: Any) -> Any:
    """Return one chunk of results for each chunk of rows; X may be divided by columns as well."""
    return dask.array.blockwise(
        apply,
        "ik"[: empty.ndim],
        *(X, "ij"[: X.ndim]),
        *(shared, None),
        new_axes={"k": empty.shape[1]} if empty.ndim == 2 else None,
        concatenate=True,
        meta=empty,
    )


def _map_partitions(X: Any, apply: Any, shared: Any, empty: Any) -> Any:
    """Return one chunk of results, of unknown size, for each partition.

    Dask's ``map_partitions`` is not used: it sometimes fails to fuse tasks if an argument such as `shared`
    is not derived from the frame.
    """
    partitions = X.to_delayed()
    name = f"{apply.keywords['function'].__name__.strip('_')}-{tokenize(X, shared, apply)}"
    keys = [(name, number, *[0] * (empty.ndim - 1)) for number in range(len(partitions))]
    tasks = {key: (apply, partition.key, shared.key) for key, partition in zip(keys, partitions, strict=True)}
    graph = HighLevelGraph.from_collections(name, tasks, dependencies=[*partitions, shared])
    chunks = ((math.nan,) * len(partitions), *((size,) for size in empty.shape[1:]))
    return dask.array.Array(graph, name, chunks, meta=empty)
