"""The tasks of sparse solvers: shares of the objective, proposals of weights, and gradients of conjunctions.

A part stores the columns of the conjunctions in use. A rebuilt part has no columns, and returns None until it
receives the list of conjunctions. There is no other state: every request contains the weights.
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
from unkernel.distributed.cluster.row_parts import get_worker_threads
from unkernel.distributed.poly.svc_tasks import PolyPacking, PolyPart
from unkernel.poly.options import SparseOptions

_PROPOSAL_NEWTON_STEPS = 1

Keys = NDArray[np.uint64]
Flags = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Numbering:
    """The numbering of features, shared by all parts, and facts about all rows."""

    columns: NDArray[np.int64]
    binary: bool  # whether all values in all parts are 1
    pairs: float  # number of pairs of features in the same row, over all rows


@dataclass(frozen=True, eq=False)
class SparseProblem:
    """The problem to solve: one class versus the rest, or all classes jointly."""

    name: str  # unique name
    number: int
    options: SparseOptions  # without memory, threads and targets, which depend on the worker
    map: dict[str, Any]  # arguments of FeatureMap
    factors: list[float]  # factors of C, one per class; empty in regression
    centre: float = 0.0  # subtracted from the targets in regression

    @property
    def outputs(self) -> int:
        """Number of scores per row."""
        classes = len(self.factors)
        return classes if self.options.loss == "logistic" and classes > 2 else 1


@dataclass(frozen=True, eq=False)
class Point:
    """The weights of the conjunctions in use, output by output."""

    problem: str
    version: int  # version of the list of conjunctions in use
    weights: Vector


class SparseRows:
    """The state of a part: its rows, with the conjunctions and weights in use."""

    def __init__(self, rows: DistinctRows) -> None:
        self.rows = rows
        self.problem = ""
        self.version = 0
        self.part: SparsePart | None = None
        self.weights: Vector | None = None


class SparsePolyPart(PolyPart):
    """Examples on a worker, with the conjunctions in use."""

    def __init__(self, blocks: list[Block], packing: PolyPacking) -> None:
        super().__init__(blocks, replace(packing, threads=get_worker_threads(packing.threads)))
        self.lock = threading.Lock()
        self.sparse: SparseRows | None = None

    def __reduce__(self) -> Any:
        raise TypeError("a part of the training rows stays on its worker")


# --- Preparation -------------------------------------------------------------------------------------------


def count_columns(part: PolyPart) -> Answer:
    """Return the number of rows with each feature, then the numbers of values other than 1 and of pairs."""
    rows = part.examples.rows
    counts = np.bincount(rows.indices[rows.data != 0], minlength=rows.shape[1])
    n_not_one = np.count_nonzero((rows.data != 1) & (rows.data != 0))
    sizes = np.diff(rows.indptr).astype(np.float64)
    return Answer(pack_vector(np.append(counts, [n_not_one, (sizes * (sizes + 1) / 2).sum()])))


def number_columns(part: SparsePolyPart, numbering: Numbering) -> None:
    """Renumber the features of a part by the numbering that all parts share."""
    with part.lock:
        if part.sparse is None:
            examples = part.examples
            distinct = distinct_examples(
                examples.rows,
                classes=examples.codes,
                weights=examples.weights,
                merge_classes=not len(part.targets),
                threads=part.threads,
            )
            part.sparse = SparseRows(distinct.renumbered(numbering.columns, binary=numbering.binary))


def use_keys(part: SparsePolyPart, problem: SparseProblem, keys: Keys, version: int) -> bool:
    """Build the columns of the given conjunctions; return False if the part lacks the numbering."""
    with part.lock:
        state = part.sparse
        if state is None:
            return False
        if state.part is None or state.problem != problem.name:
            options = replace(
                problem.options,
                memory=float(available_bytes()),
                threads=part.threads,
                targets=part.targets - problem.centre,
            )
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


def _at_point(request: Callable[..., Any]) -> Callable[..., Any]:
    """Set the weights of a part before a request; return None if the part lacks the conjunctions."""

    @wraps(request)
    def answer(part: SparsePolyPart, point: Point, *arguments: Any) -> Any:
        with part.lock:
            state = part.sparse
            if state is None or (state.problem, state.version) != (point.problem, point.version):
                return None
            assert state.part is not None
            if state.weights is None or not np.array_equal(state.weights, point.weights):
                state.part.move_to(point.weights)
                state.weights = point.weights
            return request(state.part, *arguments)

    return answer


@_at_point
def judge(rows: SparsePart) -> tuple[float, Vector, Vector]:
    """Return the loss of the part, its gradient, and its second derivative for each weight."""
    return rows.loss(), np.asarray(rows.gradients()), np.asarray(rows.curvatures())


@_at_point
def propose(
    rows: SparsePart, gradients: Vector, curvatures: Vector, damping: float, scales: Vector
) -> tuple[Vector, Vector]:
    """Return weights that lower the part's objective, and the part's share of the dual objectives."""
    duals = np.asarray(rows.duals(scales))
    return np.asarray(rows.propose(gradients, curvatures, damping, _PROPOSAL_NEWTON_STEPS)), duals


@_at_point
def losses_along(rows: SparsePart, direction: Vector, steps: Vector) -> Vector:
    """Return the loss of the part at each step on the line from the current weights."""
    return np.asarray(rows.losses_along(direction, steps))


@_at_point
def losses_at(rows: SparsePart, changes: NDArray[np.float64]) -> Vector:
    """Return the loss after each change of the weights; `changes` has one row per change."""
    return np.array([rows.losses_along(change, np.ones(1))[0] for change in changes])


@_at_point
def hessian_product(rows: SparsePart, direction: Vector) -> Vector:
    """Return the product of the Hessian of the part's loss with a direction."""
    return np.asarray(rows.hessian_product(direction))


@_at_point
def duals(rows: SparsePart, scales: Vector) -> Vector:
    """Return the part's share of the dual objectives, for the loss gradients scaled by each of `scales`."""
    return np.asarray(rows.duals(scales))


@_at_point
def feature_bounds(rows: SparsePart, output: int) -> Vector:
    """Return each feature's gradient, then bounds for longer conjunctions whose rarest feature it is."""
    return np.concatenate(rows.feature_bounds(output))


@_at_point
def bucket_bounds(rows: SparsePart, output: int, live: Flags, pairs: Flags, buckets: int) -> Vector:
    """Return the largest gradient in each bucket of conjunctions, then the smallest in each bucket."""
    largest, smallest, _ = rows.bucket_bounds(output, live, pairs, buckets)
    return np.concatenate([largest, smallest])


@_at_point
def pair_bounds(rows: SparsePart, output: int, live: Flags, buckets: int) -> Vector:
    """Return, for each bucket of pairs, a bound on the gradients of triples that extend a pair in it."""
    *_, below = rows.bucket_bounds(output, live, np.empty(0, np.uint8), buckets)
    return np.asarray(below)


@_at_point
def find_occurring(rows: SparsePart) -> Keys:
    """Return all conjunctions of two or more features that occur in the part."""
    return np.asarray(rows.occurring())


@dataclass(frozen=True, eq=False)
class KeySums(Payload):
    """Conjunctions and their gradients, summed over rows."""

    keys: Keys
    sums: Vector


@_at_point
def sum_buckets(rows: SparsePart, output: int, live: Flags, pairs: Flags, wanted: Flags) -> KeySums:
    """Return the gradients of all conjunctions in the wanted buckets."""
    keys, sums = rows.sums_in_buckets(output, live, pairs, wanted)
    return KeySums(np.asarray(keys), np.asarray(sums))


def add_key_sums(*pieces: KeySums | None) -> KeySums | None:
    """Return the sums over several parts; None if a part has lost its state."""
    if any(piece is None for piece in pieces):
        return None
    complete = cast(Sequence[KeySums], pieces)
    keys, index_of_key = np.unique(np.concatenate([piece.keys for piece in complete]), return_inverse=True)
    sums = np.bincount(index_of_key, np.concatenate([piece.sums for piece in complete]), len(keys))
    return KeySums(keys, sums.astype(np.float64))


def find_strongest(
    pieces: list[KeySums | None], threshold: float, max_count: int
) -> tuple[KeySums | None, int]:
    """Return the conjunctions above a threshold, strongest first, and the number of bytes of all pieces."""
    sums_of_all = add_key_sums(*pieces)
    if sums_of_all is None:
        return None, 0
    n_bytes = sum(piece.nbytes for piece in pieces if piece is not None)
    strengths = np.abs(sums_of_all.sums)
    order = np.lexsort((sums_of_all.keys, -strengths))
    chosen = order[: min(max_count, int(np.count_nonzero(strengths > threshold)))]
    return KeySums(sums_of_all.keys[chosen], sums_of_all.sums[chosen]), n_bytes
