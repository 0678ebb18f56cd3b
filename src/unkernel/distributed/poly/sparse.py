"""Base class of estimators that train sparse models for rows on the workers."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from unkernel._core import FeatureMap, conjunction_constants
from unkernel.distributed.poly.base import DistributedRows, PolyOnCluster, RoundProgress
from unkernel.distributed.poly.ridge_solver import RidgeSolver
from unkernel.distributed.poly.sparse_shards import ClusterSparseShards, number_features
from unkernel.distributed.poly.sparse_solver import SparseProgress, SparseSolution, SparseSolver
from unkernel.distributed.poly.sparse_tasks import Keys, Numbering, SparseProblem, count_columns
from unkernel.learners.base import Outcome
from unkernel.learners.progress import OnProgress
from unkernel.models import ConjunctionModel, KernelModel
from unkernel.poly.options import SparseOptions


@dataclass(frozen=True, eq=False)
class JointSolution:
    """The weights of all problems, with the attributes of the solutions of local solvers."""

    keys: Keys
    weights: NDArray[np.float64]  # keys x scores
    intercept: NDArray[np.float64]
    storage: str = "on_the_fly"


class SparseOnCluster(PolyOnCluster):
    """Base class of learners that send weights of conjunctions while the rows stay on the workers."""

    def _solve_sparsely(
        self,
        examples: DistributedRows,
        start: list[SparseSolution] | None,
        on_progress: OnProgress | None,
        *,
        loss: str,
        l1: float,
        epsilon: float = 0.0,
        centre: float = 0.0,
    ) -> list[SparseSolution]:
        """Return the solutions of all problems.

        `l1` is the share of the l1 norm in the penalty. `epsilon` and `centre` are for regression: the
        largest error without a loss, and the number to subtract from the targets.
        """
        cluster = examples.cluster
        self._steps = "steps"
        numbering = number_features(cluster.sum_answers(count_columns, lambda _: (), "numbering"))
        shards = ClusterSparseShards(cluster, numbering)
        problems = self._make_problems(examples.factors, loss=loss, l1=l1, epsilon=epsilon, centre=centre)
        solutions = []
        for k, problem in enumerate(problems):
            report = partial(self._report_search, k, len(problems), on_progress)
            solver = (SparseSolver if l1 > 0 else RidgeSolver)(shards, problem, numbering, report)
            cluster.columns = solver.longest_sum
            solutions.append(solver.solve(None if start is None else start[k]))
        self.n_rounds_ = sum(len(solution.progress) for solution in solutions)
        self._record_traffic(cluster)
        self._finish_fit(
            [self._make_outcome(solution) for solution in solutions],
            partial(self._make_sparse_model, solutions, problems[0].map, l1, numbering),
            facts=self._training_facts(),
            about=self._describe_rounds(cluster),
        )
        return solutions

    def _make_problems(
        self, factors: list[float], *, loss: str, l1: float, epsilon: float, centre: float
    ) -> list[SparseProblem]:
        """Return one problem per class for the squared hinge and more than two classes, otherwise one."""
        options = SparseOptions(
            loss=loss,
            l1=l1,
            l2=1.0 - l1,
            C=float(self.C),
            memory=0.0,
            tolerance=float(self.tol),
            max_steps=int(self.max_iter),
            seed=self._draw_seed(),
            threads=1,
            epsilon=epsilon,
        )
        mapping = {
            "degree": int(self.degree),
            "kind": self.feature_map,
            "gamma": self.gamma_,
            "coef0": float(self.coef0),
        }
        count = len(factors) if loss == "squared_hinge" and len(factors) > 2 else 1
        return [SparseProblem(uuid.uuid4().hex, k, options, mapping, factors, centre) for k in range(count)]

    def _report_search(
        self, problem: int, problems: int, on_progress: OnProgress | None, progress: SparseProgress
    ) -> None:
        state = RoundProgress(
            "training",
            problem,
            problems,
            problem,
            progress.steps,
            progress.conjunctions,
            progress.gap,
            progress.objective,
            progress.bound,
        )
        self._report_round(state, progress.rounds, "conjunctions", on_progress)

    def _make_outcome(self, solution: SparseSolution) -> Outcome:
        last = solution.last
        history = np.array(
            [(progress.steps, progress.objective, progress.bound) for progress in solution.progress]
        )
        return Outcome(last.objective, last.bound, last.steps, last.gap <= self.tol, history)

    def _make_sparse_model(
        self,
        solutions: list[SparseSolution],
        mapping: dict[str, Any],
        l1: float,
        numbering: Numbering,
        origin: dict[str, Any],
    ) -> ConjunctionModel | KernelModel:
        """Return one model made from the solutions of all problems."""
        outputs = sum(len(solution.weights) for solution in solutions)
        keys = np.unique(np.concatenate([s.keys[s.weights.any(axis=0)] for s in solutions] + [[0]]))
        keys = keys.astype(np.uint64)
        weights = np.zeros((len(keys), outputs))
        first = 0
        for solution in solutions:
            used = solution.weights.any(axis=0)
            positions = np.searchsorted(keys, solution.keys[used])
            weights[positions, first : first + len(solution.weights)] = solution.weights[:, used].T
            first += len(solution.weights)
        weights *= np.asarray(
            conjunction_constants(FeatureMap(**mapping), binary=numbering.binary, l1=l1 > 0, keys=keys)
        )[:, None]
        joint = JointSolution(keys[1:], weights[1:], weights[0])
        return self._make_model(cast(Any, numbering), cast(Any, joint), origin)
