"""Find the usable workers of a cluster, and recover results from lost workers.

When a worker ends, Dask runs its tasks on other workers. There are three cases that Dask does not handle: it
waits minutes for a worker that is suspended or disconnected; it waits forever for a worker that has paused
because its memory is full; and if all workers are lost together, it never runs tasks that prefer one of them.
This module handles these cases.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import time
import uuid
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any

from dask.distributed import Client, Future, KilledWorker, wait
from dask.distributed import TimeoutError as DaskTimeout
from dask.utils import format_bytes

POLL_SECONDS = 0.5  # time between two checks of the workers during a request
_FIRST_FETCH_SECONDS = 5.0  # the first timeout for fetching results; it doubles with each attempt
_MAX_SILENCE_SECONDS = 60.0  # a worker that is silent or paused for longer is unusable
_WARNING_SECONDS = 10.0  # after this time without workers, a warning is shown
_MAX_ABSENCE_SECONDS = 300.0  # after this time without workers, an error is raised

_REMEDY = "use more workers, give them more memory (memory_limit), or use smaller blocks or files"


class SchedulerLostError(ConnectionError):
    """The client has lost its scheduler."""


@dataclass(frozen=True)
class Worker:
    """The state of a worker according to the scheduler."""

    threads: int
    silence: float  # seconds since its last message
    paused: bool  # because its memory is full
    memory: int
    memory_limit: int


# --- Usable workers ----------------------------------------------------------------------------------------


class WorkerMonitor:
    """Distinguishes usable workers from excluded, silent and paused workers."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._excluded: set[str] = set()
        self._silent: set[str] = set()
        self._paused_since: dict[str, float] = {}
        self._last_seen_any = time.monotonic()
        self._warned = False

    def exclude(self, workers: Collection[str]) -> None:
        """Exclude some workers from use."""
        self._excluded |= set(workers)

    def find_usable(self) -> dict[str, Worker]:
        """Return the usable workers by address.

        Raises
        ------
        MemoryError
            If there are no usable workers because the memory of all workers is full.
        ConnectionError
            If there have been no usable workers for a long time, or the scheduler is lost.
        """
        workers = list_workers(self._client)
        now = time.monotonic()
        paused = {name for name, worker in workers.items() if worker.paused}
        self._paused_since = {name: self._paused_since.get(name, now) for name in paused}
        full = {name for name, since in self._paused_since.items() if now - since >= _MAX_SILENCE_SECONDS}
        self.exclude(full)
        # A worker must be silent in two successive checks: after a suspension of the scheduler, all workers
        # seem silent at first.
        silent = {name for name, worker in workers.items() if worker.silence >= _MAX_SILENCE_SECONDS}
        refused = self._excluded | (silent & self._silent)
        self._silent = silent
        usable = {name: worker for name, worker in workers.items() if name not in refused}
        absence = now - self._last_seen_any
        if usable:
            self._last_seen_any = now
        elif full:
            raise MemoryError(_describe_full_memory(min(full), workers[min(full)]))
        elif absence >= _WARNING_SECONDS and not self._warned:
            self._warned = True
            _warn_of_no_workers()
        elif absence >= _MAX_ABSENCE_SECONDS:
            raise ConnectionError(
                f"the Dask cluster has had no usable workers for {_MAX_ABSENCE_SECONDS:.0f} seconds; if they "
                f"ran out of memory, {_REMEDY}"
            )
        return usable


def wait_for_worker(client: Client) -> None:
    """Wait until the cluster has a worker; warn after a while, because the user may need to start one."""
    if client.status in ("closing", "closed"):
        raise ValueError("the Dask client is closed: make another one, distributed.Client(...)")
    deadline = time.monotonic() + _WARNING_SECONDS
    warned = False
    while not list_workers(client):  # paused workers count too, because later errors name them
        if time.monotonic() >= deadline and not warned:
            _warn_of_no_workers()
            warned = True
        time.sleep(0.05)


def _warn_of_no_workers() -> None:
    warnings.warn("the Dask cluster has no workers: waiting until there is one", stacklevel=3)


def _describe_full_memory(name: str, worker: Worker) -> str:
    return (
        f"the rows do not fit into the memory of the workers: {name} has paused with "
        f"{format_bytes(worker.memory)} of its memory_limit of {format_bytes(worker.memory_limit)} in use; "
        f"{_REMEDY}"
    )


def list_workers(client: Client) -> dict[str, Worker]:
    """Return all workers by address."""
    with explain_losses(client):
        workers: dict[str, Worker] = client.run_on_scheduler(_list_workers)
        return workers


def _list_workers(dask_scheduler: Any = None) -> dict[str, Worker]:
    """Return the state of all workers by address; runs on the scheduler."""
    now = time.time()
    return {
        name: Worker(
            threads=state.nthreads,
            silence=now - state.last_seen,
            paused=state.status.name == "paused",
            memory=state.memory.process,
            memory_limit=state.memory_limit,
        )
        for name, state in dask_scheduler.workers.items()
    }


@contextlib.contextmanager
def explain_losses(client: Client) -> Iterator[None]:
    """Replace Dask's errors for a lost scheduler or lost workers by errors with advice."""
    try:
        yield
    except KilledWorker as error:
        worker = error.last_worker
        limit = f" (memory_limit {format_bytes(worker.memory_limit)})" if worker.memory_limit else ""
        raise MemoryError(
            f"several workers were lost while they ran {error.task!r}; the last of them was "
            f"{worker.address}{limit}. They may have run out of memory: {_REMEDY}"
        ) from None
    except (CancelledError, OSError) as error:
        if isinstance(error, SchedulerLostError) or client.status == "running":
            raise
        raise SchedulerLostError(
            "the Dask scheduler was lost: fit again with the client of another scheduler"
        ) from error


# --- Results -----------------------------------------------------------------------------------------------


def wait_until_done(client: Client, futures: Sequence[Future], timeout: float) -> bool:
    """Wait for tasks, and return whether all end within the timeout, successfully or not."""
    try:
        with client.as_current():  # otherwise `wait` would use the current client, perhaps another one
            wait(futures, timeout=timeout)
    except DaskTimeout:
        return False
    return True


def fetch(client: Client, futures: Sequence[Future]) -> concurrent.futures.Future[list[Any]]:
    """Fetch results in the thread of the client's event loop.

    ``client.sync`` is not used, because it returns nothing if a result is cancelled.
    """

    async def gather() -> list[Any]:
        return list(await client.gather(list(futures), asynchronous=True))

    return asyncio.run_coroutine_threadsafe(gather(), client.loop.asyncio_loop)


def fetch_patiently(
    client: Client, futures: Sequence[Future], check_workers: Callable[[], None]
) -> list[Any]:
    """Fetch results, possibly large, with growing timeouts; check the workers after each timeout."""
    timeout = _FIRST_FETCH_SECONDS
    while True:
        fetched = fetch(client, futures)
        try:
            return fetched.result(timeout)
        except (DaskTimeout, TimeoutError):
            fetched.cancel()
            check_workers()
            timeout *= 2


def fetch_results(client: Client, futures: Sequence[Future]) -> list[Any]:
    """Return the results of tasks, moving tasks from unusable workers to usable ones while waiting."""
    monitor = WorkerMonitor(client)

    def move_to_usable() -> None:
        usable = monitor.find_usable()
        rebuild_at(client, {future.key: usable for future in futures}, usable)

    with explain_losses(client):
        while True:
            while not wait_until_done(client, futures, POLL_SECONDS):
                move_to_usable()
            try:
                return fetch_patiently(client, futures, move_to_usable)
            except CancelledError:
                if client.status != "running":
                    raise


def rebuild_at(client: Client, moves: Mapping[Any, Collection[str]], usable: Collection[str]) -> None:
    """Rebuild each result in `moves` on one of its listed workers, unless one of them has or computes it.

    Dependencies that no usable worker has are rebuilt too. Results with an empty list of workers stay as they
    are.
    """
    targets = {key: set(workers) for key, workers in moves.items() if workers}
    with explain_losses(client):
        client.run_on_scheduler(_rebuild_at, targets, set(usable))


def _rebuild_at(moves: dict[Any, set[str]], usable: set[str], dask_scheduler: Any = None) -> None:
    """Change the tasks for :func:`rebuild_at`, on the scheduler."""
    # Unless tasks wait for unusable workers, waiting and running tasks stay as they are.
    is_stuck = bool(dask_scheduler.unrunnable) or not usable.issuperset(dask_scheduler.workers)
    released: dict[Any, str] = {}
    for key, workers in moves.items():
        wanted = dask_scheduler.tasks.get(key)
        if wanted is None or _is_at(wanted, workers) or not (is_stuck or wanted.state == "memory"):
            continue
        for task in _find_missing(wanted, usable):
            if task.state == "waiting" and usable.intersection(task.worker_restrictions or ()):
                continue  # it will run on a usable worker
            task.worker_restrictions, task.loose_restrictions = workers, True
            if task.state in ("memory", "processing", "no-worker"):
                released[task.key] = "released"  # the task is still needed, so the scheduler runs it again
    dask_scheduler.transitions(released, f"unkernel-{uuid.uuid4().hex}")


def _find_missing(wanted: Any, usable: set[str]) -> list[Any]:
    """Return a task and those of its dependencies that no usable worker has or computes."""
    missing = {wanted.key: wanted}
    pending = [wanted]
    while pending:
        for task in pending.pop().dependencies or ():
            if task.key not in missing and task.run_spec is not None and not _is_at(task, usable):
                missing[task.key] = task
                pending.append(task)
    return list(missing.values())


def _is_at(task: Any, workers: set[str]) -> bool:
    """Return whether one of the workers has the result of a task or is computing it."""
    running = {task.processing_on} - {None}
    return any(worker.address in workers for worker in {*(task.who_has or ()), *running})
