"""Linear support vector classification on a Dask cluster."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from dask.distributed import Client
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from unkernel._core import Bundle
from unkernel.cutplane import CuttingPlaneSVC
from unkernel.cutplane.rankings import weigh_rank_pairs
from unkernel.cutplane.solver_run import Solution, SolverOptions, TrainingRows, pair_accuracy, solve_by_cuts
from unkernel.cutplane.targets import OneVsRestTargets, to_whole_labels
from unkernel.distributed.base import ClassifierOnCluster, cluster_constraints
from unkernel.distributed.cluster.coordinator import Cluster
from unkernel.distributed.cluster.gathered_blocks import GatheredBlocks, merge_labels
from unkernel.distributed.cluster.row_parts import get_targets
from unkernel.distributed.cutplane.ranking_tasks import RankedRows
from unkernel.distributed.cutplane.risks import ClusterMinimiser, counting_pays
from unkernel.distributed.cutplane.round_tasks import PartProblem, Problem
from unkernel.distributed.cutplane.score_quantile import find_score_quantile
from unkernel.learners.progress import OnProgress
from unkernel.learners.targets import compute_class_weights

ProblemStart = tuple[Bundle, NDArray[np.float64] | None]  # the cuts so far, and the weights to start from


class DaskCuttingPlaneSVC(ClassifierOnCluster, CuttingPlaneSVC):
    """Linear support vector classification on a Dask cluster.

    This is :class:`~unkernel.CuttingPlaneSVC` with the rows on the workers. Each pass sends the weights to
    the workers and sums their gradients. For ``"roc_area"``, the workers count their rows by class and score,
    if a part has more than 16,384 rows; the objectives "f1", "break_even" and "precision_at_k" send 8 bytes
    per row each way. The solution has the same certified gap as on one machine. If a worker is lost, Dask
    restores its rows elsewhere and training continues.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss; larger values fit the training set more closely.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        Loss of a row that violates the margin, for ``objective="error_rate"``.
    objective : str, default="error_rate"
        Measure to optimise: "error_rate", "roc_area", "f1", "break_even" or "precision_at_k".
    k : int, default=None
        Number of highest-scoring rows that count, for ``objective="precision_at_k"``.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    intercept_scaling : float, default=1.0
        Value of the constant feature; the larger it is, the less the intercept is regularised.
    tol : float, default=1e-3
        Relative gap at which training stops.
    max_iter : int, default=1000
        Largest number of passes over the training set.
    max_cuts : int, default=200
        Largest number of cuts that are kept.
    class_weight : dict, "balanced" or None, default=None
        Factors of C for each class; "balanced" gives all classes the same total weight.
    warm_start : bool, default=False
        Whether the next ``fit`` starts from the weights of the previous one.
    checkpoint : path, default=None
        Folder on the client's machine that keeps the cuts during training.
    n_jobs : int or None, default=None
        Number of threads that a worker uses for a task; None means as many as it has.
    verbose : int, default=0
        1 prints how training ended; 2 adds one line per second.
    client : distributed.Client, default=None
        The Dask client; None uses the most recent client.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    n_features_in_ : int
        Number of features seen during ``fit``.
    objective_ : float
        Primal objective, summed over the one-versus-rest problems.
    gap_ : float
        Certified relative duality gap, the largest over all problems.
    n_iter_ : int
        Passes over the training set, the largest number over all problems.
    solver_ : str
        The solver that was used, always "cutting_plane".
    model_ : LinearModel
        The fitted model.
    traffic_ : dict
        Bytes sent during training, by purpose, summed over the workers.
    n_parts_ : int
        Number of parts of the rows, up to four per worker.
    n_recoveries_ : int
        Number of times that a question was repeated because a worker was lost.

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
        self.C = C
        self.loss = loss
        self.objective = objective
        self.k = k
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.tol = tol
        self.max_iter = max_iter
        self.max_cuts = max_cuts
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.client = client

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to rows on the workers.

        Parameters
        ----------
        X : dask array, bag, list of delayed or futures, path, array or sparse matrix
            Training rows. A Dask array is chunked by rows; its chunks are dense or SciPy matrices. A bag or a
            list has blocks ``(X, y)`` or ``(X, y, None, weights)``. A path, a pattern or a list of paths
            names svmlight files that the workers can read; ``s3://`` and the like need fsspec. An array of
            the client is sent to the workers.
        y : dask array or array of shape (n_samples,), default=None
            Class labels; None if the rows come with labels.
        sample_weight : dask array or array of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        DaskCuttingPlaneSVC
            The fitted estimator itself.
        """
        fitted: Self = self.fit_reporting(X, y, sample_weight, None)
        return fitted

    def _distribute(
        self, X: Any, y: Any, sample_weight: Any, zero_based: Any
    ) -> tuple[TrainingRows, Cluster, _Classes]:
        """Pack the rows on the workers, and return the facts of them and of the classes."""
        beside = {"y": y, "qid": None, "sample_weight": sample_weight}
        sources, found = self._gather_blocks(X, beside, zero_based, identify=self.checkpoint is not None)
        rows = self._describe_rows(found)
        classes = self._survey_labels(found, sources.own_labels)
        self.solver_ = "cutting_plane"
        return rows, self._pack_parts(found, self._get_intercept_feature()), classes

    def _solve_on(
        self,
        examples: tuple[TrainingRows, Cluster, _Classes],
        start: list[ProblemStart] | None,
        on_progress: OnProgress | None,
    ) -> list[ProblemStart]:
        """Solve the problems one after the other."""
        rows, cluster, classes = examples
        options = self._make_solver_options(on_progress, self._get_intercept_feature())
        minimiser = ClusterMinimiser(cluster, rows.n_features + (options.intercept != 0))
        problems = self._list_problems()
        start = start or [(minimiser.new_bundle(options.most_cuts), None) for _ in problems]
        if self.objective == "error_rate" or (self.objective == "roc_area" and counting_pays(cluster)):
            solutions = [
                self._solve_on_workers(rows, minimiser, options, classes, place=place, begin=begin)
                for place, begin in zip(problems, start, strict=True)
            ]
            shifts = self._shifts_by_counts(cluster, classes, solutions)
        else:
            labels = np.concatenate([part[0] for part in cluster.ask(get_targets, lambda _: ())])
            codes = np.searchsorted(self.classes_, labels).astype(np.int32)
            solutions = [
                self._solve(
                    rows,
                    minimiser,
                    options,
                    OneVsRestTargets(codes, None, place),
                    bundle=bundle,
                    start=weights,
                )
                for place, (bundle, weights) in zip(problems, start, strict=True)
            ]
            shifts = self._compute_shifts(minimiser, options, codes, solutions)
        self._note_traffic(cluster)
        self._keep_solutions(rows, solutions, shifts)
        return [(bundle, found.weights) for (bundle, _), found in zip(start, solutions, strict=True)]

    def _survey_labels(self, found: GatheredBlocks, of_files: bool) -> _Classes:
        """Find the classes, their factors of C, and the weights of their rows."""
        labels, totals, _ = merge_labels(found.surveys)
        labels = to_whole_labels(labels) if of_files else labels
        check_classification_targets(labels)
        weighted = any(seen.has_weights for seen in found.surveys)
        codes = self._check_targets(labels, totals if weighted else None)
        counted = totals > 0
        factors = compute_class_weights(self.class_weight, self.classes_, codes[counted], totals[counted])
        return _Classes(np.array(factors), totals[counted])

    def _solve_on_workers(
        self,
        rows: TrainingRows,
        minimiser: ClusterMinimiser,
        options: SolverOptions,
        classes: _Classes,
        *,
        place: tuple[int, int],
        begin: ProblemStart,
    ) -> Solution:
        """Solve a problem whose losses the workers compute or count."""
        identity = rows.identity | {
            "objective": self.objective,
            "loss": self.loss,
            "intercept": options.intercept,
            "class_weight": repr(self.class_weight),
        }
        problem: PartProblem
        if self.objective == "roc_area":
            problem = self._pairs_of(place, classes)
        else:
            squared = self.loss == "squared_hinge"
            problem = Problem(uuid.uuid4().hex, self.classes_, _positive(place), classes.factors, squared)
        bundle, start = begin
        if start is None:
            start = self._find_start(rows, self.classes_, place[0], options.intercept)
        return solve_by_cuts(
            minimiser, problem, options, identity=identity, place=place, bundle=bundle, start=start
        )

    def _pairs_of(self, place: tuple[int, int], classes: _Classes) -> RankedRows:
        """Return the problem of ranking the rows of a class above all others."""
        ranks = (np.arange(len(self.classes_)) == _positive(place)).astype(np.int32)
        totals = np.array([classes.totals[ranks == rank].sum() for rank in (0, 1)])
        pair_weights = weigh_rank_pairs(np.arange(2), totals, totals.astype(np.int64), None)
        return RankedRows(uuid.uuid4().hex, self.classes_, ranks, pair_weights, pair_accuracy(self.tol))

    def _shifts_by_counts(
        self, cluster: Cluster, classes: _Classes, solutions: list[Solution]
    ) -> list[float]:
        """Return offsets for scores that are only ranked, so that the right number become positive."""
        if self.objective == "error_rate" or not self.fit_intercept:
            return [0.0] * len(solutions)
        rows = int(classes.totals.sum())
        return [
            -find_score_quantile(cluster, solution.weights, rows - int(classes.totals[_positive(place)]))
            for place, solution in zip(self._list_problems(), solutions, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class _Classes:
    """The factors of C of the classes, and the total weights of their rows."""

    factors: NDArray[np.float64]
    totals: NDArray[np.float64]


def _positive(place: tuple[int, int]) -> int:
    """Return the positive class of a problem."""
    number, problems = place
    return 1 if problems == 1 else number
