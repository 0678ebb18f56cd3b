"""Workers of a cluster that are killed or stopped while they are needed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any


def kill_a_worker(
    client: Any, after: int, signal_number: signal.Signals = signal.SIGKILL
) -> Callable[[Any], Callable[..., Any]]:
    """Wrap a method to kill or stop a worker at its `after`-th call."""
    calls = 0

    def wrap(method: Any) -> Callable[..., Any]:
        def wrapped(self: Any, *arguments: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == after:
                os.kill(find_process(client, self._cluster.addresses[1]), signal_number)
            return method(self, *arguments)

        return wrapped

    return wrap


def find_process(client: Any, worker: str) -> int:
    """Return the process of a worker."""
    return int(client.run(os.getpid, workers=[worker])[worker])


def continue_workers(client: Any) -> None:
    """Continue all stopped workers."""
    for worker in client.run_on_scheduler(_processes):
        os.kill(worker, signal.SIGCONT)


def _processes(dask_scheduler: Any = None) -> list[int]:
    return [worker.pid for worker in dask_scheduler.workers.values()]
