"""Send requests to all parts on the workers of a cluster, and sum or list the responses on the client."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import Any

from dask.distributed import Client, Future
from dask.distributed import TimeoutError as DaskTimeout

from unkernel.distributed.cluster.direct_calls import DirectCalls
from unkernel.distributed.cluster.interruption import Interrupted
from unkernel.distributed.cluster.packed_vectors import Answer, Payload, Vector, add_answers, pack_vector
from unkernel.distributed.cluster.part_placement import AnswerTimes, PartPlacement
from unkernel.distributed.cluster.workers import (
    POLL_SECONDS,
    SchedulerLostError,
    fetch_patiently,
    wait_until_done,
)

Arguments = Callable[[int], tuple[Any, ...]]  # maps the number of a part to further arguments of the task
Merge = Callable[..., Any]  # merges several responses into one
WorkerFutures = dict[str, Future]  # futures by worker
Restore = Callable[[Sequence[int]], None]  # restores the lost state of the given parts

_TREE_FAN_OUT = 4  # fan-out of the trees of workers that broadcast weights and sum gradients
_MAX_BYTES_BY_CLIENT = 1 << 23  # the client sums vectors up to this size; larger ones use a tree of workers
_MAX_BYTES_WITH_TASKS = 1 << 18  # weights up to this size are sent with each task


@dataclass(eq=False)
class Cluster:
    """The parts of the rows on the workers, and the requests to them.

    A task runs on the worker that has its part; one request covers all parts of a worker. If a worker is
    lost, its parts are rebuilt on other workers, and the current request is repeated.
    """

    client: Client
    parts: list[Future]
    rows: list[int]  # number of rows of each part
    columns: int = 0  # number of columns of all rows
    traffic: Counter[str] = field(default_factory=Counter)  # bytes sent, by purpose
    recoveries: int = 0
    checkpoint: str | os.PathLike[str] | None = None  # folder of the checkpoint
    stopped: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._calls = DirectCalls(self.client)
        self._placement = PartPlacement(self.client, self.parts, self.stopped)

    @property
    def addresses(self) -> list[str]:
        """The worker of each part."""
        return self._placement.addresses

    @property
    def workers(self) -> list[str]:
        """The workers with parts, in the order of the parts."""
        return list(dict.fromkeys(self.addresses))

    def group_parts_by_worker(self, parts: Sequence[int] | None = None) -> dict[str, list[int]]:
        """Return the numbers of the parts of each worker: of all parts, or of the given `parts`."""
        groups: dict[str, list[int]] = {}
        for k in range(len(self.parts)) if parts is None else parts:
            groups.setdefault(self.addresses[k], []).append(k)
        return groups

    # --- Requests ----------------------------------------------------------------------------------------

    def ask(
        self, task: Callable[..., Any], arguments: Arguments, parts: Sequence[int] | None = None
    ) -> list[Any]:
        """Run a task with all parts, or with the given parts, and return the results.

        Arguments may contain a :class:`Broadcast`.
        """

        def ask() -> list[Any]:
            groups = self.group_parts_by_worker(parts)
            futures = self.submit_to_workers(task, arguments, groups)
            return list_by_part(groups, self.fetch_answers(list(futures.values()), futures), parts)

        return self.retry_until_answered(ask)

    def ask_directly(
        self,
        task: Callable[..., Any],
        arguments: Arguments,
        parts: Sequence[int] | None = None,
        restore: Restore | None = None,
    ) -> list[Any]:
        """Run a task like :meth:`ask`, but bypass the scheduler, which takes a fifth of the time.

        This method suits learners with frequent short requests. All messages pass through the client. A part
        that has lost its state returns None; then `restore` restores the state, and the request is repeated.
        """

        def ask() -> list[Any]:
            groups = self.group_parts_by_worker(parts)
            return list_by_part(groups, self._call_workers(task, arguments, groups), parts)

        while True:
            answers = self.retry_until_answered(ask)
            lost = [k for k, answer in enumerate(answers) if answer is None]
            if restore is None or not lost:
                return answers
            restore(lost)

    def sum_answers(
        self,
        task: Callable[..., Answer],
        arguments: Arguments,
        purpose: str,
        restore: Restore | None = None,
    ) -> Vector:
        """Run a task with all parts, and return the sum of the resulting vectors.

        Each worker sums the vectors of its parts. Large vectors are then summed along a tree of workers. If
        parts have lost their state, the state is restored and the request is repeated.
        """

        def ask() -> list[Answer]:
            groups = self.group_parts_by_worker()
            if 8 * self.columns * len(groups) <= _MAX_BYTES_BY_CLIENT:
                return self._call_workers(task, arguments, groups, add_answers)
            futures = self.submit_to_workers(task, arguments, groups, add_answers)
            reduced = self.reduce_on_workers(add_answers, futures)
            return self.fetch_answers(list(reduced.values()), futures)

        while True:
            answer = add_answers(*self.retry_until_answered(ask))
            if answer.vector is not None:
                self.traffic[purpose] += answer.vector.nbytes * len(self.workers)
                return answer.vector.unpack()
            assert restore is not None
            restore(answer.unprepared)

    def broadcast(self, vector: Vector, purpose: str) -> Broadcast:
        """Return a message with a vector, to pass as an argument of requests to all parts."""
        message = pack_vector(vector)
        self.traffic[purpose] += message.nbytes * len(self.workers)
        return Broadcast(self, message)

    # --- Tasks of workers --------------------------------------------------------------------------------

    def submit(self, task: Callable[..., Any], *arguments: Any, worker: str) -> Future:
        """Submit a task to one worker."""
        placement = {"workers": [worker], "allow_other_workers": False}
        return self.client.submit(task, *arguments, pure=False, **placement)

    def submit_to_workers(
        self,
        task: Callable[..., Any],
        arguments: Arguments,
        groups: dict[str, list[int]],
        merge: Merge | None = None,
    ) -> WorkerFutures:
        """Submit a task to each worker of `groups`, to run with all parts of the worker."""
        futures = {}
        for worker, numbers in groups.items():
            arguments_of_parts = [
                [
                    item.get_for_worker(worker) if isinstance(item, Broadcast) else item
                    for item in arguments(k)
                ]
                for k in numbers
            ]
            parts = [self.parts[k] for k in numbers]
            futures[worker] = self.submit(
                _run_with_parts, task, parts, arguments_of_parts, merge, worker=worker
            )
        return futures

    def _call_workers(
        self,
        task: Callable[..., Any],
        arguments: Arguments,
        groups: dict[str, list[int]],
        merge: Merge | None = None,
    ) -> list[Any]:
        """Run a task with all parts of each worker, without the scheduler; return one response per worker."""
        loop = self.client.loop.asyncio_loop

        async def call(worker: str, numbers: list[int]) -> Any:
            keys = [self.parts[k].key for k in numbers]
            arguments_of_parts = [
                [item.message if isinstance(item, Broadcast) else item for item in arguments(k)]
                for k in numbers
            ]
            return await self._calls.run(worker, _run_with_parts_at, task, keys, arguments_of_parts, merge)

        answers = {
            worker: asyncio.run_coroutine_threadsafe(call(worker, numbers), loop)
            for worker, numbers in groups.items()
        }
        times = AnswerTimes(answers)
        try:
            while concurrent.futures.wait(answers.values(), POLL_SECONDS, "FIRST_EXCEPTION").not_done:
                for answer in answers.values():
                    if answer.done():
                        answer.result()  # raises the error of the task
                self._placement.check_workers(times)
            return [answer.result() for answer in answers.values()]
        finally:
            for answer in answers.values():
                answer.cancel()

    def reduce_on_workers(self, merge: Merge, futures: WorkerFutures) -> WorkerFutures:
        """Merge the responses on the workers until at most ``_TREE_FAN_OUT`` are left."""
        while len(futures) > _TREE_FAN_OUT:
            workers = list(futures)
            groups = [workers[k : k + _TREE_FAN_OUT] for k in range(0, len(workers), _TREE_FAN_OUT)]
            futures = {
                group[0]: self.submit(merge, *(futures[worker] for worker in group), worker=group[0])
                for group in groups
            }
        return futures

    def copy_to_workers(self, result: Future, owner: str) -> WorkerFutures:
        """Copy a result from the worker `owner` to all other workers, along a tree."""
        order = [owner, *(worker for worker in self.workers if worker != owner)]
        copies = {owner: result}
        for number, worker in enumerate(order[1:]):
            copies[worker] = self.submit(
                return_unchanged, copies[order[number // _TREE_FAN_OUT]], worker=worker
            )
        return copies

    # --- Lost workers ------------------------------------------------------------------------------------

    def retry_until_answered(self, ask: Callable[[], list[Any]]) -> list[Any]:
        """Call `ask`; if workers are lost, rebuild their parts elsewhere and call it again."""
        try:
            self._placement.balance(self.rows)
            while True:
                self._placement.raise_if_stopped()
                try:
                    return ask()
                except DaskTimeout:  # a worker is lost or late
                    pass
                except Interrupted:
                    raise
                except Exception:
                    if self._placement.all_workers_survive():  # then the task itself has failed
                        raise
                self.recoveries += 1
                self._placement.locate()
        except SchedulerLostError as error:
            if self.checkpoint is None:
                raise
            folder = os.fspath(self.checkpoint)
            raise SchedulerLostError(f"{error}; it continues from the checkpoint {folder}") from error

    def fetch_answers(self, futures: list[Future], tasks: WorkerFutures) -> list[Any]:
        """Return the results of futures; raise DaskTimeout if a worker of `tasks` is lost.

        A worker may also be lost after its task has ended, during the transfer; transfers have a timeout too.
        """
        times = AnswerTimes(tasks)

        def check_workers() -> None:
            self._placement.check_workers(times)

        while not wait_until_done(self.client, futures, POLL_SECONDS):
            check_workers()
        try:
            return fetch_patiently(self.client, futures, check_workers)
        except CancelledError as error:  # a worker was lost together with the results, or was restarted
            raise DaskTimeout from error


class Broadcast:
    """A message to all parts. Small messages travel with the tasks, large ones along a tree of workers."""

    def __init__(self, cluster: Cluster, message: Payload) -> None:
        self._cluster = cluster
        self.message = message
        self._copies: dict[tuple[str, ...], WorkerFutures] = {}

    def get_for_worker(self, worker: str) -> Any:
        """Return the message, or the future of its copy on a worker, as an argument for tasks."""
        if self.message.nbytes <= _MAX_BYTES_WITH_TASKS:
            return self.message
        addresses = tuple(self._cluster.addresses)
        if addresses not in self._copies:
            self._copies = {addresses: self._send(root=addresses[0])}
        return self._copies[addresses][worker]

    def _send(self, root: str) -> WorkerFutures:
        first = self._cluster.client.scatter(self.message, workers=[root], hash=False, broadcast=False)
        return self._cluster.copy_to_workers(first, root)


def list_by_part(
    groups: dict[str, list[int]], answers: Sequence[Sequence[Any]], parts: Sequence[int] | None = None
) -> list[Any]:
    """Return the results in the order of the parts, given one list of results per worker."""
    answer_of_part = {
        k: answer
        for numbers, worker_answers in zip(groups.values(), answers, strict=True)
        for k, answer in zip(numbers, worker_answers, strict=True)
    }
    return [answer_of_part[k] for k in (range(len(answer_of_part)) if parts is None else parts)]


# --- Tasks -----------------------------------------------------------------------------------------------


def return_unchanged(result: Any) -> Any:
    """Return the argument."""
    return result


def _run_with_parts(
    task: Callable[..., Any],
    parts: Sequence[Any],
    arguments_of_parts: Sequence[Iterable[Any]],
    merge: Merge | None,
) -> Any:
    """Run a task with each part of a worker; return all responses, merged or as a list."""
    answers = [task(part, *arguments) for part, arguments in zip(parts, arguments_of_parts, strict=True)]
    return answers if merge is None else merge(*answers)


async def _run_with_parts_at(
    task: Callable[..., Any],
    keys: Sequence[Any],
    arguments_of_parts: Sequence[Iterable[Any]],
    merge: Merge | None,
    dask_worker: Any = None,
) -> Any:
    """Run a task with the parts of this worker that have the given keys, on a thread of the worker."""
    threads = dask_worker.executors["default"]
    parts = [dask_worker.data[key] for key in keys]
    return await asyncio.get_running_loop().run_in_executor(
        threads, _run_with_parts, task, parts, arguments_of_parts, merge
    )
