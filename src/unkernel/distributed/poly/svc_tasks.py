"""The tasks of polynomial SVMs: merge equal examples, train on the members, and check the solution.

Tasks have no state. If parts or solutions are lost, they are rebuilt and their tasks are repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from unkernel._core import DistinctRows, distinct_examples
from unkernel.data.rows.csr import CsrRows
from unkernel.distributed.cluster.packed_vectors import Payload, Vector, count_bytes
from unkernel.distributed.cluster.row_blocks import Block, align_rows, concatenate_arrays
from unkernel.distributed.cluster.row_parts import get_worker_threads
from unkernel.engines import CompiledClassifier
from unkernel.learners.base import LazyClassifier, Outcome
from unkernel.models import ConjunctionModel, KernelModel
from unkernel.poly import PolySVC
from unkernel.poly._base import DualStart, Start, TrainingSet

Places = NDArray[np.int32]  # indices of examples in their part

_MARGIN_SLACK = 0.1  # rows with a margin of at most 1 + _MARGIN_SLACK become members


# --- Rows --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Examples:
    """Distinct rows, each with a class and a weight."""

    rows: CsrRows
    codes: NDArray[np.int32]
    weights: Vector

    @classmethod
    def merge_equal(
        cls, rows: CsrRows, codes: NDArray[np.int32], weights: Vector | None, distinct: DistinctRows
    ) -> Examples:
        """Merge equal rows of the same class, adding up their weights; drop rows of weight 0."""
        row_of_example = np.asarray(distinct.places)
        counted = np.flatnonzero(row_of_example >= 0)
        keys = row_of_example[counted].astype(np.int64) * (int(codes.max(initial=0)) + 1) + codes[counted]
        _, first, group = np.unique(keys, return_index=True, return_inverse=True)
        total_weights = np.bincount(
            group, None if weights is None else weights[counted], minlength=len(first)
        )
        chosen = counted[first]
        return cls(rows[chosen], codes[chosen], total_weights.astype(np.float64))

    def pack(self, places: Places) -> PackedExamples:
        """Pack the examples at these indices for another worker."""
        rows, codes, weights = self.rows[places], self.codes[places], self.weights[places]
        return PackedExamples(
            np.diff(rows.indptr).astype(np.int32),
            rows.indices,
            rows.data if (rows.data != 1.0).any() else None,
            codes,
            weights if (weights != 1.0).any() else None,
        )


@dataclass(frozen=True, eq=False)
class PackedExamples(Payload):
    """Examples in a compact form. Values are omitted if all of them are 1, and so are weights."""

    sizes: NDArray[np.int32]
    columns: NDArray[Any]
    values: Vector | None
    codes: NDArray[np.int32]
    weights: Vector | None

    def unpack(self, n_features: int) -> Examples:
        ends = np.cumsum(self.sizes, dtype=np.int64)
        values = np.ones(len(self.columns)) if self.values is None else self.values
        weights = np.ones(len(self.codes)) if self.weights is None else self.weights
        rows = CsrRows.of(np.concatenate([[0], ends]), self.columns, values, n_features)
        return Examples(rows, self.codes, weights)


def concatenate_examples(*pieces: PackedExamples) -> PackedExamples:
    """Return the examples of several parts."""

    def concatenate(name: str, length_name: str) -> Any:
        """Return the values, or the weights, of all pieces; None if all of them are 1."""
        arrays = [getattr(piece, name) for piece in pieces]
        if all(array is None for array in arrays):
            return None
        lengths = [len(getattr(piece, length_name)) for piece in pieces]
        pairs = zip(arrays, lengths, strict=True)
        return np.concatenate([np.ones(length) if array is None else array for array, length in pairs])

    return PackedExamples(
        np.concatenate([piece.sizes for piece in pieces]),
        np.concatenate([piece.columns for piece in pieces]),
        concatenate("values", "columns"),
        np.concatenate([piece.codes for piece in pieces]),
        concatenate("weights", "codes"),
    )


@dataclass(frozen=True)
class Moments:
    """The mean and the variance of all entries of rows, including zeros, and the total weight of the rows."""

    weight: float
    mean: float
    spread: float  # the variance

    @classmethod
    def merge(cls, parts: Sequence[Moments]) -> Moments:
        """Return the moments of the rows of all parts."""
        weights = np.array([part.weight for part in parts])
        means = np.array([part.mean for part in parts])
        total = weights.sum()
        mean = weights @ means / total
        spreads = np.array([part.spread for part in parts]) + (means - mean) ** 2
        return cls(float(total), float(mean), float(weights @ spreads / total))

    def variance(self, n_features: int) -> float:
        """Return the variance; ``gamma="scale"`` calls this method, also of ``DistinctRows``."""
        return self.spread


@dataclass(frozen=True, eq=False)
class PolyPacking:
    """The parameters of packing blocks into a part."""

    first_index: int
    n_features: int
    classes: NDArray[Any] | None  # None in regression: each part numbers its own targets
    threads: int | None  # None means all of the worker's threads

    def encode(self, labels: NDArray[Any]) -> tuple[Vector, NDArray[np.int32]]:
        """Return the distinct targets of a regression, and the index of each label's class or target."""
        if self.classes is None:
            targets, codes = np.unique(labels.astype(np.float64), return_inverse=True)
            return targets, codes.astype(np.int32)
        codes = np.searchsorted(self.classes, labels).clip(max=len(self.classes) - 1)
        return np.empty(0), codes.astype(np.int32)


class PolyPart:
    """Examples on a worker, and `targets`, the distinct targets of a regression; codes are their indices."""

    def __init__(self, blocks: list[Block], packing: PolyPacking) -> None:
        rows = align_rows(blocks, packing.first_index, packing.n_features)
        labels = np.concatenate([block.y for block in blocks])
        weights = concatenate_arrays([block.weights for block in blocks])
        self.targets, codes = packing.encode(labels)
        distinct = distinct_examples(
            rows,
            classes=codes,
            weights=np.empty(0) if weights is None else weights,
            threads=packing.threads or 1,
        )
        self.examples = Examples.merge_equal(rows, codes, weights, distinct)
        self.moments = self._compute_moments(float(distinct.variance(packing.n_features)))
        self._threads = packing.threads

    def __sizeof__(self) -> int:
        """Return the size of the part in memory, for Dask."""
        return self.examples.rows.nbytes + 12 * len(self.examples.codes)

    @property
    def threads(self) -> int:
        """Number of threads for a task."""
        return get_worker_threads(self._threads)

    def _compute_moments(self, variance: float) -> Moments:
        rows, weights = self.examples.rows, self.examples.weights
        entries = weights.sum() * rows.shape[1]
        total = float(weights[rows.row_of_entry()] @ rows.data)
        return Moments(float(weights.sum()), total / entries if entries > 0 else 0.0, variance)


# --- Tasks -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PolyProblem:
    """The problem to solve: the parameters of a learner, and facts about all rows."""

    learner: PolySVC
    classes: NDArray[Any]
    factors: list[float]  # of C, one per class
    gamma: float
    n_features: int
    threads: int | None


@dataclass(frozen=True, eq=False)
class Effort:
    """The initial values, the tolerance and the largest number of passes of a solver."""

    start: DualStart | None
    tolerance: float
    passes: int


@dataclass(frozen=True, eq=False)
class Solved:
    """The solution for the members, with one objective and one bound per one-versus-rest problem."""

    objectives: Vector
    bounds: Vector
    passes: int
    duals: DualStart | None
    storage: str
    rows_nbytes: int
    model_nbytes: int
    model: ConjunctionModel | KernelModel | None

    def __sizeof__(self) -> int:
        """Return the size in bytes; Dask uses it to decide which results to move."""
        return self.model_nbytes + 64


@dataclass(frozen=True, eq=False)
class Verdict:
    """The result of checking a model on a part: the losses of rows that are not members, and new members."""

    losses: Vector  # one loss per problem
    wanted: Places


def get_moments(part: PolyPart) -> tuple[int, Moments]:
    """Return the number of examples, and the mean and variance of their entries."""
    return len(part.examples.codes), part.moments


def sample_places(part: PolyPart, step: int) -> Places:
    """Return the indices of every `step`-th example of each class; hashes put examples in a random order."""
    codes = part.examples.codes
    chosen = [np.flatnonzero(codes == code)[::step] for code in np.unique(codes)]
    return np.sort(np.concatenate([np.empty(0, np.int64), *chosen])).astype(np.int32)


def select_members(part: PolyPart, members: Places) -> PackedExamples:
    """Return the members of the part, packed for the worker that trains on them."""
    return part.examples.pack(members)


def solve_members(pieces: list[PackedExamples], problem: PolyProblem, effort: Effort) -> Solved:
    """Train on the members of all parts."""
    packed = concatenate_examples(*pieces)
    examples = packed.unpack(problem.n_features)
    threads = get_worker_threads(problem.threads)
    learner = clone(problem.learner).set_params(tol=effort.tolerance, max_iter=effort.passes, n_jobs=threads)
    learner.classes_, learner.gamma_ = problem.classes, problem.gamma
    learner.n_features_in_ = problem.n_features
    rows = learner._merge_equal_rows(examples.rows, examples.codes, examples.weights)
    solution = learner._train(TrainingSet(rows, problem.factors), Start(effort.start), None)
    outcomes = [Outcome(*outcome) for outcome in solution.outcomes]
    model = learner._make_model(rows, solution, {})
    return Solved(
        objectives=np.array([outcome.objective for outcome in outcomes]),
        bounds=np.array([outcome.bound for outcome in outcomes]),
        passes=max(outcome.rounds for outcome in outcomes),
        duals=_drop_zeros(learner._get_duals(rows, solution)),
        storage=learner.storage_,
        rows_nbytes=packed.nbytes,
        model_nbytes=count_bytes(vars(model)),
        model=model,
    )


def _drop_zeros(duals: DualStart | None) -> DualStart | None:
    if duals is None:
        return None
    used = duals.duals.any(axis=1)
    return DualStart(duals.classes, duals.hashes[used], duals.duals[used])


def drop_model(solved: Solved) -> Solved:
    """Return the solution without the model, which is large."""
    return replace(solved, model=None)


def judge(part: PolyPart, solved: Solved, problem: PolyProblem, members: Places) -> Verdict:
    """Score all rows of a part with the model of a solution, and return losses and new members."""
    assert solved.model is not None
    codes, weights = part.examples.codes, part.examples.weights
    classifier = cast(CompiledClassifier, LazyClassifier(solved.model, part.threads).classifier)
    scores = classifier.score_csr(part.examples.rows, part.threads)
    positive = np.array([1]) if scores.shape[1] == 1 else np.arange(scores.shape[1])
    deficits = 1.0 - np.where(codes[:, None] == positive, scores, -scores)
    losses = np.maximum(deficits, 0.0) ** (2 if problem.learner.loss == "squared_hinge" else 1)
    costs = problem.learner.C * np.array(problem.factors)[codes] * weights
    costs[members] = 0.0
    wanted = np.flatnonzero((deficits >= -_MARGIN_SLACK).any(axis=1))
    return Verdict(costs @ losses, wanted.astype(np.int32))
