"""Train sparse models for rows on many workers; only the weights of the conjunctions in use are sent.

A round has two halves.

- **Search**: the conjunctions whose gradients exceed the l1 penalty most are added to the conjunctions in
  use. The search is exact: it considers all conjunctions of all parts (``partial_sums.hpp``). The largest
  gradient determines the dual objective, and the gap is certified for all conjunctions and all rows.
- **Steps**: each part proposes weights that lower its approximation of the objective of all rows
  (``anchored_loss.hpp``). The direction from the current weights to the mean of the proposals is a descent
  direction. One request returns the losses of all rows at several step lengths. Then all nonzero weights take
  a Newton step together, by conjugate gradients. Weights that would change their sign become 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from unkernel._core import FeatureMap, conjunction_constants
from unkernel.distributed.cluster.packed_vectors import Vector
from unkernel.distributed.poly.sparse_shards import SparseShards
from unkernel.distributed.poly.sparse_tasks import (
    Keys,
    KeySums,
    Numbering,
    Point,
    SparseProblem,
    bucket_bounds,
    duals,
    feature_bounds,
    hessian_product,
    losses_along,
    losses_at,
    pair_bounds,
)
from unkernel.models.numbering import encode

_MIN_KEYS_PER_SEARCH = 128  # a search may add so many conjunctions, or as many as there are nonzero weights
_MAX_STEPS_PER_ROUND = 4
_LENGTHS = np.concatenate([np.geomspace(1e-4, 0.1, 7), np.linspace(0.2, 1.2, 11), [1.5, 2.0, 3.0]])
# Limits of the damping of proposals, which increases after short steps and decreases after long steps.
_MIN_DAMPING, _MAX_DAMPING = 1e-4, 1e6
_MAX_PRODUCTS = 15  # products with the Hessian per joint step
_ACCURACY = 0.1  # relative accuracy of joint steps
_JOINT_LENGTHS = (1.0, 0.5, 0.2, 0.05)
_DUAL_SCALES = 64  # number of factors of the gradients to try for the dual objective of an elastic net
_ROUNDING = 1.0 + 1e-9  # safety factor of bounds: the order of summation changes the last bits
_MIN_BUCKETS, _MAX_BUCKETS = 1 << 8, 1 << 19  # limits of the number of buckets of conjunctions


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The result of a search: the conjunctions that most violate the optimality conditions of any output."""

    keys: Keys
    strengths: Vector
    largest: float  # upper bound of the strengths (absolute gradients) of all conjunctions
    complete: bool  # whether `keys` has all conjunctions whose strengths exceed the l1 penalty


@dataclass(frozen=True, eq=False)
class SparseProgress:
    """The state after a search."""

    steps: int
    rounds: int
    conjunctions: int
    objective: float
    bound: float

    @property
    def gap(self) -> float:
        """The relative gap (P - D) / P of objective P and bound D, at least 0."""
        return max(self.objective - self.bound, 0.0) / self.objective if self.objective > 0 else 0.0


@dataclass(eq=False)
class SparseSolution:
    """The weights of the conjunctions in use, and the progress after each search."""

    keys: Keys
    weights: NDArray[np.float64]  # outputs x keys, in the units in which they are penalised
    progress: list[SparseProgress] = field(default_factory=list)

    @property
    def last(self) -> SparseProgress:
        """The final state."""
        return self.progress[-1]


@dataclass(frozen=True, eq=False)
class State:
    """The objective of all rows at a point, and the derivatives of the loss."""

    point: Point
    objective: float
    gradients: Vector  # derivative of the loss with respect to each weight
    curvatures: Vector


def conjugate_gradients(
    product: Callable[[Vector], Vector],
    target: Vector,
    inverse: Vector,
    max_products: int,
    accuracy: float,
    *,
    max_residual: float = 0.0,
) -> Vector:
    """Solve ``product(x) = target`` approximately, preconditioned by the inverse diagonal `inverse`.

    Stop when the preconditioned norm of the residual has fallen to `accuracy` times the initial one, or its
    Euclidean norm to `max_residual`.
    """
    solution = np.zeros_like(target)
    residual = target.copy()
    scaled = inverse * residual
    direction, size = scaled, float(residual @ scaled)
    goal = accuracy**2 * size
    for _ in range(max_products):
        if not size > goal or np.linalg.norm(residual) <= max_residual:
            break
        image = product(direction)
        curvature = float(direction @ image)
        if not curvature > 0:
            break
        solution = solution + size / curvature * direction
        residual = residual - size / curvature * image
        scaled = inverse * residual
        previous_size, size = size, float(residual @ scaled)
        direction = scaled + size / previous_size * direction
    return solution


class SparseSolver:
    """Solves one problem by searches and steps."""

    def __init__(
        self,
        shards: SparseShards,
        problem: SparseProblem,
        numbering: Numbering,
        on_round: Callable[[SparseProgress], None],
    ) -> None:
        self._shards = shards
        self._problem = problem
        self._on_round = on_round
        self._l1, self._l2 = problem.options.l1, problem.options.l2
        self._buckets = 1 << int(np.clip(numbering.pairs, _MIN_BUCKETS, _MAX_BUCKETS) - 1).bit_length()
        self._degree = int(problem.map["degree"])
        self._features = len(numbering.columns)
        self._binary = numbering.binary
        self._version = 0
        self._damping = _MIN_DAMPING
        self.steps = 0

    @property
    def longest_sum(self) -> int:
        """The length of the longest vector that is summed over all parts."""
        return 2 * self._buckets

    def solve(self, start: SparseSolution | None = None) -> SparseSolution:
        """Alternate searches and steps until the gap over all conjunctions is at most the tolerance."""
        current = self._add_keys(start or self._make_start(), np.empty(0, np.uint64))
        options = self._problem.options
        progress: list[SparseProgress] = []
        bound, is_stuck = 0.0, False
        while True:
            point = self._make_point(current)
            state = self._evaluate(current, point)
            result = self._search(current, point, state.gradients)
            objective = state.objective
            bound = max(bound, self._find_dual(point, result))
            rounds = len(progress) + 1
            progress.append(SparseProgress(self.steps, rounds, len(current.keys), objective, bound))
            current.progress = progress
            self._on_round(progress[-1])
            gap, goal = objective - bound, options.tolerance * objective
            if gap <= goal or is_stuck or self.steps >= options.max_steps:
                return current
            new = result.keys[~np.isin(result.keys, current.keys)][: self._get_max_new_keys(current)]
            target = max(0.2 * gap, 0.8 * goal) if len(new) else 0.8 * min(gap, goal)
            steps_before = self.steps
            max_steps = _MAX_STEPS_PER_ROUND if len(new) else options.max_steps
            current = self._take_steps(self._add_keys(current, new), target, max_steps)
            # If rounding prevents further progress, one more round certifies the last steps.
            is_stuck = not len(new) and (self.steps == steps_before or self._damping > _MAX_DAMPING)

    # --- Conjunctions in use ----------------------------------------------------------------------------

    def _make_start(self) -> SparseSolution:
        """Return the solution with a zero weight for the constant, if the feature map has one."""
        constant = np.zeros(1, np.uint64)
        factor = conjunction_constants(
            FeatureMap(**self._problem.map), binary=self._binary, l1=self._l1 > 0, keys=constant
        )
        keys = constant if np.asarray(factor)[0] > 0 else constant[:0]
        return SparseSolution(keys, np.zeros((self._problem.outputs, len(keys))))

    def _get_max_new_keys(self, current: SparseSolution) -> int:
        return max(_MIN_KEYS_PER_SEARCH, int(np.count_nonzero(current.weights.any(axis=0))))

    def _add_keys(self, current: SparseSolution, new: Keys) -> SparseSolution:
        keys = np.concatenate([current.keys, new[~np.isin(new, current.keys)]])
        weights = np.zeros((self._problem.outputs, len(keys)))
        weights[:, : current.weights.shape[1]] = current.weights
        self._version += 1
        self._shards.use(self._problem, keys, self._version)
        return SparseSolution(keys, weights, current.progress)

    def _make_point(self, current: SparseSolution) -> Point:
        return Point(self._problem.name, self._version, current.weights.ravel())

    def _compute_penalty(self, weights: NDArray[np.float64]) -> float:
        return float(self._l1 * np.abs(weights).sum() + 0.5 * self._l2 * (weights**2).sum())

    # --- Steps ------------------------------------------------------------------------------------------

    def _take_steps(self, current: SparseSolution, target: float, max_steps: int) -> SparseSolution:
        """Lower the objective on the conjunctions in use until their gap is at most `target`."""
        for _ in range(min(max_steps, self._problem.options.max_steps - self.steps)):
            state = self._evaluate(current, self._make_point(current))
            scales = self._choose_scales(float(np.abs(state.gradients).max(initial=0.0)))
            mean, values = self._shards.propose(
                state.point, state.gradients, state.curvatures, self._damping, scales
            )
            if state.objective - self._compute_best_dual(values, scales, np.abs(state.gradients)) <= target:
                break
            self.steps += 1
            moved = self._move(current, state, mean.reshape(current.weights.shape) - current.weights)
            state = self._evaluate(current, self._make_point(current))
            moved = self._move_jointly(current, state) or moved
            if not moved:
                break  # rounding prevents further progress
        return current

    def _evaluate(self, current: SparseSolution, point: Point) -> State:
        loss, gradients, curvatures = self._shards.judge(point)
        return State(point, self._compute_penalty(current.weights) + loss, gradients, curvatures)

    def _move(self, current: SparseSolution, state: State, direction: NDArray[np.float64]) -> bool:
        """Move by the best step length; return False if the objective and the damping cannot improve."""
        losses = self._shards.sum_answers(losses_along, state.point, direction.ravel(), _LENGTHS)
        values = losses + [self._compute_penalty(current.weights + length * direction) for length in _LENGTHS]
        best = int(np.argmin(values))
        if values[best] >= state.objective:
            self._damping *= 100.0
            return self._damping <= _MAX_DAMPING
        current.weights = current.weights + _LENGTHS[best] * direction
        if _LENGTHS[best] < 0.2:
            self._damping = min(10.0 * self._damping, _MAX_DAMPING)
        elif _LENGTHS[best] > 0.7:
            self._damping = max(self._damping / 4.0, _MIN_DAMPING)
        return True

    def _compute_joint_direction(self, current: SparseSolution, state: State) -> NDArray[np.float64]:
        """Return a Newton step for all nonzero weights together, by conjugate gradients."""
        weights = current.weights.ravel()
        slopes = state.gradients + self._l1 * np.sign(weights) + self._l2 * weights
        inverse = 1.0 / np.maximum(state.curvatures + self._l2, 1e-12)
        free = weights * (weights - slopes * inverse) > 0

        def product(direction: Vector) -> Vector:
            return (
                self._shards.sum_answers(hessian_product, state.point, direction) * free
                + self._l2 * direction
            )

        direction = conjugate_gradients(product, -slopes * free, inverse * free, _MAX_PRODUCTS, _ACCURACY)
        return np.where(free, direction, -weights).reshape(current.weights.shape)

    def _move_jointly(self, current: SparseSolution, state: State) -> bool:
        """Move along a joint direction; weights that would change their sign become 0."""
        direction = self._compute_joint_direction(current, state)
        candidates = [current.weights + length * direction for length in _JOINT_LENGTHS]
        candidates = [np.where(weights * current.weights > 0, weights, 0.0) for weights in candidates]
        changes = np.array([(weights - current.weights).ravel() for weights in candidates])
        losses = self._shards.sum_answers(losses_at, state.point, changes)
        values = losses + [self._compute_penalty(weights) for weights in candidates]
        best = int(np.argmin(values))
        if values[best] >= state.objective:
            return False
        current.weights = candidates[best]
        return True

    # --- The dual objective -----------------------------------------------------------------------------

    def _choose_scales(self, largest: float) -> Vector:
        """Return factors of the gradient to try; with the first, no gradient exceeds the l1 penalty."""
        safe = min(1.0, self._l1 / largest) if largest > 0 else 1.0
        return np.array([safe]) if self._l2 == 0 else np.linspace(safe, 1.0, _DUAL_SCALES)

    def _compute_best_dual(self, values: Vector, scales: Vector, strengths: Vector) -> float:
        """Return the best dual objective over the scales.

        With an l2 penalty, a gradient whose absolute value s exceeds l1 subtracts (s - l1)^2 / (2 l2).
        """
        if self._l2 == 0:
            return float(values[0])
        excess = np.maximum(scales[:, None] * strengths[strengths > self._l1] - self._l1, 0.0)
        return float((values - (excess**2).sum(axis=1) / (2 * self._l2)).max())

    def _find_dual(self, point: Point, result: SearchResult) -> float:
        scales = self._choose_scales(result.largest)
        if not result.complete:
            scales = scales[:1]  # at the smallest scale, no gradient exceeds the l1 penalty
        values = self._shards.sum_answers(duals, point, scales)
        return self._compute_best_dual(values, scales, result.strengths)

    # --- Search -----------------------------------------------------------------------------------------

    def _search(self, current: SparseSolution, point: Point, gradients: Vector) -> SearchResult:
        """Search for strong conjunctions of all outputs; `gradients` are those of the conjunctions in use."""
        outputs = self._problem.outputs
        pieces = [self._search_output(current, point, output) for output in range(outputs)]
        constant = np.abs(gradients.reshape(outputs, -1)[:, current.keys == 0]).ravel()
        keys = np.concatenate([piece.keys for piece in pieces])
        strengths = np.concatenate([piece.strengths for piece in pieces])
        order = np.lexsort((keys, -strengths))
        _, first = np.unique(keys[order], return_index=True)
        # List each conjunction once, sorted by its largest strength. The dual objective needs all strengths.
        return SearchResult(
            keys[order][np.sort(first)],
            np.concatenate([strengths, constant]),
            max([piece.largest for piece in pieces] + constant.tolist()),
            all(piece.complete for piece in pieces),
        )

    def _search_output(self, current: SparseSolution, point: Point, output: int) -> SearchResult:
        """Return the conjunctions with the largest absolute gradients for one output."""
        sums, bounds = self._shards.sum_bounds(feature_bounds, point, output).reshape(2, -1)
        singles = np.abs(sums)
        max_count = self._get_max_new_keys(current) + len(current.keys) + 1
        threshold = self._l1
        if len(singles) > max_count and self._l2 == 0:
            threshold = max(threshold, float(np.partition(singles, -max_count)[-max_count]))
        strong_singles = np.flatnonzero(singles > threshold)
        keys, strengths = self._encode_single_keys(strong_singles), singles[strong_singles]
        longer = self._search_longer(point, output, bounds, threshold=threshold, max_count=max_count)
        largest = max(float(strengths.max(initial=0.0)), float(np.abs(longer.sums).max(initial=0.0)))
        return SearchResult(
            np.concatenate([keys, longer.keys]),
            np.concatenate([strengths, np.abs(longer.sums)]),
            max(largest, threshold if threshold > self._l1 else 0.0),
            threshold == self._l1,
        )

    def _search_longer(
        self, point: Point, output: int, bounds: Vector, *, threshold: float, max_count: int
    ) -> KeySums:
        """Return the conjunctions of two or more features whose absolute gradients exceed the threshold."""
        can_exceed = (bounds * _ROUNDING > threshold).astype(np.uint8)
        if not can_exceed.any():
            return KeySums(np.empty(0, np.uint64), np.empty(0))
        pairs = np.empty(0, np.uint8)
        if self._degree == 3:
            below = self._shards.sum_bounds(pair_bounds, point, output, can_exceed, self._buckets)
            pairs = (below * _ROUNDING > threshold).astype(np.uint8)
        bucket_sums = self._shards.sum_bounds(bucket_bounds, point, output, can_exceed, pairs, self._buckets)
        wanted_buckets = (np.abs(bucket_sums.reshape(2, -1)).max(axis=0) * _ROUNDING > threshold).astype(
            np.uint8
        )
        if self._l2 > 0:  # the dual objective needs every conjunction above the threshold
            max_count = 1 << 62
        return self._shards.find_strongest(
            point, (output, can_exceed, pairs, wanted_buckets), threshold, max_count
        )

    def _encode_single_keys(self, ranks: NDArray[np.intp]) -> Keys:
        ranks_of_keys = np.full((len(ranks), 3), -1)
        ranks_of_keys[:, 0] = ranks
        return encode(ranks_of_keys, self._degree, self._binary)
