"""Training trees in all the forms they come in, as blocks that workers make and can make again."""

from __future__ import annotations

import itertools
import os
from typing import Any

import dask
import numpy as np
from dask.base import is_dask_collection
from dask.delayed import Delayed
from dask.distributed import Client, Future
from sklearn.utils import check_consistent_length, column_or_1d

from unkernel.data.trees.forest import Forest, as_forest
from unkernel.distributed.cluster.row_sources import Sources, file_names, file_size, futures_behind
from unkernel.distributed.tree.tree_tasks import (
    read_tree_block,
    tree_block_of,
    tree_block_of_pairs,
    tree_block_of_tuple,
)


def open_tree_sources(client: Client, X: Any, y: Any, sample_weight: Any) -> Sources:
    """The blocks of whatever X is, and of the y and sample_weight that are given beside it."""
    if _is_files(X):
        _check_alone("files have their own labels, and no weights: X only", y, sample_weight)
        names = file_names(X)
        blocks = [dask.delayed(read_tree_block)(number, name) for number, name in enumerate(names)]
        return Sources(blocks, [file_size(name) for name in names], [None] * len(names), True)
    if isinstance(X, list) and X and all(isinstance(block, Delayed | Future) for block in X):
        _check_alone(
            "blocks have their own labels and weights, (trees, y[, weights]): X only", y, sample_weight
        )
        blocks = [dask.delayed(tree_block_of_tuple)(number, item) for number, item in enumerate(X)]
        return Sources(blocks, [1.0] * len(X), [item if isinstance(item, Future) else None for item in X])
    if is_dask_collection(X) and hasattr(X, "to_delayed"):
        _check_alone("a bag has its own labels, (tree, label): X only", y, sample_weight)
        partitions = X.to_delayed()
        blocks = [dask.delayed(tree_block_of_pairs)(number, part) for number, part in enumerate(partitions)]
        return Sources(blocks, [1.0] * len(blocks), futures_behind(X, partitions))
    return _of_client(X, y, sample_weight, len(client.nthreads()))


def _is_files(X: Any) -> bool:
    """A path or pattern, or a list of paths; a list of strings has trees."""
    if isinstance(X, str | os.PathLike):
        return True
    return isinstance(X, list) and len(X) > 0 and all(isinstance(path, os.PathLike) for path in X)


def _check_alone(message: str, *beside: Any) -> None:
    if any(other is not None for other in beside):
        raise ValueError(message)


def _of_client(X: Any, y: Any, sample_weight: Any, workers: int) -> Sources:
    """Sent to the workers in blocks of as many trees each. Strings are sent as they are, and parsed there."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    is_text = isinstance(X, list | tuple) and all(isinstance(tree, str) for tree in X)
    trees = list(X) if is_text else as_forest(X)
    labels = column_or_1d(y, warn=True)
    weights = None if sample_weight is None else column_or_1d(sample_weight)
    check_consistent_length(trees, labels, weights)
    bounds = np.unique(np.linspace(0, len(trees), workers + 1).astype(int)).tolist()
    blocks, sizes = [], []
    for number, (begin, end) in enumerate(itertools.pairwise(bounds)):
        some = trees[begin:end]
        sent = some.compact() if isinstance(some, Forest) else some
        others = [None if array is None else array[begin:end] for array in (labels, weights)]
        trees_sent = dask.delayed(sent, traverse=False)
        blocks.append(dask.delayed(tree_block_of)(number, trees_sent, *others, first=begin))
        sizes.append(float(end - begin))
    return Sources(blocks, sizes, [None] * len(blocks))
