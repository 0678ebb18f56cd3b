"""The tasks of sparse models: shares of the objective, proposals for weights, and sums of conjunctions.

A part stores its columns of the conjunctions in use. A rebuilt part has none, and answers None until it
receives them. Requests contain the weights, so there is no other state to lose.
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
from unkernel.distributed.cluster.packed_vectors import Answer, Payload, Vector, pack_vector
from unkernel.distributed.cluster.row_blocks import Block
from unkernel.distributed.cluster.row_parts import worker_threads
from unkernel.distributed.poly.svc_tasks import PolyPacking, PolyPart
from unkernel.poly.options import SparseOptions

_PROPOSAL_NEWTON_STEPS = 1

Keys = NDArray[np.uint64]
Flags = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Numbering:
    """The numbers of features, the same in all parts, and facts about their values."""

    columns: NDArray[np.int64]
    binary: bool  # whether all values of all parts are 1
    pairs: float  # of features in the same row, over all rows


@dataclass(frozen=True, eq=False)
class SparseProblem:
    """The problem to solve: one class versus the rest, or all classes at once."""

    name: str  # unique
    number: int
    options: SparseOptions  # except memory and threads, which depend on the worker
    map: dict[str, Any]  # of FeatureMap
    factors: list[float]  # of C, one per class

    @property
    def outputs(self) -> int:
        """Return the number of scores per row."""
        classes = len(self.factors)
        return classes if self.options.loss == "logistic" and classes > 2 else 1


@dataclass(frozen=True, eq=False)
class Point:
    """Weights of the conjunctions in use, output by output."""

    problem: str
    version: int  # of the conjunctions in use
    weights: Vector


class SparseRows:
    """The state of a part."""

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


# --- Preparation -------------------------------------------------------------------------------------------


def count_columns(part: PolyPart) -> Answer:
    """Return how often columns occur, followed by the number of values other than 1, and of pairs in rows."""
    rows = part.examples.rows
    counts = np.bincount(rows.indices[rows.data != 0], minlength=rows.shape[1])
    others = np.count_nonzero((rows.data != 1) & (rows.data != 0))
    sizes = np.diff(rows.indptr).astype(np.float64)
    return Answer(pack_vector(np.append(counts, [others, (sizes * (sizes + 1) / 2).sum()])))


def number_columns(part: SparsePolyPart, numbering: Numbering) -> None:
    """Number the features of a part as in all other parts."""
    with part.lock:
        if part.sparse is None:
            examples = part.examples
            distinct = distinct_examples(
                examples.rows, classes=examples.codes, weights=examples.weights, threads=part.threads
            )
            part.sparse = SparseRows(distinct.renumbered(numbering.columns, binary=numbering.binary))


def use_keys(part: SparsePolyPart, problem: SparseProblem, keys: Keys, version: int) -> bool:
    """Make columns of conjunctions; return False if the part does not know the numbering."""
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


# --- Requests ----------------------------------------------------------------------------------------------


def _at_point(question: Callable[..., Any]) -> Callable[..., Any]:
    """Move the part's rows to a point before a request; answer None if its conjunctions are unknown."""

    @wraps(question)
    def answer(part: SparsePolyPart, point: Point, *sent: Any) -> Any:
        with part.lock:
            state = part.sparse
            if state is None or (state.problem, state.version) != (point.problem, point.version):
                return None
            assert state.part is not None
            if state.weights is None or not np.array_equal(state.weights, point.weights):
                state.part.move_to(point.weights)
                state.weights = point.weights
            return question(state.part, *sent)

    return answer


@_at_point
def judge(rows: SparsePart) -> tuple[float, Vector, Vector]:
    """Return the loss, and its gradient and curvatures by weight."""
    return rows.loss(), np.asarray(rows.gradients()), np.asarray(rows.curvatures())


@_at_point
def propose(
    rows: SparsePart, gradients: Vector, curvatures: Vector, damping: float, scales: Vector
) -> tuple[Vector, Vector]:
    """Return better weights for the rows of the part, and its share of dual objectives at the point."""
    duals = np.asarray(rows.duals(scales))
    return np.asarray(rows.propose(gradients, curvatures, damping, _PROPOSAL_NEWTON_STEPS)), duals


@_at_point
def losses_along(rows: SparsePart, direction: Vector, steps: Vector) -> Vector:
    """Return the losses at steps on a line."""
    return np.asarray(rows.losses_along(direction, steps))


@_at_point
def losses_at(rows: SparsePart, changes: NDArray[np.float64]) -> Vector:
    """Return the losses after each of several changes of the weights."""
    return np.array([rows.losses_along(change, np.ones(1))[0] for change in changes])


@_at_point
def hessian_product(rows: SparsePart, direction: Vector) -> Vector:
    """Return the Hessian of the loss times a direction."""
    return np.asarray(rows.hessian_product(direction))


@_at_point
def duals(rows: SparsePart, scales: Vector) -> Vector:
    """Return the share of dual objectives, for gradients of the loss times these scales."""
    return np.asarray(rows.duals(scales))


@_at_point
def feature_bounds(rows: SparsePart, output: int) -> Vector:
    """Return sums of features, followed by bounds of longer conjunctions."""
    return np.concatenate(rows.feature_bounds(output))


@_at_point
def bucket_bounds(rows: SparsePart, output: int, live: Flags, pairs: Flags, buckets: int) -> Vector:
    """Return the largest sums in buckets, followed by the smallest."""
    largest, smallest, _ = rows.bucket_bounds(output, live, pairs, buckets)
    return np.concatenate([largest, smallest])


@_at_point
def pair_bounds(rows: SparsePart, output: int, live: Flags, buckets: int) -> Vector:
    """Return bounds of the triples below the pairs in buckets."""
    *_, below = rows.bucket_bounds(output, live, np.empty(0, np.uint8), buckets)
    return np.asarray(below)


@_at_point
def find_occurring(rows: SparsePart) -> Keys:
    """Return all conjunctions of several features that occur."""
    return np.asarray(rows.occurring())


@dataclass(frozen=True, eq=False)
class KeySums(Payload):
    """Conjunctions and their sums."""

    keys: Keys
    sums: Vector


@_at_point
def sum_buckets(rows: SparsePart, output: int, live: Flags, pairs: Flags, wanted: Flags) -> KeySums:
    """Return the sums of all conjunctions in some buckets."""
    keys, sums = rows.sums_in_buckets(output, live, pairs, wanted)
    return KeySums(np.asarray(keys), np.asarray(sums))


def add_key_sums(*pieces: KeySums | None) -> KeySums | None:
    """Return the sums over several parts; None if one of them has lost its state."""
    if any(piece is None for piece in pieces):
        return None
    given = cast(Sequence[KeySums], pieces)
    keys, places = np.unique(np.concatenate([piece.keys for piece in given]), return_inverse=True)
    sums = np.bincount(places, np.concatenate([piece.sums for piece in given]), len(keys))
    return KeySums(keys, sums.astype(np.float64))


def find_strongest(
    pieces: list[KeySums | None], threshold: float, max_count: int
) -> tuple[KeySums | None, int]:
    """Return the conjunctions beyond a threshold, strongest first, and the bytes sent for them."""
    found = add_key_sums(*pieces)
    if found is None:
        return None, 0
    sent = sum(piece.nbytes for piece in pieces if piece is not None)
    strengths = np.abs(found.sums)
    order = np.lexsort((found.keys, -strengths))
    chosen = order[: min(max_count, int(np.count_nonzero(strengths > threshold)))]
    return KeySums(found.keys[chosen], found.sums[chosen]), sent
