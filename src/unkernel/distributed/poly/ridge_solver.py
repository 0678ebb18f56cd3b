"""Train weights of all conjunctions by Newton steps with conjugate gradients, for rows on many workers.

All conjunctions that occur in any part are in use from the start. A round is one Newton step. The loss, its
gradient and products with its Hessian are sums over the parts. Because the gradient covers all conjunctions,
it determines the dual objective, and the gap is certified as on one machine. For slopes s of the objective,
the gap is at most |s|^2 / (2 l2), so no step needs a smaller residual than this bound at the tolerated gap.
The squared error is its own quadratic model: its steps aim at this residual at once.
"""

from __future__ import annotations

import numpy as np

from unkernel.distributed.cluster.packed_vectors import Vector
from unkernel.distributed.poly.sparse_solver import (
    SparseProgress,
    SparseSolution,
    SparseSolver,
    State,
    conjugate_gradients,
)
from unkernel.distributed.poly.sparse_tasks import duals, hessian_product, losses_along

_LENGTHS = np.array([1.0, 0.5, 0.25, 0.1, 0.03, 0.01, 1e-3])
# Products with the Hessian per step: at first, and at most. The number is doubled when a step needs more.
_FIRST_PRODUCTS, _MAX_PRODUCTS = 40, 10_240
_SHARE_OF_TOLERANCE = 0.5  # share of the tolerated gap at which the residual of a step is small enough
_MAX_INACCURACY = 0.3  # relative error of the first steps; later steps are more accurate
_DUAL_SCALES = np.linspace(1 / 64, 1.0, 64)  # factors of the gradient to try for the dual objective


class RidgeSolver(SparseSolver):
    """Solves one problem with a pure l2 penalty."""

    _max_products = _FIRST_PRODUCTS

    def solve(self, start: SparseSolution | None = None) -> SparseSolution:
        """Make Newton steps until the gap is at most the tolerance."""
        current = self._use_all_keys(start)
        options = self._problem.options
        bound, first_slope = 0.0, 0.0
        while True:
            state = self._evaluate(current, self._make_point(current))
            bound = max(bound, self._compute_dual(state))
            slopes = state.gradients + self._l2 * state.point.weights
            slope = float(np.linalg.norm(slopes))
            first_slope = first_slope or slope
            progress = SparseProgress(self.steps, self.steps + 1, len(current.keys), state.objective, bound)
            current.progress.append(progress)
            self._on_round(progress)
            if progress.gap <= options.tolerance or self.steps >= options.max_steps:
                return current
            self.steps += 1
            inaccuracy = min(_MAX_INACCURACY, float(np.sqrt(slope / first_slope)))
            max_residual = float(np.sqrt(2 * self._l2 * _SHARE_OF_TOLERANCE * options.tolerance * bound))
            direction = self._compute_newton_direction(
                state, slopes, 0.0 if self._is_quadratic else inaccuracy, max_residual
            )
            if not self._step(current, state, direction):
                return current  # rounding prevents further progress

    @property
    def _is_quadratic(self) -> bool:
        options = self._problem.options
        return options.loss == "squared_error" and options.epsilon == 0.0

    def _use_all_keys(self, start: SparseSolution | None) -> SparseSolution:
        """Return a solution with a weight for each conjunction that occurs in a row."""
        if start is not None:
            return self._add_keys(SparseSolution(start.keys, start.weights), np.empty(0, np.uint64))
        constant = self._add_keys(self._make_start(), np.empty(0, np.uint64))
        singles = self._encode_single_keys(np.arange(self._features))
        longer = self._shards.find_occurring(self._make_point(constant))
        return self._add_keys(constant, np.concatenate([singles, longer]))

    def _compute_dual(self, state: State) -> float:
        """Return the largest dual objective over several factors of the gradient."""
        squared = float(state.gradients @ state.gradients)
        values = self._shards.sum_answers(duals, state.point, _DUAL_SCALES)
        return float((values - _DUAL_SCALES**2 * squared / (2 * self._l2)).max())

    def _compute_newton_direction(
        self, state: State, slopes: Vector, accuracy: float, max_residual: float
    ) -> Vector:
        products = 0

        def product(direction: Vector) -> Vector:
            nonlocal products
            products += 1
            return self._shards.sum_answers(hessian_product, state.point, direction) + self._l2 * direction

        inverse = 1.0 / (state.curvatures + self._l2)
        direction = conjugate_gradients(
            product, -slopes, inverse, self._max_products, accuracy, max_residual=max_residual
        )
        if products == self._max_products:
            self._max_products = min(2 * products, _MAX_PRODUCTS)
        return direction

    def _step(self, current: SparseSolution, state: State, direction: Vector) -> bool:
        """Move by the best step length; return whether the objective decreased."""
        change = direction.reshape(current.weights.shape)
        losses = self._shards.sum_answers(losses_along, state.point, direction, _LENGTHS)
        values = losses + [self._compute_penalty(current.weights + length * change) for length in _LENGTHS]
        best = int(np.argmin(values))
        if values[best] >= state.objective:
            return False
        current.weights = current.weights + _LENGTHS[best] * change
        return True
