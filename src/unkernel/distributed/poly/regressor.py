"""Regression on conjunctions of features on a Dask cluster."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from dask.distributed import Client
from numpy.typing import NDArray

from unkernel.distributed.base import OnCluster, cluster_constraints
from unkernel.distributed.cluster.gathered_blocks import GatheredBlocks, merge_labels
from unkernel.distributed.poly.sparse import SparseOnCluster
from unkernel.distributed.poly.sparse_tasks import SparsePolyPart
from unkernel.distributed.poly.svc_tasks import PolyPart
from unkernel.distributed.shared_docs import complete_docs
from unkernel.learners.progress import OnProgress
from unkernel.poly import PolyRegressor

_LOSSES = ("squared_error", "squared_epsilon_insensitive")


@complete_docs(PolyRegressor, OnCluster, without=("feature_names_in_",))
class DaskPolyRegressor(SparseOnCluster, PolyRegressor):
    """Regression on all conjunctions of at most ``degree`` features on a Dask cluster.

    This estimator is :class:`~unkernel.PolyRegressor` with the rows on the workers; only weights are sent.
    It is trained in the same way as :class:`DaskPolyLogisticRegression`: under ``penalty="l2"``, by Newton
    steps for the weights of all conjunctions that occur; with an l1 term, by searches for conjunctions and
    steps for the conjunctions found. The gap is certified for all conjunctions and all rows, as on one
    machine. If a worker is lost, its rows are restored on another worker and the round continues.

    Parameters
    ----------
    loss : {"squared_error", "squared_epsilon_insensitive"}, default="squared_error"
        The loss of a residual, as for :class:`~unkernel.PolyRegressor`. The other losses of that class have
        no second derivative, which the steps need; they are only available on one machine.
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        Norm of the weights in the penalty. "l2" gives every conjunction a weight, and all weights are sent
        several times in each step. "l1" and "elasticnet" make most weights exactly 0, and require
        ``loss="squared_error"``.
    epsilon : float, default=0.1
        Largest absolute residual without a loss, for ``loss="squared_epsilon_insensitive"``.
    max_iter : int, default=1000
        Largest number of steps.
    random_state : int, RandomState or None, default=None
        Seed of the order in which weights are visited, with an l1 term.
    verbose : int, default=0
        1 prints how training ended; 2 also prints one line per round.

    Attributes
    ----------
    n_iter_ : int
        Number of steps.
    history_ : History
        Objective and lower bound of the optimum, round by round.
    n_rounds_ : int
        Number of rounds.
    storage_ : str
        Always "on_the_fly".
    traffic_ : dict
        Number of bytes sent during training, summed over the workers, for each purpose, as for
        :class:`DaskPolyLogisticRegression`.
    model_ : ConjunctionModel
        The fitted model; see :meth:`to_model`.

    See Also
    --------
    unkernel.PolyRegressor : The same estimator on one machine, with details of the parameters.
    DaskPolyLogisticRegression : Logistic regression on the same conjunctions.

    Examples
    --------
    >>> from dask.distributed import Client
    >>> from unkernel.distributed import DaskPolyRegressor
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1], [2, 1]], [0, 0, 0, 1, 2]
    >>> with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0"):
    ...     reg = DaskPolyRegressor(degree=2, C=1e4, gamma=1, tol=1e-9).fit(X, y)
    >>> reg.predict([[2, 2]]).round(2)
    array([4.])
    """

    storage = "auto"  # not a parameter of this estimator
    warm_start = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = cluster_constraints(
        PolyRegressor, "storage", "warm_start", "updatable", "quantile"
    )

    def __init__(
        self,
        degree: int = 2,
        *,
        C: float = 1.0,
        loss: str = "squared_error",
        penalty: str = "l2",
        l1_ratio: float = 0.5,
        epsilon: float = 0.1,
        gamma: float | str = "scale",
        coef0: float = 1.0,
        feature_map: str = "kernel",
        tol: float = 1e-3,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        client: Client | None = None,
    ) -> None:
        self._set_parameters(locals())

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to rows on the workers.

        Parameters
        ----------
        X : dask array, bag, list of delayed or futures, path, array or sparse matrix
            Training rows, as for :class:`DaskPolyLogisticRegression`.
        y : dask array or array of shape (n_samples,), default=None
            The values to predict; None if the rows come with values.
        sample_weight : dask array or array of shape (n_samples,), default=None
            Weights of the rows, with the same meaning as on one machine.

        Returns
        -------
        DaskPolyRegressor
            The fitted estimator itself.
        """
        fitted: Self = self.fit_reporting(X, y, sample_weight, None)
        return fitted

    def _check_parameters(self) -> None:
        if self.loss not in _LOSSES:
            raise ValueError(
                f"loss={self.loss!r} has no second derivative, which the steps on a cluster need: use "
                f"PolyRegressor on one machine, or loss={_LOSSES[0]!r} or {_LOSSES[1]!r}"
            )
        super()._check_parameters()

    def _get_part_class(self) -> type[PolyPart]:
        return SparsePolyPart

    def _survey_labels(
        self, gathered: GatheredBlocks, from_files: bool
    ) -> tuple[NDArray[Any] | None, list[float]]:
        means, totals, _ = merge_labels(gathered.surveys)
        if not totals.any():
            raise ValueError(f"{type(self).__name__} needs at least one row with a positive sample_weight")
        self._centre = self._choose_centre(means, totals)
        return None, []

    def _train_on(self, examples: Any, start: Any, on_progress: OnProgress | None) -> Any:
        self.storage_ = "on_the_fly"
        l1, _ = self._penalty
        epsilon = float(self.epsilon) if self.loss == "squared_epsilon_insensitive" else 0.0
        return self._solve_sparsely(
            examples,
            start,
            on_progress,
            loss="squared_error",
            l1=l1,
            epsilon=epsilon,
            centre=self._centre,
        )
