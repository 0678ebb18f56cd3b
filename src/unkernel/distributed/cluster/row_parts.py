"""Parts of the rows on the workers, and the tasks that need no state.

A part is a pure function of blocks that Dask can recreate. If a part is lost with its worker, Dask can
therefore rebuild it on another worker.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
from dask.distributed import get_worker
from numpy.typing import NDArray

from unkernel._core import RowStore, pack_rows
from unkernel.distributed.cluster.packed_vectors import Answer, PackedVector, Vector, pack_vector
from unkernel.distributed.cluster.row_blocks import Block, align_rows, concatenate_arrays


@dataclass(frozen=True, eq=False)
class Packing:
    """The parameters of packing blocks into a part."""

    number: int
    first_index: int
    n_features: int
    intercept: float
    threads: int | None  # None means all of the worker's threads


class Part:
    """Rows on a worker. A part is never sent; on another worker, Dask rebuilds it from its blocks."""

    def __init__(self, blocks: list[Block], packing: Packing) -> None:
        self.number = packing.number
        self.labels = np.concatenate([block.y for block in blocks])
        self.groups = concatenate_arrays([block.qid for block in blocks])
        self.weights = concatenate_arrays([block.weights for block in blocks])
        self.threads = get_worker_threads(packing.threads)
        self._intercept = packing.intercept
        rows = align_rows(blocks, packing.first_index, packing.n_features)
        self._store: RowStore = pack_rows(rows, threads=self.threads)
        self.state: Any = None  # the state in the current round; None after the part was rebuilt
        self.lock = threading.Lock()

    def __sizeof__(self) -> int:
        """Return the size of the part in memory, for Dask."""
        return int(getattr(self._store, "nbytes", 0)) + 64 * len(self.labels)

    def __reduce__(self) -> Any:
        raise TypeError("a part of the training rows stays on its worker")

    def scores(self, weights: Vector) -> Vector:
        """Return the scores X w of the part's rows X."""
        return np.asarray(self._store.scores(weights, self._intercept, self.threads))

    def combine(self, coefficients: Vector) -> Vector:
        """Return X'c: the sum of the part's rows, each multiplied by its coefficient."""
        return np.asarray(self._store.transposed(coefficients, self._intercept, self.threads))


def get_worker_threads(threads: int | None) -> int:
    """Return the number of threads for a task on this worker; None means all of the worker's threads."""
    return threads or int(get_worker().state.nthreads)


def get_targets(part: Part) -> tuple[NDArray[Any], NDArray[Any] | None, Vector | None]:
    """Return the part's labels, groups and weights, for oracles that need all rows together."""
    return part.labels, part.groups, part.weights


def score_rows(part: Part, weights: PackedVector) -> Vector:
    """Return the scores of the part's rows, for oracles that need the scores of all rows together."""
    return part.scores(weights.unpack())


def combine_rows(part: Part, coefficients: PackedVector) -> Answer:
    """Return the part's contribution to a gradient."""
    return Answer(pack_vector(part.combine(coefficients.unpack())))
