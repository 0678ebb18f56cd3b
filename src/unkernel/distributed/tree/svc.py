"""Tree kernels on a Dask cluster."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from dask.distributed import Client

from unkernel.distributed.base import ClassifierOnCluster, cluster_constraints
from unkernel.distributed.cluster.workers import wait_for_worker
from unkernel.distributed.tree.shards import ClusterTrees, ExamplePlaces, FetchedTrees, gather_trees
from unkernel.distributed.tree.tree_sources import open_tree_sources
from unkernel.learners.progress import OnProgress
from unkernel.models import ExampleKernel
from unkernel.tree import TreeSVC
from unkernel.tree.training_trees import TreeTargets


class DaskTreeSVC(ClassifierOnCluster, TreeSVC):
    """Support vector classification with tree kernels on a Dask cluster.

    This is :class:`~unkernel.TreeSVC` with the trees on the workers; the client keeps their labels and
    weights. With "exact", the client solves the problem of the examples near the margin, and each worker
    scores its part of all examples. With "sampled", each worker scores its part of a sample, and the subtrees
    of each cut are sent to all workers. The same ``random_state`` gives the same samples and cuts as on one
    machine, and scores that agree to about nine digits. If a worker is lost, Dask restores its trees
    elsewhere and training continues.

    Parameters
    ----------
    kernel : {"sst", "st", "sst_bow", "ptk"}, default="sst"
        Subset trees, complete subtrees, subset trees and words, or partial trees. See
        :class:`~unkernel.TreeKernel`.
    decay : float, default=0.4
        Factor (lambda) by which larger fragments count less.
    width_decay : float, default=0.4
        Factor (mu) by which wider fragments count less, for ``kernel="ptk"``.
    normalize : bool, default=True
        Whether to scale the kernel so that every tree has the kernel 1 with itself.
    C : float, default=1.0
        Weight of the loss; larger values fit the training set more closely.
    solver : {"auto", "exact", "sampled"}, default="auto"
        Exact or approximate training, as for :class:`~unkernel.TreeSVC`. "auto" samples from 500,000 examples
        on.
    sample_size : int, default=1000
        Number of examples in a sample, for ``solver="sampled"``. Larger samples keep more workers busy.
    imbalance : float, default=1.0
        Weight of a positive example relative to a negative one.
    tree_pairing : {"same", "all"}, default="same"
        Which trees to compare if examples have several: those at the same position, or all pairs.
    fit_intercept : bool, default=True
        Whether to fit an intercept. "exact" does not regularise it, "sampled" does.
    tol : float, default=1e-3
        Precision at which training stops.
    max_iter : int, default=1000
        Largest number of rounds.
    class_weight : dict, "balanced" or None, default=None
        Factors of C for each class; "balanced" gives all classes the same total weight.
    n_jobs : int or None, default=None
        Number of threads of the client, and of a worker for a task; None means 1 for the client, and all
        threads of a worker.
    random_state : int, RandomState or None, default=None
        Seed of the samples that "sampled" draws.
    verbose : int, default=0
        1 prints the chosen solver and how training ended; 2 adds one line per second.
    client : distributed.Client, default=None
        The Dask client; None uses the most recent client.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    objective_ : float
        Primal objective, summed over the one-versus-rest problems. For "sampled", the cuts replace the
        losses.
    gap_ : float
        Certified relative duality gap, the largest over all problems. For "sampled", the gap of the problem
        of the cuts.
    n_iter_ : int
        Rounds, the largest number over all problems.
    history_ : History
        Objective and lower bound of the optimum, pass by pass.
    solver_ : str
        The solver that was used.
    n_support_ : int
        Number of support vectors (trees).
    model_ : TreeModel
        The fitted model.
    traffic_ : dict
        Bytes sent during training, by purpose, summed over the workers.
    n_parts_ : int
        Number of parts of the trees, one per worker.
    n_recoveries_ : int
        Number of times that a question was repeated because a worker was lost.

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
        self.kernel = kernel
        self.decay = decay
        self.width_decay = width_decay
        self.normalize = normalize
        self.C = C
        self.solver = solver
        self.sample_size = sample_size
        self.imbalance = imbalance
        self.tree_pairing = tree_pairing
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.client = client

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to labelled trees on the workers.

        Parameters
        ----------
        X : list of trees, Forest, dask bag, list of delayed or futures, or path
            Training trees: trees of this process, as for :class:`~unkernel.TreeSVC`, which are sent to the
            workers; a bag of pairs ``(tree, label)``; delayed objects or futures of blocks
            ``(trees, y[, weights])``; or a file, a pattern such as ``"part-*.dat"`` or a list of
            ``pathlib.Path``, in a format of :func:`~unkernel.read_trees` that has labels. Workers read files
            themselves, one block per file.
        y : array-like of shape (n_samples,), default=None
            Class labels; None if the trees come with labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of C for each tree; trees of weight 0 are ignored.

        Returns
        -------
        DaskTreeSVC
            The fitted estimator itself.
        """
        fitted: Self = self.fit_reporting(X, y, sample_weight, None)
        return fitted

    def _distribute(self, X: Any, y: Any, sample_weight: Any, _zero_based: Any) -> ClusterTrees:
        """Read and count the trees on the workers."""
        client = self._get_client()
        wait_for_worker(client)
        found = gather_trees(client, open_tree_sources(client, X, y, sample_weight))
        targets = TreeTargets.of(found.labels(), found.weights(), self.class_weight)
        kernel = self._make_tree_kernel()
        cluster = found.pack_parts(kernel, self._worker_threads())
        places = ExamplePlaces(found.surveys)
        return ClusterTrees(cluster, places, kernel, targets, FetchedTrees(cluster, places))

    def _solve_on(self, examples: ClusterTrees, _start: Any, on_progress: OnProgress | None) -> None:
        self._train_and_keep(examples, on_progress)
        self._note_traffic(examples.cluster)

    def _make_tree_kernel(self) -> ExampleKernel:
        return ExampleKernel(
            tree=self.kernel,
            decay=float(self.decay),
            width_decay=float(self.width_decay),
            normalize=bool(self.normalize),
            tree_pairing=self.tree_pairing,
        )
