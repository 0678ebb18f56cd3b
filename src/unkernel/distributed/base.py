"""Base classes of the estimators that train on a cluster."""

from __future__ import annotations

from typing import Any, ClassVar, Self, cast

import numpy as np
from dask.distributed import Client, default_client
from sklearn.base import RegressorMixin, clone
from sklearn.utils.multiclass import check_classification_targets

from unkernel.cutplane.solver_run import TrainingRows
from unkernel.cutplane.targets import to_whole_labels
from unkernel.distributed.cluster.coordinator import Cluster
from unkernel.distributed.cluster.gathered_blocks import GatheredBlocks, gather_blocks, merge_labels
from unkernel.distributed.cluster.row_sources import Sources, open_sources
from unkernel.distributed.cluster.workers import wait_for_worker


def cluster_constraints(local: Any, *dropped: str) -> dict[str, list[Any]]:
    """Return the parameter constraints of a local estimator, without `dropped` and with ``client``."""
    constraints = local._parameter_constraints.items()
    return {name: allowed for name, allowed in constraints if name not in dropped} | {
        "client": "no_validation"
    }


class _Columns:
    """Placeholder for rows that are on the workers: it has only their number of columns."""

    def __init__(self, features: int) -> None:
        self.features = features


class OnCluster:
    """Base class of estimators on a cluster: finds the client, and lets the workers pack rows into parts.

    A *part* is the packed rows of one or several blocks on one worker.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Number of threads per task. None means all threads of the worker, and one thread on the client.
    client : distributed.Client, default=None
        The Dask client; None uses the most recent client.

    Attributes
    ----------
    traffic_ : dict
        Number of bytes sent during training, summed over the workers, for each purpose.
    n_parts_ : int
        Number of parts of the rows, one per worker.
    n_recoveries_ : int
        Number of requests repeated because a worker was lost.
    """

    # Several parts per worker allow some parts to move to workers that join later. One part per worker is
    # better for learners with a high cost per part.
    _max_parts_per_worker: ClassVar[int] = 1

    def _get_client(self) -> Client:
        """Return the client that the parameter names, or the most recent one."""
        client: Client | None = self.client  # type: ignore[attr-defined]
        if client is not None and not isinstance(client, Client):
            raise TypeError(
                f"client must be a distributed.Client, or None for the most recent one, got {client!r}"
            )
        if client is not None:
            return client
        try:
            return default_client()
        except ValueError:
            raise ValueError(
                "there is no Dask client: make one, distributed.Client(...), or give client="
            ) from None

    def _gather_blocks(
        self, X: Any, targets: dict[str, Any], zero_based: Any, *, identify: bool
    ) -> tuple[Sources, GatheredBlocks]:
        """Return the blocks of rows on the workers; with `identify`, include fingerprints of the rows."""
        client = self._get_client()
        wait_for_worker(client)
        sources = open_sources(client, X, targets, zero_based, self._max_parts_per_worker)
        regression = isinstance(self, RegressorMixin)
        return sources, gather_blocks(
            client, sources, identify, self._max_parts_per_worker, regression=regression
        )

    def _merge_labels(self, gathered: GatheredBlocks, from_files: bool) -> tuple[Any, Any]:
        """Return the distinct labels, and the total weight of the rows of each label."""
        labels, totals, _ = merge_labels(gathered.surveys)
        labels = to_whole_labels(labels) if from_files else labels
        check_classification_targets(labels)
        return labels, totals

    def _describe_rows(self, gathered: GatheredBlocks) -> TrainingRows:
        """Return the facts about the rows that solvers need, and set the number of features."""
        features = gathered.n_features
        self.n_features_in_ = features
        identity = {
            "shape": [sum(survey.rows for survey in gathered.surveys), features],
            "entries": sum(survey.entries for survey in gathered.surveys),
            "fingerprint": sum(survey.fingerprint for survey in gathered.surveys) % 2**64,
        }
        return TrainingRows(cast(Any, _Columns(features)), features, np.arange(features), identity)

    def _pack_parts(self, gathered: GatheredBlocks, intercept: float) -> Cluster:
        cluster = gathered.pack_parts(intercept, self._worker_threads())
        cluster.checkpoint = self.checkpoint  # type: ignore[attr-defined]
        return cluster

    def _worker_threads(self) -> int | None:
        n_jobs = self.n_jobs  # type: ignore[attr-defined]
        return None if n_jobs is None or n_jobs < 0 else max(int(n_jobs), 1)

    def _record_traffic(self, cluster: Cluster) -> None:
        self.traffic_ = dict(cluster.traffic)
        self.n_parts_ = len(cluster.parts)
        self.n_recoveries_ = cluster.recoveries

    def __sklearn_clone__(self) -> Any:
        """Return an unfitted copy with the same parameters, which shares the client."""
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        client = params.pop("client")
        copied = {name: clone(value, safe=False) for name, value in params.items()}
        return type(self)(**copied, client=client)  # type: ignore[call-arg]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the client, which cannot leave this process."""
        return super().__getstate__() | {"client": None}  # type: ignore[operator,no-any-return]


class ClassifierOnCluster(OnCluster):
    """Base class of classifiers whose examples are on the workers."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to labelled examples on the workers.

        Parameters
        ----------
        X : dask array, bag, list of delayed or futures, path, array, sparse matrix, list of trees, or Forest
            Training examples: rows, or trees for :class:`DaskTreeSVC`. A Dask array must be chunked by rows;
            its chunks are dense or SciPy matrices. For rows, the items of a bag or list are blocks ``(X, y)``
            or ``(X, y, None, weights)``. For trees, the items of a bag are pairs ``(tree, label)``, and the
            items of a list are blocks ``(trees, y[, weights])``. A path, a pattern such as
            ``"part-*.svm.gz"`` or a list of paths names files that the workers can read. Files of rows have
            the svmlight format, and files of trees have a format of :func:`~unkernel.read_trees` with labels.
            In a list of files of trees, each path is a ``pathlib.Path``. Addresses such as ``s3://`` need
            fsspec. Examples in the memory of this process are sent to the workers.
        y : dask array or array of shape (n_samples,), default=None
            Class labels; None if the examples come with labels.
        sample_weight : dask array or array of shape (n_samples,), default=None
            Weights of the examples, with the same meaning as on one machine.

        Returns
        -------
        estimator
            The fitted estimator itself.
        """
        fitted: Self = self.fit_reporting(X, y, sample_weight, None)  # type: ignore[attr-defined]
        return fitted
