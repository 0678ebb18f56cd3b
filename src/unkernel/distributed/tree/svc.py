"""Tree kernels on a Dask cluster."""

from __future__ import annotations

from typing import Any, ClassVar

from dask.distributed import Client

from unkernel.distributed.base import ClassifierOnCluster, OnCluster, cluster_constraints
from unkernel.distributed.cluster.workers import wait_for_worker
from unkernel.distributed.shared_docs import complete_docs
from unkernel.distributed.tree.shards import ClusterTrees, ExamplePlaces, FetchedTrees, gather_trees
from unkernel.distributed.tree.tree_sources import open_tree_sources
from unkernel.learners.progress import OnProgress
from unkernel.models import ExampleKernel
from unkernel.tree import TreeSVC
from unkernel.tree.training_trees import TreeTargets


@complete_docs(TreeSVC, OnCluster)
class DaskTreeSVC(ClassifierOnCluster, TreeSVC):
    """Support vector classification with tree kernels on a Dask cluster.

    This estimator is :class:`~unkernel.TreeSVC` with the trees on the workers; the client keeps their labels
    and weights. With ``solver="exact"``, the client trains on the examples near the margin, and each worker
    scores its part of all examples. With "sampled", each worker scores its part of a sample, and all workers
    receive the subtrees of each cut. The same ``random_state`` gives the same samples and cuts as on one
    machine, and scores that agree to about nine digits. If a worker is lost, Dask restores its trees on
    another worker and training continues.

    Parameters
    ----------
    sample_size : int, default=1000
        Number of examples per sample, for ``solver="sampled"``. Larger samples keep more workers busy.
    n_jobs : int or None, default=None
        Number of threads on the client, and number of threads per task on a worker. None means one thread on
        the client, and all threads of a worker.

    Attributes
    ----------
    n_parts_ : int
        Number of parts of the trees, one per worker.

    See Also
    --------
    unkernel.TreeSVC : The same estimator on one machine, with details of the parameters.
    DaskCuttingPlaneSVC : Linear classification on a cluster.

    Examples
    --------
    >>> from dask.distributed import Client
    >>> from unkernel.distributed import DaskTreeSVC
    >>> questions = ["(Q (WP who) (VBD wrote) (NP it))", "(Q (WRB where) (VBZ is) (NP it))"]
    >>> with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0"):
    ...     learner = DaskTreeSVC(C=10).fit(questions, ["person", "place"])
    >>> learner.predict(["(Q (WP who) (VBZ is) (NP she))"])
    array(['person'], dtype='<U6')
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = cluster_constraints(
        TreeSVC,
        *("combine", "tree_weight", "vector_kernel", "degree", "gamma", "coef0", "normalize_vectors"),
        "warm_start",
    )

    def __init__(
        self,
        kernel: str = "sst",
        *,
        decay: float = 0.4,
        width_decay: float = 0.4,
        normalize: bool = True,
        C: float = 1.0,
        solver: str = "auto",
        sample_size: int = 1000,
        imbalance: float = 1.0,
        tree_pairing: str = "same",
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 1000,
        class_weight: dict[Any, float] | str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        client: Client | None = None,
    ) -> None:
        self._set_parameters(locals())

    def _prepare(  # type: ignore[override]
        self, X: Any, y: Any, sample_weight: Any, **_: Any
    ) -> ClusterTrees:
        """Read and count the trees on the workers."""
        client = self._get_client()
        wait_for_worker(client)
        gathered = gather_trees(client, open_tree_sources(client, X, y, sample_weight))
        targets = TreeTargets.from_labels(gathered.labels(), gathered.weights(), self.class_weight)
        kernel = self._make_tree_kernel()
        cluster = gathered.pack_parts(kernel, self._worker_threads())
        places = ExamplePlaces(gathered.surveys)
        return ClusterTrees(cluster, places, kernel, targets, FetchedTrees(cluster, places))

    def _train_on(self, examples: Any, start: Any, on_progress: OnProgress | None) -> None:
        super()._train_on(examples, start, on_progress)
        self._record_traffic(examples.cluster)

    def _make_tree_kernel(self) -> ExampleKernel:
        return ExampleKernel(
            tree=self.kernel,
            decay=float(self.decay),
            width_decay=float(self.width_decay),
            normalize=bool(self.normalize),
            tree_pairing=self.tree_pairing,
        )
