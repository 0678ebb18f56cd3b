"""The base of the estimators on a cluster."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Self, cast

import numpy as np
from dask.distributed import Client, default_client
from sklearn.base import _fit_context, clone

from unkernel.cutplane.solver_run import TrainingRows
from unkernel.distributed.cluster.coordinator import Cluster
from unkernel.distributed.cluster.gathered_blocks import GatheredBlocks, gather_blocks
from unkernel.distributed.cluster.row_sources import Sources, open_sources
from unkernel.distributed.cluster.workers import wait_for_worker
from unkernel.learners.progress import OnProgress


def cluster_constraints(local: Any, *dropped: str) -> dict[str, list[Any]]:
    """Return the constraints of a local estimator's parameters, without those of one machine only."""
    kept = {name: allowed for name, allowed in local._parameter_constraints.items() if name not in dropped}
    return kept | {"client": "no_validation"}


class _Columns:
    """The number of columns of rows that are on the workers."""

    def __init__(self, features: int) -> None:
        self.features = features


class OnCluster:
    """Finds the client, and has the workers pack their rows into parts."""

    # Several parts per worker can be shared with workers that join later. One is better for learners to which
    # a part costs more than its rows.
    _max_parts_per_worker: ClassVar[int] = 1

    def _get_client(self) -> Client:
        given: Client | None = self.client  # type: ignore[attr-defined]
        if given is not None and not isinstance(given, Client):
            raise TypeError(f"client must be a distributed.Client, or None for the last one, got {given!r}")
        if given is not None:
            return given
        try:
            return default_client()
        except ValueError:
            raise ValueError(
                "there is no Dask client: make one, distributed.Client(...), or give client="
            ) from None

    def _gather_blocks(
        self, X: Any, beside: dict[str, Any], zero_based: Any, *, identify: bool
    ) -> tuple[Sources, GatheredBlocks]:
        """Gather the rows on the workers, with fingerprints if they are to be identified."""
        client = self._get_client()
        wait_for_worker(client)
        sources = open_sources(client, X, beside, zero_based, self._max_parts_per_worker)
        return sources, gather_blocks(client, sources, identify, self._max_parts_per_worker)

    def _describe_rows(self, found: GatheredBlocks) -> TrainingRows:
        features = found.n_features
        self.n_features_in_ = features
        identity = {
            "shape": [sum(seen.rows for seen in found.surveys), features],
            "entries": sum(seen.entries for seen in found.surveys),
            "fingerprint": sum(seen.fingerprint for seen in found.surveys) % 2**64,
        }
        return TrainingRows(cast(Any, _Columns(features)), features, np.arange(features), identity)

    def _pack_parts(self, found: GatheredBlocks, intercept: float) -> Cluster:
        cluster = found.pack_parts(intercept, self._worker_threads())
        cluster.checkpoint = self.checkpoint  # type: ignore[attr-defined]
        return cluster

    def _worker_threads(self) -> int | None:
        n_jobs = self.n_jobs  # type: ignore[attr-defined]
        return None if n_jobs is None or n_jobs < 0 else max(int(n_jobs), 1)

    def _note_traffic(self, cluster: Cluster) -> None:
        self.traffic_ = dict(cluster.traffic)
        self.n_parts_ = len(cluster.parts)
        self.n_recoveries_ = cluster.recoveries

    def __sklearn_clone__(self) -> Any:
        """Copy the parameters, and share the client."""
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        client = params.pop("client")
        copied = {name: clone(value, safe=False) for name, value in params.items()}
        return type(self)(**copied, client=client)  # type: ignore[call-arg]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the client, which belongs to this process."""
        return super().__getstate__() | {"client": None}  # type: ignore[operator,no-any-return]


class ClassifierOnCluster(OnCluster):
    """Distributes the examples once, and trains on them with one C or several."""

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit_reporting(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        on_progress: OnProgress | None,
        *,
        on_reading: Any = None,
        zero_based: Any = "auto",
    ) -> Self:
        """Fit the model and report progress while training.

        Parameters
        ----------
        X : any source of examples
            Training examples, as in :meth:`fit`.
        y : dask array or array of shape (n_samples,) or None
            Class labels.
        sample_weight : dask array or array of shape (n_samples,) or None
            Weights of the examples.
        on_progress : callable or None
            Called with the state of the solver during training.
        on_reading : ignored, default=None
            Not used.
        zero_based : bool or "auto", default="auto"
            Whether feature numbers in svmlight files start at 0.

        Returns
        -------
        estimator
            The fitted estimator itself.
        """
        self._solve_on(self._distribute(X, y, sample_weight, zero_based), None, on_progress)
        return self

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def path(self, X: Any, y: Any, Cs: Iterable[float], sample_weight: Any = None) -> list[Self]:
        """Fit one model for each of several values of C.

        The examples are sent to the workers and prepared once. Each fit starts from the solution of the
        previous one, except for trees. ``traffic_`` of a fitted copy counts what was sent until it was
        fitted.

        Parameters
        ----------
        X : any source of examples
            Training examples, as in :meth:`fit`.
        y : dask array or array of shape (n_samples,) or None
            Class labels.
        Cs : iterable of float
            Values of C; training is fastest if they ascend.
        sample_weight : dask array or array of shape (n_samples,), default=None
            Weights of the examples.

        Returns
        -------
        list of estimators
            One fitted copy of this estimator for each C.
        """
        if getattr(self, "checkpoint", None) is not None:
            raise ValueError("path keeps no checkpoint: leave it out")
        prepared = clone(self)
        examples = prepared._distribute(X, y, sample_weight, "auto")
        fitted, start = [], None
        for copy in self._copy_with_each(Cs):  # type: ignore[attr-defined]
            for name, value in vars(prepared).items():  # beside the parameters, facts of the examples
                vars(copy).setdefault(name, value)
            start = copy._solve_on(examples, start, None)
            fitted.append(copy)
        return fitted

    @abstractmethod
    def _distribute(self, X: Any, y: Any, sample_weight: Any, zero_based: Any) -> Any:
        """Return the examples, prepared on the workers."""

    @abstractmethod
    def _solve_on(self, examples: Any, start: Any, on_progress: OnProgress | None) -> Any:
        """Train and keep the model; return where the next training may start."""
