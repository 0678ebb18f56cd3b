"""Cutting planes on conjunctions of features, for rows under a polynomial feature map phi.

Weights are sums over the distinct rows: w = sum_i b_i phi(x_i). Instead of w, the solver stores the
coefficient b_i and the score of each distinct row. A cut takes 16 bytes per row, whatever the number of
conjunctions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import (
    Bundle,
    DistinctRows,
    FeatureMap,
    MappedRows,
    Oracle,
    distinct_examples,
    minimise_mapped,
)
from unkernel.cutplane.options import LoopOptions, MapOptions
from unkernel.cutplane.solver_run import Solution, SolverOptions, Weights, compute_checksum
from unkernel.data.memory import available_bytes
from unkernel.data.rows.csr import canonical_rows
from unkernel.learners.base import read_only_view
from unkernel.learners.feature_maps import compute_gamma, make_support_vector_model
from unkernel.models import ConjunctionModel, Decision, Kernel, KernelModel

_RESERVED_CUTS = 32  # number of cuts to reserve memory for; the solver rarely needs more


@dataclass(frozen=True)
class PolynomialMap:
    """The feature map of the kernel ``(gamma <x, z> + coef0) ** degree``."""

    degree: int
    gamma: float | str
    coef0: float


def get_kernel(model: ConjunctionModel | KernelModel) -> Kernel:
    """Return the kernel of a model's feature map."""
    if isinstance(model, KernelModel):
        return model.kernel
    return Kernel("polynomial", model.degree, model.gamma, model.coef0)


def replace_decision(model: Any, decision: Decision) -> Any:
    """Return a copy of a ranking model with another decision."""
    if isinstance(model, ConjunctionModel):
        return replace(model, ranking=decision, classes=decision.classes)
    return replace(model, decision=decision)


@dataclass(frozen=True)
class RowCoefficients:
    """The hashes of distinct rows and their coefficients, for a warm start."""

    hashes: NDArray[np.uint64]
    coefficients: Weights


@dataclass(frozen=True, eq=False)
class MappedMinimiser:
    """Runs the one-slack loop on mapped rows.

    Vectors of the solver contain the coefficients of the distinct rows, followed by their scores.
    """

    rows: DistinctRows
    mapped: MappedRows
    kernel: Kernel
    n_features: int
    identity: dict[str, Any]

    @staticmethod
    def from_rows(
        X: Any, row_weights: Weights | None, polynomial: PolynomialMap, threads: int, *, identify: bool
    ) -> MappedMinimiser:
        """Return a minimiser for the rows of a matrix; their size determines how mapped rows are stored."""
        matrix = canonical_rows(X)
        n_features = int(matrix.shape[1])
        rows = distinct_examples(
            matrix,
            classes=np.zeros(matrix.shape[0], np.int32),
            weights=np.empty(0) if row_weights is None else row_weights,
            threads=threads,
        )
        gamma = compute_gamma(polynomial.gamma, rows, n_features)
        kernel = Kernel("polynomial", polynomial.degree, gamma, polynomial.coef0)
        mapped = rows.map(
            MapOptions("auto", float(available_bytes()), threads, 2 * _RESERVED_CUTS),
            feature_map=FeatureMap(degree=kernel.degree, kind="kernel", gamma=gamma, coef0=kernel.coef0),
        )
        identity = {"shape": list(matrix.shape), "entries": int(matrix.nnz)}
        identity |= {"degree": kernel.degree, "gamma": gamma, "coef0": kernel.coef0}
        if identify:
            identity["checksum"] = compute_checksum([matrix.indptr, matrix.indices, matrix.data])
        return MappedMinimiser(rows, mapped, kernel, n_features, identity)

    @property
    def dimension(self) -> int:
        """The length of the solver's vectors."""
        return 2 * int(self.rows.rows)

    def new_bundle(self, most_cuts: int) -> Bundle:
        return Bundle(self.dimension, most_cuts, of_rows=True)

    def run(
        self, oracle: Oracle, bundle: Bundle, start: Weights, options: LoopOptions, **observers: Any
    ) -> dict[str, Any]:
        """Run ``minimise_mapped`` of the core; the observers are ``on_progress`` and ``observe``."""
        return dict(
            minimise_mapped(
                options,
                rows=self.mapped.passes,
                dimension=self.mapped.dimension,
                places=np.asarray(self.rows.places),
                oracle=oracle,
                bundle=bundle,
                start=start,
                **observers,
            )
        )

    def scores(self, weights: Weights, threads: int) -> Weights:
        """Compute the score of each row from the coefficients; 0 for rows of weight 0."""
        distinct_scores = np.asarray(self.mapped.scores(self.coefficients(weights), threads))
        places = np.asarray(self.rows.places)
        return np.where(places >= 0, distinct_scores[places], 0.0)

    def coefficients(self, weights: Weights) -> Weights:
        """Return the coefficients of the distinct rows, which are the first half of a solver's vector."""
        return np.ascontiguousarray(weights[: int(self.rows.rows)])

    def make_start(self, former: RowCoefficients | None, threads: int) -> Weights | None:
        """Return a start vector with the coefficients of an earlier fit; new rows get the coefficient 0."""
        if former is None:
            return None
        hashes = np.asarray(self.rows.hashes)
        positions = np.searchsorted(former.hashes, hashes).clip(max=len(former.hashes) - 1)
        start = np.where(former.hashes[positions] == hashes, former.coefficients[positions], 0.0)
        return np.concatenate([start, np.asarray(self.mapped.scores(start, threads))])

    def row_coefficients(self, weights: Weights) -> RowCoefficients:
        """Return the coefficients and hashes of the rows, for :meth:`make_start` in a later fit."""
        return RowCoefficients(np.asarray(self.rows.hashes), self.coefficients(weights))

    def recompute_objective(self, solution: Solution, oracle: Oracle, options: SolverOptions) -> Solution:
        """Recompute the objective of a solution from its weights.

        The solver updates scores by adding up the scores of cuts. If kernel values are huge, these sums
        differ from scores computed from the weights, because of rounding errors.
        """
        scores = self.scores(solution.weights, options.threads)
        places = np.asarray(self.rows.places)
        coefficients = self.coefficients(solution.weights)
        distinct_scores = np.zeros(len(coefficients))
        distinct_scores[places[places >= 0]] = scores[places >= 0]
        risk, _ = oracle.along(scores, scores, 0.0, options.threads)
        objective = float(0.5 * coefficients @ distinct_scores + options.C * risk)
        recomputed = replace(solution, objective=objective)
        return replace(recomputed, converged=solution.converged and recomputed.gap <= options.tol)

    def make_model(
        self, weights: Weights, decision: Decision, threads: int, origin: dict[str, Any]
    ) -> ConjunctionModel | KernelModel:
        """Return a model: conjunction weights, or support vectors if the storage has no conjunctions."""
        coefficients = self.coefficients(weights)
        if self.mapped.storage in ("split", "kernel"):
            return make_support_vector_model(
                self.rows,
                coefficients[:, None],
                self.kernel,
                decision,
                n_features=self.n_features,
                origin=origin,
            )
        conjunctions = self.mapped.weights_of(coefficients, threads)
        return ConjunctionModel(
            degree=self.kernel.degree,
            sets=bool(self.rows.binary),
            feature_map="kernel",
            gamma=self.kernel.gamma,
            coef0=self.kernel.coef0,
            n_features=self.n_features,
            columns=read_only_view(self.rows.columns),
            keys=read_only_view(conjunctions["keys"]),
            weights=read_only_view(conjunctions["weights"]),
            intercept=read_only_view(np.zeros(1)),  # a constant cancels out in every pair
            classes=decision.classes,
            origin=origin,
            ranking=decision,
        )
