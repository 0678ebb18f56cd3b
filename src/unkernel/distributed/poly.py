"""Polynomial-kernel SVMs on a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, cast

from dask.distributed import Client
from sklearn.base import _fit_context, clone
from sklearn.utils.multiclass import check_classification_targets

from unkernel.cutplane.svc import whole_labels
from unkernel.distributed.cascade import Certified, ClusterCrew, Members, first_members, solve_by_rounds
from unkernel.distributed.cluster import Cluster, Gathered, merged_labels
from unkernel.distributed.on_cluster import OnCluster
from unkernel.distributed.poly_tasks import Moments, PolyPacking, PolyPart, PolyProblem, moments_of
from unkernel.learners.maps import gamma_value
from unkernel.learners.progress import OnProgress
from unkernel.learners.targets import class_codes, class_weights
from unkernel.poly import PolySVC


@dataclass(frozen=True)
class RoundProgress:
    """The state after a round, as solvers report it."""

    stage: str
    problem: int
    problems: int
    finished: int
    epoch: int
    active: int
    relative_gap: float
    objective: float
    bound: float


class DaskPolySVC(OnCluster, PolySVC):
    """Support vector classification with a polynomial kernel on a Dask cluster.

    This is :class:`~unkernel.PolySVC` with the rows on the workers. Training goes in rounds. One worker
    solves the problem of the rows that may be support vectors, at first of a sample; all workers then score
    their rows by its model, and send those on or inside the margin. The losses of all rows and the dual
    objective of that problem give the same certified gap as on one machine. Rows are sent as they are,
    weights of conjunctions only as part of the model. If a worker is lost, Dask restores its rows elsewhere
    and the round is repeated.

    Parameters
    ----------
    degree : {1, 2, 3}, default=2
        Largest number of features in a conjunction.
    C : float, default=1.0
        Weight of the loss; larger values fit the training set more closely.
    gamma : {"scale", "auto"} or float, default="scale"
        Factor of the inner product: ``1 / (n_features * X.var())``, ``1 / n_features`` or a value.
    coef0 : float, default=1.0
        Constant of the kernel, not negative.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        Loss of a row that violates the margin.
    feature_map : {"kernel", "plain"}, default="kernel"
        Coefficients of the conjunctions: those of the kernel, or 1.
    storage : {"auto", "on_the_fly", "condensed", "split", "kernel"}, default="auto"
        How conjunctions are represented during training, as for :class:`~unkernel.PolySVC`.
    tol : float, default=1e-3
        Relative duality gap at which training stops.
    max_iter : int, default=1000
        Largest number of passes over the rows that may be support vectors, in all rounds together.
    class_weight : dict, "balanced" or None, default=None
        Factors of C for each class; "balanced" gives all classes the same total weight.
    n_jobs : int or None, default=None
        Number of threads that a worker uses for a task; None means as many as it has, and 1 for the client.
    random_state : int, RandomState or None, default=None
        Seed of the order in which rows are visited.
    verbose : int, default=0
        1 prints how training ended; 2 adds one line per round.
    client : distributed.Client, default=None
        The Dask client; None uses the client that was made last.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    n_features_in_ : int
        Number of features seen during ``fit``.
    objective_ : float
        Primal objective of all rows, summed over the one-versus-rest problems.
    gap_ : float
        Certified relative duality gap, the largest over all problems.
    n_iter_ : int
        Passes over the rows that may be support vectors, in all rounds together.
    history_ : History
        Objective and lower bound of the optimum, round by round.
    gamma_ : float
        The value of gamma that was used.
    storage_ : str
        The storage that was used.
    model_ : ConjunctionModel or KernelModel
        The fitted model.
    n_rounds_ : int
        Number of rounds.
    traffic_ : dict
        Bytes that were sent during training, by purpose, summed over the parts: "rows", "model", "places" of
        rows in their parts, and "duals".
    n_parts_ : int
        Number of parts that the rows were in, one per worker.
    n_recoveries_ : int
        Number of tasks that were repeated because a worker was lost.

    See Also
    --------
    unkernel.PolySVC : The same estimator on one machine, with details of the parameters.
    DaskCuttingPlaneSVC : Linear classification on a cluster.

    Examples
    --------
    >>> from dask.distributed import Client
    >>> from unkernel.distributed import DaskPolySVC
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0"):
    ...     learner = DaskPolySVC(degree=2, C=10, gamma=1).fit(X, y)
    >>> learner.predict(X)
    array([0, 1, 1, 0])
    """

    penalty = "l2"  # the only one here
    warm_start = False
    _steps = "epochs"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: allowed
            for name, allowed in PolySVC._parameter_constraints.items()
            if name not in ("penalty", "warm_start")
        },
        **OnCluster._beyond_local,
    }

    def __init__(
        self,
        degree: int = 2,
        *,
        C: float = 1.0,
        gamma: float | str = "scale",
        coef0: float = 1.0,
        loss: str = "hinge",
        feature_map: str = "kernel",
        storage: str = "auto",
        tol: float = 1e-3,
        max_iter: int = 1000,
        class_weight: dict[Any, float] | str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        client: Client | None = None,
    ) -> None:
        self.degree = degree
        self.C = C
        self.gamma = gamma
        self.coef0 = coef0
        self.loss = loss
        self.feature_map = feature_map
        self.storage = storage
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.client = client

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to rows on the workers.

        Parameters
        ----------
        X : dask array, bag, list of delayed or futures, path, array or sparse matrix
            Training rows, as for :class:`DaskCuttingPlaneSVC`; blocks are ``(X, y)`` or
            ``(X, y, None, weights)``.
        y : dask array or array of shape (n_samples,), default=None
            Class labels; None if the rows come with labels.
        sample_weight : dask array or array of shape (n_samples,), default=None
            Weights of the rows. A row of weight k counts as k equal rows; rows of weight 0 are ignored.

        Returns
        -------
        DaskPolySVC
            The fitted estimator itself.
        """
        fitted: Self = self.fit_reporting(X, y, sample_weight, on_progress=None)
        return fitted

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit_reporting(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        on_progress: OnProgress | None,
        *,
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
            Called with the state of the solver after each round.
        zero_based : bool or "auto", default="auto"
            Whether feature numbers in files start at 0.

        Returns
        -------
        DaskPolySVC
            The fitted estimator itself.
        """
        cluster, problem = self._spread(X, y, sample_weight, zero_based)
        self._solve_on(cluster, problem, None, on_progress)
        return self

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def path(self, X: Any, y: Any, Cs: Iterable[float], sample_weight: Any = None) -> list[Self]:
        """Fit one model for each of several values of C.

        The rows are sent to the workers once, and each fit starts from the support vectors of the previous
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
        list of DaskPolySVC
            One fitted copy of this estimator for each C.
        """
        prepared = clone(self)
        cluster, problem = prepared._spread(X, y, sample_weight, "auto")
        fitted = []
        members = None
        for copy in self._copies(Cs):
            for name in ("n_features_in_", "classes_", "gamma_"):
                setattr(copy, name, getattr(prepared, name))
            same = replace(problem, learner=copy._local())
            members = copy._solve_on(cluster, same, members, None).members
            fitted.append(copy)
        return fitted

    def _spread(self, X: Any, y: Any, sample_weight: Any, zero_based: Any) -> tuple[Cluster, PolyProblem]:
        """Have the workers merge their rows; what is solved."""
        beside = {"y": y, "qid": None, "sample_weight": sample_weight}
        sources, found = self._gathered(X, beside, zero_based, identify=False)
        factors = self._survey_labels(found, sources.own_labels)
        self.n_features_in_ = found.n_features
        threads = self._worker_threads()
        packing = PolyPacking(found.first_index, found.n_features, self.classes_, threads)
        parts = [found.client.submit(PolyPart, blocks, packing, pure=False) for blocks in found.blocks]
        cluster = Cluster(found.client, parts, [seen.rows for seen in found.surveys])
        del found  # the blocks, now that they are merged
        sizes, moments = zip(*cluster.each(moments_of, lambda _: ()), strict=True)
        cluster.rows = list(sizes)
        self.gamma_ = gamma_value(self.gamma, cast(Any, Moments.together(moments)), self.n_features_in_)
        problem = PolyProblem(
            self._local(), self.classes_, factors, self.gamma_, self.n_features_in_, threads
        )
        return cluster, problem

    def _survey_labels(self, found: Gathered, of_files: bool) -> list[float]:
        """Find the classes; what each of them costs."""
        labels, totals, _ = merged_labels(found.surveys)
        labels = whole_labels(labels) if of_files else labels
        check_classification_targets(labels)
        self.classes_, codes = class_codes(labels, totals, type(self).__name__)
        counted = totals > 0
        return class_weights(self.class_weight, self.classes_, codes[counted], totals[counted])

    def _local(self) -> PolySVC:
        """The same learner for one machine, with a seed that all rounds share."""
        names = set(PolySVC._get_param_names()) & set(self._get_param_names())
        given = {name: getattr(self, name) for name in names}
        return PolySVC(**given | {"random_state": self._seed(), "verbose": 0})

    def _solve_on(
        self,
        cluster: Cluster,
        problem: PolyProblem,
        members: Members | None,
        on_progress: OnProgress | None,
    ) -> Certified:
        crew = ClusterCrew(cluster)
        certified = solve_by_rounds(
            crew, problem, members or first_members(crew), self._round_reporter(on_progress)
        )
        model = certified.solution.model()
        self.storage_ = certified.storage
        self.n_rounds_ = len(certified.history)
        self._note_traffic(cluster)
        about = f"{sum(cluster.rows)} distinct rows in {len(cluster.parts)} parts, {self.n_rounds_} rounds; "
        self._keep(
            certified.outcomes(float(self.tol)),
            lambda origin: replace(model, origin=origin),
            facts=self._facts(),
            about=about,
        )
        return certified

    def _round_reporter(self, on_progress: OnProgress | None) -> Any:
        def report(now: Certified) -> None:
            active = sum(map(len, now.members.places))
            objective, bound = float(now.objectives.sum()), float(now.bounds.sum())
            if self.verbose > 1:
                print(
                    f"[{type(self).__name__}] round {len(now.history)}: {active} rows, "
                    f"objective {objective:.6g}, bound {bound:.6g}, gap {now.gap:.2g}"
                )
            if on_progress is not None:
                problems = len(now.objectives)
                state = RoundProgress(
                    "training", 0, problems, 0, now.passes, active, now.gap, objective, bound
                )
                on_progress(cast(Any, state))

        return report
