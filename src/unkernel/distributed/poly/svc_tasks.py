"""What workers do for polynomial SVMs: examples, the problem of some of them, and verdicts on its solution.

Tasks keep no state: a part or a solution that is lost is made again, and asked again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from dask.distributed import get_worker
from numpy.typing import NDArray
from sklearn.base import clone

from unkernel._core import DistinctRows, distinct_examples
from unkernel.data.rows.csr import CsrRows
from unkernel.distributed.cluster.packed_vectors import Vector
from unkernel.distributed.cluster.row_tasks import Block, aligned_rows
from unkernel.engines import CompiledClassifier
from unkernel.learners.base import LazyClassifier, Outcome
from unkernel.models import ConjunctionModel, KernelModel
from unkernel.poly import PolySVC
from unkernel.poly._base import DualStart, Start, TrainingSet

Places = NDArray[np.int32]  # of examples in their part

_SLACK = 0.1  # rows whose margin is at most 1 + this are wanted as members


# --- Rows --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Examples:
    """Distinct rows, each with a class and a weight."""

    rows: CsrRows
    codes: NDArray[np.int32]
    weights: Vector

    @classmethod
    def merged(
        cls, rows: CsrRows, codes: NDArray[np.int32], weights: Vector | None, distinct: DistinctRows
    ) -> Examples:
        """Equal rows of the same class as one, with the sum of their weights; no rows without weight."""
        places = np.asarray(distinct.places)
        counted = np.flatnonzero(places >= 0)
        keys = places[counted].astype(np.int64) * (int(codes.max(initial=0)) + 1) + codes[counted]
        _, first, group = np.unique(keys, return_index=True, return_inverse=True)
        summed = np.bincount(group, None if weights is None else weights[counted], minlength=len(first))
        chosen = counted[first]
        return cls(rows[chosen], codes[chosen], summed.astype(np.float64))

    def sent(self, places: Places) -> SentExamples:
        """Some of them, for another worker."""
        rows, codes, weights = self.rows[places], self.codes[places], self.weights[places]
        return SentExamples(
            np.diff(rows.indptr).astype(np.int32),
            rows.indices,
            rows.data if (rows.data != 1.0).any() else None,
            codes,
            weights if (weights != 1.0).any() else None,
        )


@dataclass(frozen=True, eq=False)
class SentExamples:
    """Examples in fewer bytes: values and weights that are all 1 are left out."""

    sizes: NDArray[np.int32]
    columns: NDArray[Any]
    values: Vector | None
    codes: NDArray[np.int32]
    weights: Vector | None

    @property
    def nbytes(self) -> int:
        """What is sent, but for a few bytes."""
        arrays = (self.sizes, self.columns, self.values, self.codes, self.weights)
        return sum(array.nbytes for array in arrays if array is not None)

    def __sizeof__(self) -> int:
        """For Dask, which weighs what it moves."""
        return self.nbytes + 64

    def unpacked(self, n_features: int) -> Examples:
        """The examples."""
        ends = np.cumsum(self.sizes, dtype=np.int64)
        values = np.ones(len(self.columns)) if self.values is None else self.values
        weights = np.ones(len(self.codes)) if self.weights is None else self.weights
        rows = CsrRows.of(np.concatenate([[0], ends]), self.columns, values, n_features)
        return Examples(rows, self.codes, weights)


def sent_together(*pieces: SentExamples) -> SentExamples:
    """The examples of several parts."""

    def joined(name: str, counted: str) -> Any:
        """Values or weights of all pieces; ones only where another piece has others."""
        arrays = [getattr(piece, name) for piece in pieces]
        if all(array is None for array in arrays):
            return None
        lengths = [len(getattr(piece, counted)) for piece in pieces]
        ones = zip(arrays, lengths, strict=True)
        return np.concatenate([np.ones(length) if array is None else array for array, length in ones])

    return SentExamples(
        np.concatenate([piece.sizes for piece in pieces]),
        np.concatenate([piece.columns for piece in pieces]),
        joined("values", "columns"),
        np.concatenate([piece.codes for piece in pieces]),
        joined("weights", "codes"),
    )


@dataclass(frozen=True)
class Moments:
    """The mean and the variance of all entries of rows, zeros too, and the weight of the rows."""

    weight: float
    mean: float
    spread: float

    @classmethod
    def together(cls, parts: Sequence[Moments]) -> Moments:
        """Those of all parts' rows."""
        weights = np.array([part.weight for part in parts])
        means = np.array([part.mean for part in parts])
        total = weights.sum()
        mean = weights @ means / total
        spreads = np.array([part.spread for part in parts]) + (means - mean) ** 2
        return cls(float(total), float(mean), float(weights @ spreads / total))

    def variance(self, n_features: int) -> float:
        """As that of ``DistinctRows``, for ``gamma="scale"``."""
        return self.spread


@dataclass(frozen=True, eq=False)
class PolyPacking:
    """How blocks become a part."""

    first_index: int
    n_features: int
    classes: NDArray[Any]
    threads: int | None  # None is as many as the worker has


class PolyPart:
    """Examples on a worker."""

    def __init__(self, blocks: list[Block], packing: PolyPacking) -> None:
        rows = aligned_rows(blocks, packing.first_index, packing.n_features)
        labels = np.concatenate([block.y for block in blocks])
        known = [block.weights for block in blocks if block.weights is not None]
        weights = np.concatenate(known) if known else None
        codes = np.searchsorted(packing.classes, labels).clip(max=len(packing.classes) - 1).astype(np.int32)
        distinct = distinct_examples(
            rows,
            classes=codes,
            weights=np.empty(0) if weights is None else weights,
            threads=packing.threads or 1,
        )
        self.examples = Examples.merged(rows, codes, weights, distinct)
        self.moments = self._moments(float(distinct.variance(packing.n_features)))
        self._threads = packing.threads

    def __sizeof__(self) -> int:
        """For Dask's account of memory."""
        return self.examples.rows.nbytes + 12 * len(self.examples.codes)

    @property
    def threads(self) -> int:
        """Threads for a task."""
        return worker_threads(self._threads)

    def _moments(self, variance: float) -> Moments:
        rows, weights = self.examples.rows, self.examples.weights
        entries = weights.sum() * rows.shape[1]
        total = float(weights[rows.row_of_entry()] @ rows.data)
        return Moments(float(weights.sum()), total / entries if entries > 0 else 0.0, variance)


def worker_threads(threads: int | None) -> int:
    """Threads for a task; None is as many as its worker has."""
    return threads or int(get_worker().state.nthreads)


# --- Tasks -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PolyProblem:
    """What is solved: a learner's parameters, and what must be known of all rows."""

    learner: PolySVC
    classes: NDArray[Any]
    factors: list[float]  # of C, one per class
    gamma: float
    n_features: int
    threads: int | None


@dataclass(frozen=True, eq=False)
class Effort:
    """From where a problem is solved, how exactly, and with how many passes at most."""

    start: DualStart | None
    tolerance: float
    passes: int


@dataclass(frozen=True, eq=False)
class Solved:
    """The solution of the members' problem; of each one-versus-rest problem, the objective and the bound."""

    objectives: Vector
    bounds: Vector
    passes: int
    duals: DualStart | None
    storage: str
    rows_nbytes: int
    model_nbytes: int
    model: ConjunctionModel | KernelModel | None

    def __sizeof__(self) -> int:
        """For Dask, which weighs what it moves."""
        return self.model_nbytes + 64


@dataclass(frozen=True, eq=False)
class Verdict:
    """What a part says of a model: the losses of rows that are no members, and which rows should be."""

    losses: Vector  # one per problem
    wanted: Places


def moments_of(part: PolyPart) -> tuple[int, Moments]:
    """How many examples there are, and their mean and variance."""
    return len(part.examples.codes), part.moments


def sampled_places(part: PolyPart, step: int) -> Places:
    """Every so many examples of each class: they are in the order of their hashes, as good as random."""
    codes = part.examples.codes
    chosen = [np.flatnonzero(codes == code)[::step] for code in np.unique(codes)]
    return np.sort(np.concatenate([np.empty(0, np.int64), *chosen])).astype(np.int32)


def members_of(part: PolyPart, members: Places) -> SentExamples:
    """The members of the part, on their way to the worker that solves."""
    return part.examples.sent(members)


def solve_members(pieces: list[SentExamples], problem: PolyProblem, effort: Effort) -> Solved:
    """Solve the problem of the members."""
    sent = sent_together(*pieces)
    examples = sent.unpacked(problem.n_features)
    threads = worker_threads(problem.threads)
    learner = clone(problem.learner).set_params(tol=effort.tolerance, max_iter=effort.passes, n_jobs=threads)
    learner.classes_, learner.gamma_, learner.n_features_in_ = (
        problem.classes,
        problem.gamma,
        problem.n_features,
    )
    rows = learner._merge_equal_rows(examples.rows, examples.codes, examples.weights)
    trained = learner._train(TrainingSet(rows, problem.factors), Start(effort.start), None)
    outcomes = [Outcome(*outcome) for outcome in trained["outcomes"]]
    model = learner._make_model(rows, trained, {})
    return Solved(
        objectives=np.array([outcome.objective for outcome in outcomes]),
        bounds=np.array([outcome.bound for outcome in outcomes]),
        passes=max(outcome.rounds for outcome in outcomes),
        duals=_without_zeros(learner._get_duals(rows, trained)),
        storage=learner.storage_,
        rows_nbytes=sent.nbytes,
        model_nbytes=_nbytes(model),
        model=model,
    )


def _without_zeros(duals: DualStart | None) -> DualStart | None:
    if duals is None:
        return None
    used = duals.duals.any(axis=1)
    return DualStart(duals.classes, duals.hashes[used], duals.duals[used])


def _nbytes(model: ConjunctionModel | KernelModel) -> int:
    return sum(int(getattr(value, "nbytes", 0)) for value in vars(model).values())


def without_model(solved: Solved) -> Solved:
    """All but the model, which is large."""
    return replace(solved, model=None)


def judge(part: PolyPart, solved: Solved, problem: PolyProblem, members: Places) -> Verdict:
    """Score all rows of a part by a model."""
    assert solved.model is not None
    codes, weights = part.examples.codes, part.examples.weights
    classifier = cast(CompiledClassifier, LazyClassifier(solved.model, part.threads).classifier)
    scores = classifier.score_csr(part.examples.rows, part.threads)
    positive = np.array([1]) if scores.shape[1] == 1 else np.arange(scores.shape[1])
    lacks = 1.0 - np.where(codes[:, None] == positive, scores, -scores)
    losses = np.maximum(lacks, 0.0) ** (2 if problem.learner.loss == "squared_hinge" else 1)
    costs = problem.learner.C * np.array(problem.factors)[codes] * weights
    costs[members] = 0.0
    wanted = np.flatnonzero((lacks >= -_SLACK).any(axis=1))
    return Verdict(costs @ losses, wanted.astype(np.int32))
