"""Find the workers that hold the parts, replace lost workers, and balance the load."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from dask.distributed import Client, Future
from dask.distributed import TimeoutError as DaskTimeout

from unkernel.distributed.cluster.interruption import Interrupted
from unkernel.distributed.cluster.workers import WorkerMonitor, explain_losses, rebuild_at

_LOSS_NOTICE_SECONDS = 2.0  # time after which Dask has noticed the end of a worker
_BALANCE_INTERVAL_SECONDS = 5.0  # time between two checks for new workers
# A worker is late if it takes longer than this many seconds, and than this many times the median time.
_LATE_FACTOR = 5.0
_LATE_SECONDS = 20.0


class AnswerTimes:
    """The response times of the workers for one request, in seconds."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self._answers = answers
        self._start = time.monotonic()
        self._seconds: dict[str, float] = {}

    def find_late(self) -> set[str]:
        """Return the unfinished workers that take far longer than the median of the finished ones."""
        elapsed = time.monotonic() - self._start
        for worker, answer in self._answers.items():
            if answer.done():
                self._seconds.setdefault(worker, elapsed)
        if 2 * len(self._seconds) < len(self._answers) or not self._seconds:
            return set()
        limit = max(_LATE_SECONDS, _LATE_FACTOR * median(self._seconds.values()))
        return set(self._answers) - set(self._seconds) if elapsed > limit else set()


class PartPlacement:
    """Records the worker of each part, and decides which parts to rebuild on other workers.

    Parts are rebuilt on another worker if their own is lost, silent or far slower than the others. When
    workers join, some parts are rebuilt on them to balance the load.
    """

    def __init__(self, client: Client, parts: list[Future], stopped: threading.Event) -> None:
        self._client = client
        self._parts = parts
        self._stopped = stopped
        self._monitor = WorkerMonitor(client)
        self._balanced_workers: set[str] = set()
        self.addresses: list[str] = []  # one worker address per part
        self.locate()
        self._next_balance = time.monotonic() + _BALANCE_INTERVAL_SECONDS

    def raise_if_stopped(self) -> None:
        """Raise ``Interrupted`` if training must stop."""
        if self._stopped.is_set():
            raise Interrupted

    def locate(self) -> None:
        """Wait until all parts exist, rebuild missing parts, and record their workers."""
        while True:
            self.raise_if_stopped()
            usable = self._monitor.find_usable()
            with explain_losses(self._client):
                for part in self._parts:
                    if part.status in ("error", "cancelled"):
                        part.result()  # raises the error of the part
                holders = self._client.who_has(self._parts)
            usable_holders = [sorted(usable.keys() & holders.get(part.key, ())) for part in self._parts]
            if all(usable_holders):
                self.addresses = [addresses[0] for addresses in usable_holders]
                return
            rebuild_at(self._client, {part.key: usable for part in self._parts}, usable)
            time.sleep(0.1)

    def check_workers(self, times: AnswerTimes) -> None:
        """Raise DaskTimeout if a worker is lost or late, because the request must then be repeated."""
        self.raise_if_stopped()
        if not self._has_all_parts():
            raise DaskTimeout
        usable, late = set(self._monitor.find_usable()), times.find_late()
        if usable - late and not set(self.addresses) <= usable - late:
            self._monitor.exclude(late)
            raise DaskTimeout

    def all_workers_survive(self) -> bool:
        """Wait until Dask would have noticed a loss, then return whether all workers are still there."""
        deadline = time.monotonic() + _LOSS_NOTICE_SECONDS
        while time.monotonic() < deadline:
            if not self._has_all_parts():
                return False
            time.sleep(0.1)
        return True

    def _has_all_parts(self) -> bool:
        """Return whether every part is on its worker; restarted workers keep their address but lose parts."""
        with explain_losses(self._client):
            holders = self._client.who_has(self._parts)
            alive = set(self._client.nthreads())
        return all(
            address in alive and address in holders.get(part.key, ())
            for part, address in zip(self._parts, self.addresses, strict=True)
        )

    def balance(self, rows: Sequence[int]) -> None:
        """Move parts to balance their rows when training begins and when workers join or leave."""
        if time.monotonic() < self._next_balance:
            return
        self._next_balance = time.monotonic() + _BALANCE_INTERVAL_SECONDS
        usable = self._monitor.find_usable()
        if usable.keys() == self._balanced_workers or not usable.keys() >= set(self.addresses):
            return
        self._balanced_workers = set(usable)
        threads = {name: worker.threads for name, worker in usable.items()}
        moves = plan_moves(self.addresses, rows, threads)
        if moves:
            rebuild_at(self._client, {self._parts[k].key: [worker] for k, worker in moves.items()}, usable)
            self.locate()


def plan_moves(addresses: Sequence[str], sizes: Sequence[int], threads: Mapping[str, int]) -> dict[int, str]:
    """Return the parts to move and their new workers, to give all threads about the same load.

    A part moves only if the move substantially reduces the difference between two workers.
    """
    parts_of_worker: dict[str, list[int]] = {worker: [] for worker in threads}
    for k, address in enumerate(addresses):
        parts_of_worker[address].append(k)
    load = {
        worker: sum(sizes[k] for k in parts) / threads[worker] for worker, parts in parts_of_worker.items()
    }
    moves: dict[int, str] = {}
    while True:
        idlest, busiest = min(load, key=load.__getitem__), max(load, key=load.__getitem__)
        # Between workers with equally many threads, moving this many rows reverses a third of the difference.
        max_size = (load[busiest] - load[idlest]) * threads[idlest] / 1.5
        best = max(
            (k for k in parts_of_worker[busiest] if sizes[k] <= max_size), key=sizes.__getitem__, default=None
        )
        if best is None or best in moves:
            return moves
        moves[best] = idlest
        parts_of_worker[busiest].remove(best)
        parts_of_worker[idlest].append(best)
        load[busiest] -= sizes[best] / threads[busiest]
        load[idlest] += sizes[best] / threads[idlest]
