"""Linear support vector classification on a Dask cluster."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from dask.distributed import Client
from numpy.typing import NDArray

from unkernel.cutplane import CuttingPlaneSVC
from unkernel.cutplane.rankings import weigh_rank_pairs
from unkernel.cutplane.solver_run import (
    Solution,
    SolverOptions,
    TrainingRows,
    compute_pair_accuracy,
    solve_by_cuts,
)
from unkernel.cutplane.svc import ProblemStart, make_next_start
from unkernel.distributed.base import ClassifierOnCluster, OnCluster, cluster_constraints
from unkernel.distributed.cluster.coordinator import Cluster
from unkernel.distributed.cluster.gathered_blocks import GatheredBlocks
from unkernel.distributed.cluster.row_parts import get_targets
from unkernel.distributed.cutplane.ranking_tasks import RankedRows
from unkernel.distributed.cutplane.risks import ClusterMinimiser, is_counting_cheaper
from unkernel.distributed.cutplane.round_tasks import PartProblem, Problem
from unkernel.distributed.cutplane.score_quantile import find_score_quantile
from unkernel.distributed.shared_docs import complete_docs
from unkernel.learners.progress import OnProgress
from unkernel.learners.targets import compute_class_weights


@complete_docs(CuttingPlaneSVC, OnCluster, without=("feature_names_in_",))
class DaskCuttingPlaneSVC(ClassifierOnCluster, CuttingPlaneSVC):
    """Linear support vector classification on a Dask cluster.

    This estimator is :class:`~unkernel.CuttingPlaneSVC` with the rows on the workers. Each pass sends the
    weights to the workers and sums their gradients. For the objective "roc_area", if a part has more than
    16,384 rows, the workers count their rows by class and score. The objectives "f1", "break_even" and
    "precision_at_k" send 8 bytes per row in each direction. The solution has the same certified gap as on one
    machine. If a worker is lost, Dask restores its rows on another worker and training continues.

    Parameters
    ----------
    checkpoint : path, default=None
        Folder on the client's machine. Cuts are saved there during training; if training is interrupted, the
        next fit continues from them.

    Attributes
    ----------
    solver_ : str
        The solver that was used, always "cutting_plane".
    n_parts_ : int
        Number of parts of the rows, up to four per worker.

    See Also
    --------
    unkernel.CuttingPlaneSVC : The same estimator on one machine, with details of the parameters.
    DaskRankSVM : Learning to rank on a cluster.

    Examples
    --------
    >>> from dask.distributed import Client
    >>> from unkernel.distributed import DaskCuttingPlaneSVC
    >>> with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0"):
    ...     learner = DaskCuttingPlaneSVC(C=10).fit([[0, 0], [1, 0], [2, 0]], [0, 0, 1])
    >>> learner.predict([[3, 1], [0, 1]])
    array([1, 0])
    """

    _max_parts_per_worker = 4
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = cluster_constraints(
        CuttingPlaneSVC, "solver", "cache", "random_state"
    )

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "hinge",
        objective: str = "error_rate",
        k: int | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_cuts: int = 200,
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        checkpoint: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        client: Client | None = None,
    ) -> None:
        self._set_parameters(locals())

    def _prepare(
        self, X: Any, y: Any, sample_weight: Any, *, on_reading: Any = None, zero_based: Any = "auto"
    ) -> tuple[TrainingRows, Cluster, _Classes]:
        """Pack the rows on the workers; return facts about the rows and the classes."""
        targets = {"y": y, "qid": None, "sample_weight": sample_weight}
        sources, gathered = self._gather_blocks(X, targets, zero_based, identify=self.checkpoint is not None)
        rows = self._describe_rows(gathered)
        classes = self._survey_labels(gathered, sources.has_labels)
        self.solver_ = "cutting_plane"
        return rows, self._pack_parts(gathered, self._get_intercept_feature()), classes

    def _train_on(
        self,
        examples: tuple[TrainingRows, Cluster, _Classes],
        start: list[ProblemStart] | None,
        on_progress: OnProgress | None,
    ) -> list[ProblemStart]:
        """Solve the problems one after another."""
        rows, cluster, classes = examples
        options = self._make_solver_options(on_progress, self._get_intercept_feature())
        minimiser = ClusterMinimiser(cluster, rows, options.intercept)
        start = start or self._start_problems(minimiser)
        if self.objective == "error_rate" or (self.objective == "roc_area" and is_counting_cheaper(cluster)):
            solutions = [
                self._solve_on_workers(minimiser, options, classes, place=place, begin=begin)
                for place, begin in zip(self._list_problems(), start, strict=True)
            ]
            shifts = self._find_shifts(cluster, classes, solutions)
        else:
            labels = np.concatenate([part[0] for part in cluster.ask(get_targets, lambda _: ())])
            codes = np.searchsorted(self.classes_, labels).astype(np.int32)
            solutions, shifts = self._solve_problems(minimiser, options, codes, None, start)
        self._record_traffic(cluster)
        self._finish_with_solutions(rows, solutions, shifts)
        return make_next_start(start, solutions)

    def _survey_labels(self, gathered: GatheredBlocks, from_files: bool) -> _Classes:
        """Return the classes with their factors of C and the total weights of their rows."""
        labels, totals = self._merge_labels(gathered, from_files)
        has_weights = any(survey.has_weights for survey in gathered.surveys)
        codes = self._check_targets(labels, totals if has_weights else None)
        is_counted = totals > 0
        factors = compute_class_weights(
            self.class_weight, self.classes_, codes[is_counted], totals[is_counted]
        )
        return _Classes(np.array(factors), totals[is_counted])

    def _solve_on_workers(
        self,
        minimiser: ClusterMinimiser,
        options: SolverOptions,
        classes: _Classes,
        *,
        place: tuple[int, int],
        begin: ProblemStart,
    ) -> Solution:
        """Solve one problem; the workers compute its losses, or count rows for them."""
        identity = minimiser.identity | {
            "objective": self.objective,
            "loss": self.loss,
            "intercept": options.intercept,
            "class_weight": repr(self.class_weight),
        }
        problem: PartProblem
        if self.objective == "roc_area":
            problem = self._make_pair_problem(place, classes)
        else:
            squared = self.loss == "squared_hinge"
            problem = Problem(
                uuid.uuid4().hex, self.classes_, _get_positive_class(place), classes.factors, squared
            )
        bundle, start = begin
        if start is None:
            start = self._find_start(minimiser.rows, self.classes_, place[0], options.intercept)
        return solve_by_cuts(
            minimiser, problem, options, identity=identity, place=place, bundle=bundle, start=start
        )

    def _make_pair_problem(self, place: tuple[int, int], classes: _Classes) -> RankedRows:
        """Return the problem of ranking the rows of the positive class above all other rows."""
        ranks = (np.arange(len(self.classes_)) == _get_positive_class(place)).astype(np.int32)
        totals = np.array([classes.totals[ranks == rank].sum() for rank in (0, 1)])
        pair_weights = weigh_rank_pairs(np.arange(2), totals, totals.astype(np.int64), None)
        accuracy = compute_pair_accuracy(self.tol)
        return RankedRows(uuid.uuid4().hex, self.classes_, ranks, pair_weights, accuracy)

    def _find_shifts(self, cluster: Cluster, classes: _Classes, solutions: list[Solution]) -> list[float]:
        """Return intercepts that make as many scores positive as there are rows of the positive class."""
        if self.objective == "error_rate" or not self.fit_intercept:
            return [0.0] * len(solutions)
        rows = int(classes.totals.sum())
        return [
            -find_score_quantile(
                cluster, solution.weights, rows - int(classes.totals[_get_positive_class(place)])
            )
            for place, solution in zip(self._list_problems(), solutions, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class _Classes:
    """For each class, the factor of C and the total weight of the rows."""

    factors: NDArray[np.float64]
    totals: NDArray[np.float64]


def _get_positive_class(place: tuple[int, int]) -> int:
    """Return the positive class of a problem, given its number and the number of problems."""
    number, problems = place
    return 1 if problems == 1 else number
