"""Log-linear models over conjunctions of features on a Dask cluster."""

from __future__ import annotations

from typing import Any, ClassVar

from dask.distributed import Client

from unkernel.distributed.base import OnCluster, cluster_constraints
from unkernel.distributed.poly.base import PolyClassifierOnCluster
from unkernel.distributed.poly.sparse import SparseOnCluster
from unkernel.distributed.poly.sparse_tasks import SparsePolyPart
from unkernel.distributed.poly.svc_tasks import PolyPart
from unkernel.distributed.shared_docs import complete_docs
from unkernel.learners.progress import OnProgress
from unkernel.poly import PolyLogisticRegression


@complete_docs(PolyLogisticRegression, OnCluster, without=("feature_names_in_",))
class DaskPolyLogisticRegression(PolyClassifierOnCluster, SparseOnCluster, PolyLogisticRegression):
    """Logistic regression on all conjunctions of at most ``degree`` features on a Dask cluster.

    This estimator is :class:`~unkernel.PolyLogisticRegression` with the rows on the workers; only weights are
    sent. Training consists of rounds. First, the workers find the conjunctions whose gradients, summed over
    all rows, exceed the penalty most. Each worker then approximates the objective of all rows by the losses
    of its own rows, corrected by the gradient of all rows. It proposes weights that lower this approximation.
    Training moves from the current weights towards the mean of the proposals, by the best step length. With
    ``penalty="l2"`` all conjunctions have weights, and a round is a Newton step for all weights together. The
    gap is certified for all conjunctions and all rows, as on one machine. If a worker is lost, its rows are
    restored on another worker and the round continues.

    Parameters
    ----------
    penalty : {"l1", "l2", "elasticnet"}, default="l1"
        Norm of the weights in the penalty. "l2" gives every conjunction a weight, and all weights are sent
        several times in each step.
    max_iter : int, default=1000
        Largest number of steps.
    verbose : int, default=0
        1 prints how training ended; 2 also prints one line per round.

    Attributes
    ----------
    n_iter_ : int
        Number of steps.
    history_ : History
        Objective and lower bound of the optimum, round by round.
    n_rounds_ : int
        Number of rounds: searches among all conjunctions.
    traffic_ : dict
        Number of bytes sent during training, summed over the workers, for each purpose: "numbering" of
        features, "search" for conjunctions, and "weights" with their gradients.

    See Also
    --------
    unkernel.PolyLogisticRegression : The same estimator on one machine, with details of the parameters.
    DaskPolySVC : Support vector classification on the same conjunctions.

    References
    ----------
    .. [1] O. Shamir, N. Srebro and T. Zhang, "Communication-efficient distributed optimization using an
       approximate Newton-type method", Proceedings of the 31st International Conference on Machine Learning,
       2014.

    Examples
    --------
    >>> from dask.distributed import Client
    >>> from unkernel.distributed import DaskPolyLogisticRegression
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0"):
    ...     learner = DaskPolyLogisticRegression(degree=2, C=100, gamma=1).fit(X, y)
    >>> learner.predict(X)
    array([0, 1, 1, 0])
    >>> learner.predict_proba(X).max(axis=1).min() > 0.9
    np.True_
    """

    storage = "auto"  # not a parameter of this estimator
    warm_start = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = cluster_constraints(
        PolyLogisticRegression, "storage", "warm_start"
    )

    def __init__(
        self,
        degree: int = 2,
        *,
        C: float = 1.0,
        penalty: str = "l1",
        l1_ratio: float = 0.5,
        gamma: float | str = "scale",
        coef0: float = 1.0,
        feature_map: str = "kernel",
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
        return SparsePolyPart

    def _train_on(self, examples: Any, start: Any, on_progress: OnProgress | None) -> Any:
        return self._solve_sparsely(examples, start, on_progress, loss="logistic", l1=self._l1_share())
