"""Polynomial-kernel SVMs on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

from dask.distributed import Client

from unkernel.distributed.base import OnCluster, cluster_constraints
from unkernel.distributed.poly.base import DistributedRows, PolyClassifierOnCluster, RoundProgress
from unkernel.distributed.poly.cascade import (
    Certified,
    ClusterShards,
    Members,
    choose_first_members,
    solve_by_rounds,
)
from unkernel.distributed.poly.sparse import SparseOnCluster
from unkernel.distributed.poly.sparse_tasks import SparsePolyPart
from unkernel.distributed.poly.svc_tasks import PolyPart, PolyProblem
from unkernel.distributed.shared_docs import complete_docs
from unkernel.learners.progress import OnProgress
from unkernel.poly import PolySVC


@complete_docs(PolySVC, OnCluster, without=("feature_names_in_",))
class DaskPolySVC(PolyClassifierOnCluster, SparseOnCluster, PolySVC):
    """Support vector classification with a polynomial kernel on a Dask cluster.

    This estimator is :class:`~unkernel.PolySVC` with the rows on the workers. Training proceeds in rounds.
    One worker trains on the rows that may be support vectors; in the first round, these are a sample. All
    workers then score their rows with the resulting model, and send the rows on or inside the margin. The
    losses of all rows and the dual objective give the same certified gap as on one machine. Rows are sent
    without their conjunctions; weights of conjunctions are only sent as part of the model. If a worker is
    lost, Dask restores its rows on another worker and the round is repeated.

    Parameters
    ----------
    penalty : {"l2", "l1"}, default="l2"
        Norm of the weights in the penalty. "l1" makes most weights exactly 0. It requires
        ``loss="squared_hinge"``, and is trained in the same way as :class:`DaskPolyLogisticRegression`.
    storage : {"auto", "on_the_fly", "condensed", "split", "kernel"}, default="auto"
        How conjunctions are represented during training, as for :class:`~unkernel.PolySVC`.
    max_iter : int, default=1000
        Largest number of passes over the rows that may be support vectors, in all rounds together. With
        ``penalty="l1"``, the largest number of steps.
    verbose : int, default=0
        1 prints how training ended; 2 also prints one line per round.

    Attributes
    ----------
    n_iter_ : int
        Number of passes over the rows that may be support vectors, in all rounds together.
    history_ : History
        Objective and lower bound of the optimum, round by round.
    n_rounds_ : int
        Number of rounds.
    traffic_ : dict
        Number of bytes sent during training, summed over the parts, for each purpose: "rows", "model",
        "places" (the indices of rows in their parts), and "duals". With ``penalty="l1"``, the purposes are
        those of :class:`DaskPolyLogisticRegression`.

    See Also
    --------
    unkernel.PolySVC : The same estimator on one machine, with details of the parameters.
    DaskPolyLogisticRegression : Logistic regression on the same conjunctions.
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

    warm_start = False
    _steps = "epochs"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = cluster_constraints(PolySVC, "warm_start")

    def __init__(
        self,
        degree: int = 2,
        *,
        C: float = 1.0,
        gamma: float | str = "scale",
        coef0: float = 1.0,
        penalty: str = "l2",
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
        self._set_parameters(locals())

    def _get_part_class(self) -> type[PolyPart]:
        return SparsePolyPart if self.penalty == "l1" else PolyPart

    def _make_local_learner(self) -> PolySVC:
        """Return a learner for one machine with the same parameters; all rounds share its seed."""
        names = set(PolySVC._get_param_names()) & set(self._get_param_names())
        parameters = {name: getattr(self, name) for name in names}
        return PolySVC(**parameters | {"random_state": self._draw_seed(), "verbose": 0})

    def _train_on(self, examples: Any, start: Any, on_progress: OnProgress | None) -> Any:
        if self.penalty == "l1":
            self.storage_ = "on_the_fly"
            return self._solve_sparsely(examples, start, on_progress, loss=self.loss, l1=1.0)
        return self._solve_by_members(examples, start, on_progress)

    def _solve_by_members(
        self, examples: DistributedRows, start: Members | None, on_progress: OnProgress | None
    ) -> Members:
        """Train by rounds of solving and checking (``cascade.py``), and set the fitted attributes."""
        cluster = examples.cluster
        problem = PolyProblem(
            self._make_local_learner(),
            self.classes_,
            examples.factors,
            self.gamma_,
            self.n_features_in_,
            examples.threads,
        )
        shards = ClusterShards(cluster)
        certified = solve_by_rounds(
            shards, problem, start or choose_first_members(shards), self._make_round_reporter(on_progress)
        )
        model = certified.fetch_model()
        self.storage_ = certified.storage
        self.n_rounds_ = len(certified.history)
        self._record_traffic(cluster)
        self._finish_fit(
            certified.outcomes(float(self.tol)),
            lambda origin: replace(model, origin=origin),
            facts=self._training_facts(),
            about=self._describe_rounds(cluster),
        )
        return certified.members

    def _make_round_reporter(self, on_progress: OnProgress | None) -> Callable[[Certified], None]:
        def report(certified: Certified) -> None:
            active = sum(map(len, certified.members.places))
            objective, bound = float(certified.objectives.sum()), float(certified.bounds.sum())
            state = RoundProgress(
                "training",
                0,
                len(certified.objectives),
                0,
                certified.passes,
                active,
                certified.gap,
                objective,
                bound,
            )
            self._report_round(state, len(certified.history), "rows", on_progress)

        return report
