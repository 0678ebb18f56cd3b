"""What workers do for sparse models: shares of the objective, proposals for weights, sums of conjunctions.

A part remembers its columns of the conjunctions in use. One that was made again has none, and answers None
until it is told them; what it is asked holds the weights, so nothing else can be lost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from unkernel._core import DistinctRows, FeatureMap, SparsePart, distinct_examples
from unkernel.data.memory import available_bytes
from unkernel.distributed.cluster.packed_vectors import Answer, Vector, packed
from unkernel.distributed.cluster.row_tasks import Block
from unkernel.distributed.poly.svc_tasks import PolyPacking, PolyPart, worker_threads
from unkernel.poly.options import SparseOptions

_NEWTON_STEPS = 1  # that a part makes for a proposal

Keys = NDArray[np.uint64]
Flags = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Numbering:
    """How all parts number features, and what their values are."""

    columns: NDArray[np.int64]
    binary: bool  # whether all values of all parts are 1
    pairs: float  # of features in a row, of all rows


@dataclass(frozen=True, eq=False)
class SparseProblem:
    """What is solved: one class against the rest, or all classes at once."""

    name: str  # tells it from others
    number: int
    options: SparseOptions  # but for memory and threads, which are the worker's
    map: dict[str, Any]  # of FeatureMap
    factors: list[float]  # of C, one per class

    @property
    def outputs(self) -> int:
        """Scores per row."""
        classes = len(self.factors)
        return classes if self.options.loss == "logistic" and classes > 2 else 1


@dataclass(frozen=True, eq=False)
class Point:
    """Weights of the conjunctions in use, output by output."""

    problem: str
    version: int  # of the conjunctions in use
    weights: Vector


class SparseRows:
    """What a part remembers."""

    def __init__(self, rows: DistinctRows) -> None:
        self.rows = rows
        self.problem = ""
        self.version = 0
        self.part: SparsePart | None = None
        self.weights: Vector | None = None


class SparsePolyPart(PolyPart):
    """Examples on a worker, with the conjunctions in use."""

    def __init__(self, blocks: list[Block], packing: PolyPacking) -> None:
        super().__init__(blocks, replace(packing, threads=worker_threads(packing.threads)))
        self.lock = threading.Lock()
        self.sparse: SparseRows | None = None

    def __reduce__(self) -> Any:
        raise TypeError("a part of the training rows stays on its worker")


# --- Before questions --------------------------------------------------------------------------------------


def count_columns(part: PolyPart) -> Answer:
    """How often columns occur; after that, how many values are not 1, and how many pairs rows have."""
    rows = part.examples.rows
    counts = np.bincount(rows.indices[rows.data != 0], minlength=rows.shape[1])
    others = np.count_nonzero((rows.data != 1) & (rows.data != 0))
    sizes = np.diff(rows.indptr).astype(np.float64)
    return Answer(packed(np.append(counts, [others, (sizes * (sizes + 1) / 2).sum()])))


def number_columns(part: SparsePolyPart, numbering: Numbering) -> None:
    """Number features as all parts do."""
    with part.lock:
        if part.sparse is None:
            examples = part.examples
            distinct = distinct_examples(
                examples.rows, classes=examples.codes, weights=examples.weights, threads=part.threads
            )
            part.sparse = SparseRows(distinct.renumbered(numbering.columns, binary=numbering.binary))


def use_keys(part: SparsePolyPart, problem: SparseProblem, keys: Keys, version: int) -> bool:
    """Make columns of conjunctions; False if the part does not know the numbering."""
    with part.lock:
        state = part.sparse
        if state is None:
            return False
        if state.part is None or state.problem != problem.name:
            options = replace(problem.options, memory=float(available_bytes()), threads=part.threads)
            state.part = SparsePart(
                state.rows,
                options,
                feature_map=FeatureMap(**problem.map),
                class_weights=problem.factors,
                problem=problem.number,
            )
        state.part.use(keys)
        state.problem, state.version, state.weights = problem.name, version, None
        return True


# --- Questions ---------------------------------------------------------------------------------------------


def _at_point(question: Callable[..., Any]) -> Callable[..., Any]:
    """Answer with the part's rows at a point; None if the part does not know its conjunctions."""

    @wraps(question)
    def answered(part: SparsePolyPart, point: Point, *told: Any) -> Any:
        with part.lock:
            state = part.sparse
            if state is None or (state.problem, state.version) != (point.problem, point.version):
                return None
            assert state.part is not None
            if state.weights is None or not np.array_equal(state.weights, point.weights):
                state.part.move_to(point.weights)
                state.weights = point.weights
            return question(state.part, *told)

    return answered


@_at_point
def judge(rows: SparsePart) -> tuple[float, Vector, Vector]:
    """The loss; its gradient and its curvatures by weight."""
    return rows.loss(), np.asarray(rows.gradients()), np.asarray(rows.curvatures())


@_at_point
def propose(
    rows: SparsePart, gradients: Vector, curvatures: Vector, damping: float, scales: Vector
) -> tuple[Vector, Vector]:
    """Better weights, as far as the part can see; and its share of dual objectives at the point."""
    duals = np.asarray(rows.duals(scales))
    return np.asarray(rows.propose(gradients, curvatures, damping, _NEWTON_STEPS)), duals


@_at_point
def losses_along(rows: SparsePart, direction: Vector, steps: Vector) -> Vector:
    """The losses on a line."""
    return np.asarray(rows.losses_along(direction, steps))


@_at_point
def losses_at(rows: SparsePart, changes: NDArray[np.float64]) -> Vector:
    """The losses after each of some changes of the weights."""
    return np.array([rows.losses_along(change, np.ones(1))[0] for change in changes])


@_at_point
def hessian_product(rows: SparsePart, direction: Vector) -> Vector:
    """The Hessian of the loss times a direction."""
    return np.asarray(rows.hessian_product(direction))


@_at_point
def duals(rows: SparsePart, scales: Vector) -> Vector:
    """The share of dual objectives, for gradients of the loss times these scales."""
    return np.asarray(rows.duals(scales))


@_at_point
def feature_bounds(rows: SparsePart, output: int) -> Vector:
    """Sums of features, and bounds of longer conjunctions, one after the other."""
    return np.concatenate(rows.feature_bounds(output))


@_at_point
def bucket_bounds(rows: SparsePart, output: int, live: Flags, pairs: Flags, buckets: int) -> Vector:
    """The largest sums in buckets, and the smallest."""
    largest, smallest, _ = rows.bucket_bounds(output, live, pairs, buckets)
    return np.concatenate([largest, smallest])


@_at_point
def pair_bounds(rows: SparsePart, output: int, live: Flags, buckets: int) -> Vector:
    """Bounds of the triples below the pairs in buckets."""
    *_, below = rows.bucket_bounds(output, live, np.empty(0, np.uint8), buckets)
    return np.asarray(below)


@_at_point
def occurring(rows: SparsePart) -> Keys:
    """All conjunctions of several features that occur."""
    return np.asarray(rows.occurring())


@dataclass(frozen=True, eq=False)
class KeySums:
    """Conjunctions and their sums."""

    keys: Keys
    sums: Vector

    @property
    def nbytes(self) -> int:
        """What is sent, but for a few bytes."""
        return self.keys.nbytes + self.sums.nbytes

    def __sizeof__(self) -> int:
        """For Dask, which weighs what it moves."""
        return self.nbytes + 64


@_at_point
def sums_in_buckets(rows: SparsePart, output: int, live: Flags, pairs: Flags, wanted: Flags) -> KeySums:
    """The sums of all conjunctions in some buckets."""
    keys, sums = rows.sums_in_buckets(output, live, pairs, wanted)
    return KeySums(np.asarray(keys), np.asarray(sums))


def sums_together(*pieces: KeySums | None) -> KeySums | None:
    """The sums over several parts; None if one of them has none."""
    if any(piece is None for piece in pieces):
        return None
    given = cast(Sequence[KeySums], pieces)
    keys, places = np.unique(np.concatenate([piece.keys for piece in given]), return_inverse=True)
    sums = np.bincount(places, np.concatenate([piece.sums for piece in given]), len(keys))
    return KeySums(keys, sums.astype(np.float64))


def strongest(pieces: list[KeySums | None], threshold: float, most: int) -> tuple[KeySums | None, int]:
    """The conjunctions beyond a threshold, strongest first; and how many bytes were sent for them."""
    found = sums_together(*pieces)
    if found is None:
        return None, 0
    sent = sum(piece.nbytes for piece in pieces if piece is not None)
    strengths = np.abs(found.sums)
    order = np.lexsort((found.keys, -strengths))
    chosen = order[: min(most, int(np.count_nonzero(strengths > threshold)))]
    return KeySums(found.keys[chosen], found.sums[chosen]), sent
