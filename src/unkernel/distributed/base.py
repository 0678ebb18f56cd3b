"""What estimators on a cluster have in common."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import numpy as np
from dask.distributed import Client, default_client
from sklearn.base import clone

from unkernel.cutplane.solver_run import TrainingRows
from unkernel.distributed.cluster.coordinator import Cluster, Gathered, gather_blocks, wait_for_a_worker
from unkernel.distributed.cluster.row_sources import Sources, open_sources


class _Columns:
    """Stands for rows that are elsewhere, where only their columns count."""

    def __init__(self, features: int) -> None:
        self.features = features


class OnCluster:
    """What the estimators here have in common: the client, and how rows come to be parts."""

    # Parts of a worker: several can be shared with workers that come later. One is better for learners to
    # which a part costs more than its rows.
    _parts_each: ClassVar[int] = 1
    _beyond_local: ClassVar[dict[str, list[Any]]] = {"client": "no_validation"}  # type: ignore[dict-item]

    def _client(self) -> Client:
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

    def _gathered(
        self, X: Any, beside: dict[str, Any], zero_based: Any, *, identify: bool
    ) -> tuple[Sources, Gathered]:
        """The rows on the workers, with checksums if they are to be identified."""
        client = self._client()
        wait_for_a_worker(client)
        each = self._parts_each
        sources = open_sources(client, X, beside, zero_based, each)
        return sources, gather_blocks(client, sources, identify, each)

    def _rows_of(self, found: Gathered) -> TrainingRows:
        features = found.n_features
        self.n_features_in_ = features
        identity = {
            "shape": [sum(seen.rows for seen in found.surveys), features],
            "entries": sum(seen.entries for seen in found.surveys),
            "fingerprint": sum(seen.fingerprint for seen in found.surveys) % 2**64,
        }
        return TrainingRows(cast(Any, _Columns(features)), features, np.arange(features), identity)

    def _cluster(self, found: Gathered, intercept: float) -> Cluster:
        cluster = found.to_parts(intercept, self._worker_threads())
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
        """A client is shared, not copied."""
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        client = params.pop("client")
        copied = {name: clone(value, safe=False) for name, value in params.items()}
        return type(self)(**copied, client=client)  # type: ignore[call-arg]

    def __getstate__(self) -> dict[str, Any]:
        """A client is of this process; the estimator can be stored without it."""
        return super().__getstate__() | {"client": None}  # type: ignore[operator,no-any-return]
