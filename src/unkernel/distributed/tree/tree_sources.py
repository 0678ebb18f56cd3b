"""Training trees from any source, as blocks that workers can create and recreate."""

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
from unkernel.distributed.cluster.row_sources import (
    Sources,
    find_futures,
    guess_file_size,
    list_files,
    refuse_arrays,
)
from unkernel.distributed.tree.tree_tasks import (
    make_tree_block,
    make_tree_block_of_pairs,
    make_tree_block_of_tuple,
    read_tree_block,
)


def open_tree_sources(client: Client, X: Any, y: Any, sample_weight: Any) -> Sources:
    """Return the blocks of X, from any source, each with its share of y and sample_weight."""
    if _is_file_source(X):
        refuse_arrays("files have their own labels, and no weights: give X only", y, sample_weight)
        names = list_files(X)
        blocks = [dask.delayed(read_tree_block)(number, name) for number, name in enumerate(names)]
        return Sources(blocks, [guess_file_size(name) for name in names], [None] * len(names), True)
    if isinstance(X, list) and X and all(isinstance(block, Delayed | Future) for block in X):
        refuse_arrays(
            "blocks have their own labels and weights, (trees, y[, weights]): give X only", y, sample_weight
        )
        blocks = [dask.delayed(make_tree_block_of_tuple)(number, item) for number, item in enumerate(X)]
        return Sources(blocks, [1.0] * len(X), [item if isinstance(item, Future) else None for item in X])
    if is_dask_collection(X) and hasattr(X, "to_delayed"):
        refuse_arrays("a bag has its own labels, (tree, label): give X only", y, sample_weight)
        partitions = X.to_delayed()
        blocks = [
            dask.delayed(make_tree_block_of_pairs)(number, part) for number, part in enumerate(partitions)
        ]
        return Sources(blocks, [1.0] * len(blocks), find_futures(X, partitions))
    return _from_client(X, y, sample_weight, len(client.nthreads()))


def _is_file_source(X: Any) -> bool:
    """Return whether X is a path, a pattern or a list of paths; strings in a list are trees."""
    if isinstance(X, str | os.PathLike):
        return True
    return isinstance(X, list) and len(X) > 0 and all(isinstance(path, os.PathLike) for path in X)


def _from_client(X: Any, y: Any, sample_weight: Any, workers: int) -> Sources:
    """Divide trees of the client into equal blocks. The workers parse trees given as strings."""
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
        selected = trees[begin:end]
        if isinstance(selected, Forest):
            selected = selected.compact()
        others = [None if array is None else array[begin:end] for array in (labels, weights)]
        delayed_trees = dask.delayed(selected, traverse=False)
        blocks.append(dask.delayed(make_tree_block)(number, delayed_trees, *others, first=begin))
        sizes.append(float(end - begin))
    return Sources(blocks, sizes, [None] * len(blocks))
