"""Clients that are invalid, closed, or without workers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from dask.distributed import Client, LocalCluster

from unkernel.distributed import (
    DaskCuttingPlaneSVC,
    DaskPolyLogisticRegression,
    DaskPolyRegressor,
    DaskPolySVC,
    DaskRankSVM,
    DaskTreeSVC,
)
from unkernel.distributed.cluster import workers

ROWS = np.eye(4), [0, 1, 0, 1]
LEARNERS = [
    (DaskCuttingPlaneSVC, ROWS),
    (DaskPolyLogisticRegression, ROWS),
    (DaskPolyRegressor, ROWS),
    (DaskPolySVC, ROWS),
    (DaskRankSVM, ROWS),
    (DaskTreeSVC, (["(A b)", "(A c)"] * 2, [0, 1, 0, 1])),
]
every_learner = pytest.mark.parametrize(("learner", "examples"), LEARNERS)


@pytest.fixture(scope="module")
def client_without_workers() -> Iterator[Any]:
    """Yield a client of a cluster without workers."""
    options = {"processes": False, "n_workers": 0, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


@every_learner
def test_objects_that_are_not_clients_are_refused(learner: Any, examples: Any) -> None:
    with pytest.raises(TypeError, match=r"client must be a distributed.Client, or None .*, got 'tcp://a:1'"):
        learner(client="tcp://a:1").fit(*examples)


@pytest.fixture(scope="module")
def other_client() -> Iterator[Any]:
    """Yield a client that is not the default one."""
    options = {"processes": False, "n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


@every_learner
def test_a_client_need_not_be_the_default_one(
    other_client: Any, learner: Any, examples: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("distributed.client._global_clients", {})
    assert learner(client=other_client).fit(*examples).n_parts_ > 0


@every_learner
def test_clusters_without_workers_warn(
    client_without_workers: Any, monkeypatch: pytest.MonkeyPatch, learner: Any, examples: Any
) -> None:
    """Training would wait for workers; here it ends with the warning."""
    monkeypatch.setattr(workers, "_WARNING_SECONDS", 0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="the Dask cluster has no workers: waiting"):
            learner(client=client_without_workers).fit(*examples)


@every_learner
def test_closed_clients_are_refused(client_without_workers: Any, learner: Any, examples: Any) -> None:
    with Client(client_without_workers.cluster, set_as_default=False) as closed:
        pass
    with pytest.raises(ValueError, match="the Dask client is closed: make another one"):
        learner(client=closed).fit(*examples)
