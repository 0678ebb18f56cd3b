"""Linear support vector classification on a Dask cluster."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from dask.distributed import Client
from numpy.typing import NDArray
from sklearn.base import _fit_context, clone
from sklearn.utils.multiclass import check_classification_targets

from unkernel._core import Bundle
from unkernel.cutplane import CuttingPlaneSVC
from unkernel.cutplane.rankings import weigh_rank_pairs
from unkernel.cutplane.solver_run import Solution, SolverOptions, TrainingRows, pair_accuracy, solve_by_cuts
from unkernel.cutplane.svc import OneVsRestTargets, Starts, to_whole_labels
from unkernel.distributed.base import OnCluster
from unkernel.distributed.cluster.coordinator import Cluster, Gathered, merged_labels
from unkernel.distributed.cluster.row_tasks import PartProblem, Problem, labels_of
from unkernel.distributed.cutplane.ranking_tasks import RankedRows
from unkernel.distributed.cutplane.risks import ClusterMinimiser, counting_pays
from unkernel.distributed.cutplane.score_quantile import score_above
from unkernel.learners.progress import OnProgress
from unkernel.learners.targets import compute_class_weights


class DaskCuttingPlaneSVC(OnCluster, CuttingPlaneSVC):
    """Linear support vector classification on a Dask cluster.

    This is :class:`~unkernel.CuttingPlaneSVC` with the rows on the workers. Each pass sends the weights to
    the workers and sums their gradients. For ``"roc_area"``, the workers count their rows by class and score,
    if they have more than 16,384 rows each; other objectives than these send 8 bytes per row each way. The
    solution has the same certified gap as on one machine. If a worker is lost, Dask restores its rows
    elsewhere and training continues.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss; larger values fit the training set more closely.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        Loss of a row that violates the margin, for ``objective="error_rate"``.
    objective : str, default="error_rate"
        What is optimised: "error_rate", "roc_area", "f1", "break_even" or "precision_at_k".
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
        Folder on the machine of the client in which to keep the cuts during training.
    n_jobs : int or None, default=None
        Number of threads that a worker uses for a task; None means as many as it has.
    verbose : int, default=0
        1 prints how training ended; 2 adds one line per second.
    client : distributed.Client, default=None
        The Dask client; None uses the client that was made last.

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
        Bytes that were sent during training, by purpose, summed over the workers.
    n_parts_ : int
        Number of parts that the rows were in, up to four per worker.
    n_recoveries_ : int
        Number of tasks that were repeated because a worker was lost.

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

    _parts_each = 4
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: allowed
            for name, allowed in CuttingPlaneSVC._parameter_constraints.items()
            if name not in ("solver", "cache", "random_state")
        },
        "n_jobs": [Integral, None],
        **OnCluster._beyond_local,
    }

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
        self.fit_reporting(X, y, sample_weight, on_progress=None)
        return self

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit_reporting(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        *,
        on_progress: OnProgress | None,
        on_reading: Any = None,
        zero_based: Any = "auto",
    ) -> Self:
        """Fit the model and report progress while training.

        Parameters
        ----------
        X : dask array, bag, list of delayed or futures, path, array or sparse matrix
            Training rows, as in :meth:`fit`.
        y : dask array or array of shape (n_samples,) or None
            Class labels.
        sample_weight : dask array or array of shape (n_samples,) or None
            Weights of the rows.
        on_progress : callable or None
            Called with the state of the solver about twenty times per second.
        on_reading : ignored, default=None
            Not used.
        zero_based : bool or "auto", default="auto"
            Whether feature numbers in files start at 0.

        Returns
        -------
        DaskCuttingPlaneSVC
            The fitted estimator itself.
        """
        rows, cluster, classes = self._spread(X, y, sample_weight, zero_based)
        options = self._make_solver_options(on_progress, self._get_intercept_feature())
        nothing: list[Any] = [None] * len(self._list_problems())
        solutions, shifts = self._solve_on(cluster, rows, options, classes, bundles=nothing, starts=nothing)
        self._note_traffic(cluster)
        return self._keep_solutions(rows, solutions, shifts)

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def path(self, X: Any, y: Any, Cs: Iterable[float], sample_weight: Any = None) -> list[Self]:
        """Fit one model for each of several values of C.

        The rows are sent to the workers and packed once, and each fit starts from the cuts of the previous
        one. ``traffic_`` of a fitted copy counts what was sent until it was fitted.

        Parameters
        ----------
        X : dask array, bag, list of delayed or futures, path, array or sparse matrix
            Training rows, as in :meth:`fit`.
        y : dask array or array of shape (n_samples,) or None
            Class labels.
        Cs : iterable of float
            Values of C; training is fastest if they ascend.
        sample_weight : dask array or array of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        list of DaskCuttingPlaneSVC
            One fitted copy of this estimator for each C.
        """
        if self.checkpoint is not None:
            raise ValueError("path keeps no checkpoint: leave it out")
        prepared = clone(self)
        rows, cluster, classes = prepared._spread(X, y, sample_weight, "auto")

        def solve(copy: Self, bundles: list[Bundle], starts: Starts) -> tuple[list[Solution], list[float]]:
            options = copy._make_solver_options(None, copy._get_intercept_feature())
            solved = copy._solve_on(cluster, rows, options, classes, bundles=bundles, starts=starts)
            copy._note_traffic(cluster)
            return solved

        return self._fit_path(
            prepared, rows, rows.n_features + (self._get_intercept_feature() != 0), Cs, solve
        )

    def _spread(
        self, X: Any, y: Any, sample_weight: Any, zero_based: Any
    ) -> tuple[TrainingRows, Cluster, _Classes]:
        """Pack the rows on the workers; what is known of them and of the classes here."""
        beside = {"y": y, "qid": None, "sample_weight": sample_weight}
        sources, found = self._gathered(X, beside, zero_based, identify=self.checkpoint is not None)
        rows = self._rows_of(found)
        classes = self._survey_labels(found, sources.own_labels)
        self.solver_ = "cutting_plane"
        return rows, self._cluster(found, self._get_intercept_feature()), classes

    def _solve_on(
        self,
        cluster: Cluster,
        rows: TrainingRows,
        options: SolverOptions,
        classes: _Classes,
        *,
        bundles: Sequence[Bundle | None],
        starts: Starts,
    ) -> tuple[list[Solution], list[float]]:
        """The problems one after the other, and what to add to their scores."""
        minimiser = ClusterMinimiser(cluster, rows.n_features + (options.intercept != 0))
        begun = list(zip(self._list_problems(), bundles, starts, strict=True))
        if self.objective == "error_rate" or (self.objective == "roc_area" and counting_pays(cluster)):
            solutions = [
                self._solve_apart(rows, minimiser, options, classes, place=place, bundle=bundle, start=start)
                for place, bundle, start in begun
            ]
            return solutions, self._shifts_by_counts(cluster, classes, solutions)
        labels = np.concatenate([part[0] for part in cluster.each(labels_of, lambda _: ())])
        codes = np.searchsorted(self.classes_, labels).astype(np.int32)
        solutions = [
            self._solve(
                rows, minimiser, options, OneVsRestTargets(codes, None, place), bundle=bundle, start=start
            )
            for place, bundle, start in begun
        ]
        return solutions, self._compute_shifts(minimiser, options, codes, solutions)

    def _survey_labels(self, found: Gathered, of_files: bool) -> _Classes:
        """Find the classes, and how many rows they have."""
        labels, totals, _ = merged_labels(found.surveys)
        labels = to_whole_labels(labels) if of_files else labels
        check_classification_targets(labels)
        weighted = any(seen.has_weights for seen in found.surveys)
        codes = self._check_targets(labels, totals if weighted else None)
        counted = totals > 0
        factors = compute_class_weights(self.class_weight, self.classes_, codes[counted], totals[counted])
        return _Classes(np.array(factors), totals[counted])

    def _solve_apart(
        self,
        rows: TrainingRows,
        minimiser: ClusterMinimiser,
        options: SolverOptions,
        classes: _Classes,
        *,
        place: tuple[int, int],
        bundle: Bundle | None,
        start: NDArray[np.float64] | None,
    ) -> Solution:
        """A problem whose losses the workers compute or count."""
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
        if start is None:
            start = self._find_start(rows, self.classes_, place[0], options.intercept)
        return solve_by_cuts(
            minimiser, problem, options, identity=identity, place=place, bundle=bundle, start=start
        )

    def _pairs_of(self, place: tuple[int, int], classes: _Classes) -> RankedRows:
        """Rows of a class above all others."""
        ranks = (np.arange(len(self.classes_)) == _positive(place)).astype(np.int32)
        totals = np.array([classes.totals[ranks == rank].sum() for rank in (0, 1)])
        pair_weights = weigh_rank_pairs(np.arange(2), totals, totals.astype(np.int64), None)
        return RankedRows(uuid.uuid4().hex, self.classes_, ranks, pair_weights, pair_accuracy(self.tol))

    def _shifts_by_counts(
        self, cluster: Cluster, classes: _Classes, solutions: list[Solution]
    ) -> list[float]:
        """What to add to scores of which only the order counts, so that as many are above 0 as should be."""
        if self.objective == "error_rate" or not self.fit_intercept:
            return [0.0] * len(solutions)
        rows = int(classes.totals.sum())
        return [
            -score_above(cluster, solution.weights, rows - int(classes.totals[_positive(place)]))
            for place, solution in zip(self._list_problems(), solutions, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class _Classes:
    """What the classes cost, and the weight of their rows."""

    factors: NDArray[np.float64]
    totals: NDArray[np.float64]


def _positive(place: tuple[int, int]) -> int:
    """The class that a problem is about."""
    number, problems = place
    return 1 if problems == 1 else number
