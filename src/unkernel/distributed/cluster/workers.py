"""The workers of a cluster as its scheduler sees them, and results that are made again by other workers.

Dask notices a worker that ends, and does its tasks elsewhere. It waits for minutes for one that is stopped or
cut off, and for ever for one that has paused because its memory is full. It also keeps tasks for ever that
prefer a worker, if all workers are lost at once. All three are mended here.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import time
import uuid
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any

from dask.distributed import Client, Future, KilledWorker, wait
from dask.distributed import TimeoutError as DaskTimeout
from dask.utils import format_bytes

# Seconds: of silence after which the client looks at the workers; for fetching results, at first.
PATIENCE = 0.5
FETCHING = 5.0
# Seconds: without a sign of life, or paused, after which a worker is not relied on; in which a cluster that
# has no workers may get one; after which that is an error.
SILENCE = 60.0
SOON = 10.0
ABSENCE = 300.0

_REMEDY = "use more workers, give them more memory (memory_limit), or have smaller blocks or files"


class SchedulerLostError(ConnectionError):
    """The client has no scheduler any more."""


@dataclass(frozen=True)
class Worker:
    """What the scheduler knows of a worker."""

    threads: int
    silence: float  # seconds since its last sign of life
    paused: bool  # because its memory is full
    memory: int
    memory_limit: int


# --- Which workers can be relied on ------------------------------------------------------------------------


class Watch:
    """Tells workers that can be relied on from others."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._shunned: set[str] = set()
        self._silent: set[str] = set()
        self._paused_since: dict[str, float] = {}
        self._last_seen_any = time.monotonic()
        self._warned = False

    def shun(self, workers: Collection[str]) -> None:
        """Do not rely on them any more."""
        self._shunned |= set(workers)

    def usable(self) -> dict[str, Worker]:
        """Those that can be relied on.

        Raises
        ------
        MemoryError
            If there are none because their memory is full.
        ConnectionError
            If there have been none for long, or the scheduler is lost.
        """
        workers = seen_by_scheduler(self._client)
        now = time.monotonic()
        paused = {name for name, worker in workers.items() if worker.paused}
        self._paused_since = {name: self._paused_since.get(name, now) for name in paused}
        full = {name for name, since in self._paused_since.items() if now - since >= SILENCE}
        self.shun(full)
        # Twice in a row: a scheduler that was asleep itself has not heard anybody at first.
        silent = {name for name, worker in workers.items() if worker.silence >= SILENCE}
        refused = self._shunned | (silent & self._silent)
        self._silent = silent
        found = {name: worker for name, worker in workers.items() if name not in refused}
        if found:
            self._last_seen_any = now
        elif full:
            raise MemoryError(_full(min(full), workers[min(full)]))
        elif now - self._last_seen_any >= SOON and not self._warned:
            self._warned = True
            warnings.warn("the Dask cluster has no workers: waiting until there is one", stacklevel=2)
        elif now - self._last_seen_any >= ABSENCE:
            raise ConnectionError(
                f"the Dask cluster has had no working workers for {ABSENCE:.0f} seconds; if they ended for "
                f"want of memory, {_REMEDY}"
            )
        return found


def _full(name: str, worker: Worker) -> str:
    return (
        f"the rows do not fit into the memory of the workers: {name} has paused with "
        f"{format_bytes(worker.memory)} of its memory_limit of {format_bytes(worker.memory_limit)} in use; "
        f"{_REMEDY}"
    )


def seen_by_scheduler(client: Client) -> dict[str, Worker]:
    """All workers, by their addresses."""
    with losses_named(client):
        found: dict[str, Worker] = client.run_on_scheduler(_workers)
        return found


def _workers(dask_scheduler: Any = None) -> dict[str, Worker]:
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
def losses_named(client: Client) -> Iterator[None]:
    """Errors of a scheduler that is lost, and of tasks that workers do not survive, in plain words."""
    try:
        yield
    except KilledWorker as error:
        worker = error.last_worker
        limit = f" (memory_limit {format_bytes(worker.memory_limit)})" if worker.memory_limit else ""
        raise MemoryError(
            f"several workers were lost while they made {error.task!r}, {worker.address}{limit} the last of "
            f"them, perhaps for want of memory; {_REMEDY}"
        ) from None
    except (CancelledError, OSError) as error:
        if isinstance(error, SchedulerLostError) or client.status == "running":
            raise
        raise SchedulerLostError(
            "the Dask scheduler was lost: fit again with a client of another one"
        ) from error


# --- Waiting -----------------------------------------------------------------------------------------------


def finished(client: Client, futures: Sequence[Future], patience: float) -> bool:
    """Whether they end in that time, well or not."""
    try:
        with client.as_current():  # it may not be the default one, or there may be none
            wait(futures, timeout=patience)
    except DaskTimeout:
        return False
    return True


def fetch(client: Client, futures: Sequence[Future]) -> concurrent.futures.Future[list[Any]]:
    """Fetch results in the thread of the client's loop.

    ``client.sync`` would do, but it knows nothing of results that are cancelled: it then fails because it has
    nothing to return.
    """

    async def gathered() -> list[Any]:
        return list(await client.gather(list(futures), asynchronous=True))

    return asyncio.run_coroutine_threadsafe(gathered(), client.loop.asyncio_loop)


def results(client: Client, futures: Sequence[Future]) -> list[Any]:
    """What tasks find. Those of workers that cannot be relied on are done by others."""
    watch = Watch(client)

    def mend() -> None:
        usable = watch.usable()
        make_at(client, {future.key: usable for future in futures}, usable)

    patience = FETCHING
    with losses_named(client):
        while True:
            while not finished(client, futures, PATIENCE):
                mend()
            fetched = fetch(client, futures)
            try:
                return fetched.result(patience)
            except (DaskTimeout, TimeoutError):  # it is much, or its worker does not answer
                fetched.cancel()
                mend()
                patience *= 2
            except CancelledError:
                if client.status != "running":
                    raise


# --- Results that are made again ---------------------------------------------------------------------------


def make_at(client: Client, moves: Mapping[Any, Collection[str]], usable: Collection[str]) -> None:
    """Have results made again that none of the workers named for them has or is about to make.

    What they are made of is made again as well where no usable worker has it. Nothing is done for a result
    for which no worker is named.
    """
    named = {key: set(workers) for key, workers in moves.items() if workers}
    with losses_named(client):
        client.run_on_scheduler(_make_at, named, set(usable))


def _make_at(moves: dict[Any, set[str]], usable: set[str], dask_scheduler: Any = None) -> None:
    stuck = bool(dask_scheduler.unrunnable) or not usable.issuperset(dask_scheduler.workers)
    again: dict[Any, str] = {}
    for key, workers in moves.items():
        wanted = dask_scheduler.tasks.get(key)
        if wanted is None or _is_at(wanted, workers) or not (stuck or wanted.state == "memory"):
            continue
        for task in _lacking(wanted, usable):
            if task.state == "waiting" and usable.intersection(task.worker_restrictions or ()):
                continue
            task.worker_restrictions, task.loose_restrictions = workers, True
            if task.state in ("memory", "processing", "no-worker"):
                again[task.key] = "released"  # and as it is wanted, the scheduler has it made
    dask_scheduler.transitions(again, f"unkernel-{uuid.uuid4().hex}")


def _lacking(wanted: Any, usable: set[str]) -> list[Any]:
    """A task, and all that must be made for it."""
    found = {wanted.key: wanted}
    unseen = [wanted]
    while unseen:
        for task in unseen.pop().dependencies or ():
            if task.key not in found and task.run_spec is not None and not _is_at(task, usable):
                found[task.key] = task
                unseen.append(task)
    return list(found.values())


def _is_at(task: Any, workers: set[str]) -> bool:
    """Whether one of the workers has it or makes it."""
    maker = {task.processing_on} - {None}
    return any(worker.address in workers for worker in {*(task.who_has or ()), *maker})
