"""Small clusters in this process and in others, and training rows."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from reference.patience import PATIENCE

if importlib.util.find_spec("distributed") is None:
    collect_ignore_glob = ["test_*.py", "*/test_*.py"]


@dataclass(frozen=True)
class Data:
    """Rows with several kinds of labels."""

    X: sparse.csr_matrix
    binary: np.ndarray
    classes: np.ndarray
    ranks: np.ndarray
    groups: np.ndarray
    weights: np.ndarray


@pytest.fixture(scope="session")
def client() -> Iterator[Any]:
    options = {"processes": False, "n_workers": 3, "threads_per_worker": 1, "dashboard_address": ":0"}
    from dask.distributed import Client, LocalCluster

    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def process_client() -> Iterator[Any]:
    """Yield one cluster for all tests that kill workers.

    It has spare workers, because a killed worker is not always restarted. Workers are forked from a process
    that has imported all modules, which saves most of the time.
    """
    import dask
    from dask.distributed import Client, LocalCluster
    from distributed.utils import get_mp_context

    settings = {
        "distributed.worker.multiprocessing-method": "forkserver",
        "distributed.comm.timeouts.connect": PATIENCE,
        "distributed.comm.timeouts.tcp": PATIENCE,
    }
    options = {"processes": True, "n_workers": 5, "threads_per_worker": 1, "dashboard_address": ":0"}
    with dask.config.set(settings):
        get_mp_context().set_forkserver_preload(["distributed", "unkernel.distributed"])
        with LocalCluster(**options) as cluster, Client(cluster) as client:
            client.wait_for_workers(5, timeout=PATIENCE)
            yield client


@pytest.fixture(scope="session")
def data() -> Data:
    generator = np.random.default_rng(0)
    X = sparse.random(600, 60, 0.15, format="csr", random_state=0)
    scores = X @ generator.normal(size=60) + 0.2 * generator.normal(size=600)
    return Data(
        X=X,
        binary=np.where(scores > 0, "yes", "no"),
        classes=np.digitize(scores, [-0.5, 0.5]),
        ranks=np.digitize(scores, [-0.7, -0.2, 0.3, 0.8]).astype(float),
        groups=generator.integers(0, 40, 600),
        weights=generator.integers(0, 3, 600).astype(float),
    )
