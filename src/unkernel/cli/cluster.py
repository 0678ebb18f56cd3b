"""Clients of a Dask cluster. Dask is optional, and imported only for --dask."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import logging
import re
from collections.abc import Iterator
from typing import Any

_LOCAL = "local"
_CONNECT_TIMEOUT = 10  # in seconds


@contextlib.contextmanager
def move_to_cluster(estimator: Any, address: str | None, workers: int) -> Iterator[Any]:
    """Yield the estimator, or its counterpart on the cluster at `address` with the same parameters."""
    if address is None:
        yield estimator
        return
    counterpart = _import_counterpart(type(estimator).__name__)
    with connect(address, workers) as client:
        names = inspect.signature(counterpart).parameters
        parameters = {
            name: value for name, value in estimator.get_params(deep=False).items() if name in names
        }
        yield counterpart(**parameters | {"n_jobs": None, "client": client})


def _import_counterpart(name: str) -> Any:
    """Import the estimator of ``unkernel.distributed`` that corresponds to the estimator `name`."""
    try:
        return getattr(importlib.import_module("unkernel.distributed"), f"Dask{name}")
    except ImportError as error:
        raise ValueError(f"--dask: {error}") from None


def check_address(address: str) -> None:
    """Raise ``ValueError`` unless `address` is ``local`` or HOST:PORT, with or without a protocol."""
    if address != _LOCAL and not re.fullmatch(r"\S+:\d+/?", address):
        raise ValueError(
            f"--dask must be local or the address of a scheduler, such as tcp://host:8786, got {address!r}"
        )


@contextlib.contextmanager
def connect(address: str, workers: int) -> Iterator[Any]:
    """Yield a client of a scheduler; ``local`` starts one with single-threaded workers."""
    try:
        importlib.import_module("unkernel.distributed")  # its error explains how to install Dask
        distributed = importlib.import_module("distributed")
    except ImportError as error:
        raise ValueError(f"--dask: {error}") from None
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # the command itself reports errors
    with contextlib.ExitStack() as stack:
        scheduler: Any = address
        if address == _LOCAL:
            settings = importlib.import_module("unkernel.distributed.cluster.local_settings")
            stack.enter_context(importlib.import_module("dask").config.set(settings.ONE_MACHINE))
            cluster = distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
            )
            scheduler = stack.enter_context(cluster)
        try:
            client = distributed.Client(scheduler, timeout=_CONNECT_TIMEOUT)
        except OSError as error:
            raise ValueError(f"--dask {address}: no scheduler answers ({error})") from error
        yield stack.enter_context(client)
