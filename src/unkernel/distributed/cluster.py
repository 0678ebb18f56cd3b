"""The client's side: parts on the workers of a cluster, and questions to all of them at once."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import Any

import dask
import numpy as np
from dask.distributed import Client, Future, wait
from dask.distributed import TimeoutError as DaskTimeout

from unkernel.distributed.sources import Sources
from unkernel.distributed.wire import Answer, PackedVector, added, packed
from unkernel.distributed.worker_tasks import Packing, Part, Survey, joined, survey

Arguments = Callable[[int], tuple[Any, ...]]  # what a part is asked with besides itself

_FAN = 4  # of the trees that spread weights and sum gradients
_SENT_BY_CLIENT = 1 << 23  # bytes up to which the client sends weights and sums gradients without a tree
_SENT_WITH_TASKS = 1 << 18  # bytes up to which weights go with each task; more go through a tree
# Seconds: of silence after which the client looks whether workers were lost; for fetching answers, at first;
# until the end of a worker is surely noticed.
_PATIENCE = 0.5
_FETCHING = 5.0
_GRACE = 2.0
_SOON = 10.0  # seconds in which a cluster that has no workers yet may get one


class Interrupted(Exception):  # noqa: N818 (it is no error)
    """The client's thread was asked to stop."""


@dataclass(eq=False)
class Cluster:
    """Parts, where they are, and what was sent.

    Tasks are tied to the worker that has their part: a part never moves. When a worker is lost, Dask makes
    its parts again elsewhere; the question under way is asked again.
    """

    client: Client
    parts: list[Future]
    rows: list[int]  # of each part
    columns: int = 0  # of the rows
    places: list[str] = field(default_factory=list)  # one worker address per part
    traffic: Counter[str] = field(default_factory=Counter)  # bytes by purpose
    recoveries: int = 0
    stopped: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._locate()

    # --- Questions ---------------------------------------------------------------------------------------

    def sums(self, task: Callable[..., Answer], arguments: Arguments, purpose: str) -> Answer:
        """Ask all parts, and add up what they say in their order.

        If that is much, it is done on the workers, but for the last few sums. The arguments may hold a
        :class:`Spread`.
        """
        if 8 * self.columns * len(self.parts) <= _SENT_BY_CLIENT:
            answer = added(*self.directly(task, arguments))
        else:
            answer = added(*self._until_answered(lambda: self._sums_of_few(task, arguments)))
        if answer.vector is not None:
            self.traffic[purpose] += answer.vector.nbytes * len(self.parts)
        return answer

    def each(
        self, task: Callable[..., Any], arguments: Arguments, parts: Sequence[int] | None = None
    ) -> list[Any]:
        """Ask all parts, or some, and get what each says."""
        return self._until_answered(lambda: self._answers(self._asked(task, arguments, parts)))

    def directly(
        self, task: Callable[..., Any], arguments: Arguments, parts: Sequence[int] | None = None
    ) -> list[Any]:
        """As `each`, but workers are asked past the scheduler's tasks, which takes a fifth of the time.

        For learners that ask short questions often. What is sent goes through the client.
        """
        return self._until_answered(lambda: self._told(task, arguments, parts))

    def spread(self, vector: Any, purpose: str) -> Spread:
        """A vector for all parts: sent when they are asked with it."""
        message = packed(vector)
        self.traffic[purpose] += message.nbytes * len(self.parts)
        return Spread(self, message)

    def _asked(
        self, task: Callable[..., Any], arguments: Arguments, parts: Sequence[int] | None = None
    ) -> list[Future]:
        asked = []
        for k in range(len(self.parts)) if parts is None else parts:
            told = [item.at(k) if isinstance(item, Spread) else item for item in arguments(k)]
            asked.append(self._submit(task, self.parts[k], *told, place=k))
        return asked

    def _submit(self, task: Callable[..., Any], *arguments: Any, place: int) -> Future:
        tied = {"workers": [self.places[place]], "allow_other_workers": False}
        return self.client.submit(task, *arguments, pure=False, **tied)

    def _sums_of_few(self, task: Callable[..., Answer], arguments: Arguments) -> list[Answer]:
        return self._answers(self._joined(added, self._asked(task, arguments)))

    def _joined(self, join: Callable[..., Any], answers: list[Future]) -> list[Future]:
        """The answers, joined on the workers until there are few."""
        while len(answers) > _FAN:
            groups = [answers[k : k + _FAN] for k in range(0, len(answers), _FAN)]
            answers = [self.client.submit(join, *group, pure=False) for group in groups]
        return answers

    def _told(self, task: Callable[..., Any], arguments: Arguments, parts: Sequence[int] | None) -> list[Any]:
        asked = range(len(self.parts)) if parts is None else parts
        questions = [(self.places[k], self.parts[k].key, _with_messages(arguments(k))) for k in asked]

        async def tell() -> list[Any]:
            calls = [
                self.client.run(_answered_there, task, key, told, workers=[place])
                for place, key, told in questions
            ]
            return [
                found[place]
                for found, (place, *_) in zip(await asyncio.gather(*calls), questions, strict=True)
            ]

        answers = asyncio.run_coroutine_threadsafe(tell(), self.client.loop.asyncio_loop)
        try:
            while not concurrent.futures.wait([answers], _PATIENCE).done:
                self._expect_all_there()
            return answers.result()
        finally:
            answers.cancel()

    def copies(self, first: Future, at: int = 0) -> list[Future]:
        """What is on the worker of a part, for all parts: each worker gets it from another, in a tree."""
        order = [at, *(k for k in range(len(self.parts)) if k != at)]
        copies = {at: first}
        for number, k in enumerate(order[1:]):
            copies[k] = self._submit(_copy, copies[order[number // _FAN]], place=k)
        return [copies[k] for k in range(len(self.parts))]

    # --- When workers are lost ---------------------------------------------------------------------------

    def _until_answered(self, ask: Callable[[], list[Any]]) -> list[Any]:
        while True:
            if self.stopped.is_set():
                raise Interrupted
            try:
                found = ask()
            except DaskTimeout:
                found = None
            except Interrupted:
                raise
            except Exception:
                if self._stay_there(_GRACE):  # it is the task that failed, not its worker
                    raise
                found = None
            if found is not None:
                return found
            self.recoveries += 1
            self._locate()

    def _answers(self, futures: list[Future]) -> list[Any]:
        """What they say; DaskTimeout when a worker is gone, and nobody will say it.

        A worker may also be lost between the end of its task and the transfer: so that has a time, too.
        """
        while not _finished(self.client, futures, _PATIENCE):
            self._expect_all_there()
        patience = _FETCHING
        while True:
            fetched = self._fetch(futures)
            try:
                return fetched.result(patience)
            except CancelledError as error:  # they were lost with their worker, which may be back already
                raise DaskTimeout from error
            except (DaskTimeout, TimeoutError):
                fetched.cancel()
                self._expect_all_there()
                patience *= 2  # it is much, or slow

    def _fetch(self, futures: list[Future]) -> concurrent.futures.Future[list[Any]]:
        """Fetch answers in the thread of the client's loop.

        ``client.sync`` would do, but it knows nothing of answers that are cancelled: it then fails because it
        has no result to return.
        """

        async def fetch() -> list[Any]:
            return list(await self.client.gather(futures, asynchronous=True))

        return asyncio.run_coroutine_threadsafe(fetch(), self.client.loop.asyncio_loop)

    def _expect_all_there(self) -> None:
        if self.stopped.is_set():
            raise Interrupted
        if not self._all_there():
            raise DaskTimeout

    def _stay_there(self, seconds: float) -> bool:
        """Whether no worker turns out to be gone in that time: its end is noticed a little later."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not self._all_there():
                return False
            time.sleep(0.1)
        return True

    def _all_there(self) -> bool:
        """Whether every part is where its tasks are; an address may come back without the part."""
        where = self.client.who_has(self.parts)
        alive = set(self.client.nthreads())
        return all(
            place in alive and place in where.get(part.key, ())
            for part, place in zip(self.parts, self.places, strict=True)
        )

    def _locate(self) -> None:
        """Wait until Dask has made all parts, again if need be, and note where."""
        while True:
            if self.stopped.is_set():
                raise Interrupted
            for part in self.parts:
                if part.status in ("error", "cancelled"):
                    part.result()  # raises what went wrong
            where = self.client.who_has(self.parts)
            alive = set(self.client.nthreads())
            places = [sorted(set(where.get(part.key, ())) & alive) for part in self.parts]
            if all(places):
                self.places = [place[0] for place in places]
                return
            time.sleep(0.1)


async def _answered_there(
    task: Callable[..., Any], key: str, told: tuple[Any, ...], dask_worker: Any = None
) -> Any:
    """Do a task with a part of this worker, on one of its threads."""
    threads = dask_worker.executors["default"]
    return await asyncio.get_running_loop().run_in_executor(threads, task, dask_worker.data[key], *told)


def _finished(client: Client, futures: list[Future], patience: float) -> bool:
    try:
        with client.as_current():  # it may not be the default one, or there may be none
            wait(futures, timeout=patience)
    except DaskTimeout:
        return False
    return True


class Spread:
    """A vector on its way to all parts: with the tasks if small, else from worker to worker in a tree."""

    def __init__(self, cluster: Cluster, message: PackedVector) -> None:
        self._cluster = cluster
        self.message = message
        self._copies: dict[tuple[str, ...], list[Future]] = {}

    def at(self, part: int) -> Any:
        """The vector, or what stands for it in tasks of the part's worker."""
        if self.message.nbytes <= _SENT_WITH_TASKS:
            return self.message
        places = tuple(self._cluster.places)
        if places not in self._copies:
            self._copies = {places: self._tree()}
        return self._copies[places][part]

    def _tree(self) -> list[Future]:
        cluster = self._cluster
        first = cluster.client.scatter(self.message, workers=[cluster.places[0]], hash=False, broadcast=False)
        return cluster.copies(first)


def _with_messages(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """What is spread, itself."""
    return tuple(item.message if isinstance(item, Spread) else item for item in arguments)


def _copy(message: Any) -> Any:
    return message


class MadeOfAll:
    """What the worker of one part makes of the answers of all parts. It is made again when it is lost.

    Parameters
    ----------
    give : task and arguments
        What all parts are asked.
    join : callable
        Makes one answer of several, along a tree.
    make : task and arguments
        What is made of the list of joined answers, on the worker of part `at`.
    """

    def __init__(
        self,
        cluster: Cluster,
        give: tuple[Callable[..., Any], Arguments],
        join: Callable[..., Any],
        make: tuple[Callable[..., Any], tuple[Any, ...]],
        at: int,
    ) -> None:
        self._cluster = cluster
        self._give, self._join, self._make, self._at = give, join, make, at
        self._found: dict[tuple[str, ...], Future] = {}

    def shown(self, view: Callable[..., Any]) -> Any:
        """A view of it."""
        cluster = self._cluster
        return cluster._until_answered(lambda: cluster._answers([self._view(view)]))[0]

    def shown_to_all(
        self, view: Callable[..., Any], task: Callable[..., Any], arguments: Arguments
    ) -> tuple[Any, list[Any]]:
        """A view of it, and what all parts say when they are asked with the whole."""
        cluster = self._cluster

        def ask() -> list[Any]:
            copies = cluster.copies(self._there(), self._at)
            asked = cluster._asked(task, lambda k: (copies[k], *arguments(k)))
            return cluster._answers([self._view(view), *asked])

        seen, *answers = cluster._until_answered(ask)
        return seen, answers

    def _view(self, view: Callable[..., Any]) -> Future:
        return self._cluster._submit(view, self._there(), place=self._at)

    def _there(self) -> Future:
        places = tuple(self._cluster.places)
        if places not in self._found:
            given = self._cluster._joined(self._join, self._cluster._asked(*self._give))
            task, arguments = self._make
            self._found = {places: self._cluster._submit(task, given, *arguments, place=self._at)}
        return self._found[places]


# --- From sources to parts -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Gathered:
    """Blocks on the workers, one list per part, and what was seen of them."""

    client: Client
    blocks: list[Future]
    surveys: list[Survey]

    @property
    def first_index(self) -> int:
        """What files count from: 0 if any of them uses it."""
        return min(seen.first_index for seen in self.surveys)

    @property
    def n_features(self) -> int:
        """Columns that all parts together have."""
        return max(max(seen.end_index for seen in self.surveys) - self.first_index, 0)

    def to_parts(self, intercept: float, threads: int | None) -> Cluster:
        """Pack the blocks, which are forgotten."""
        parts = []
        for number, blocks in enumerate(self.blocks):
            packing = Packing(number, self.first_index, self.n_features, intercept, threads)
            parts.append(self.client.submit(Part, blocks, packing, pure=False))
        return Cluster(self.client, parts, [seen.rows for seen in self.surveys], self.n_features)


def wait_for_a_worker(client: Client) -> None:
    """Wait until there is one; people are told if none comes soon, as they may have to start it."""
    if client.status in ("closing", "closed"):
        raise ValueError("the Dask client is closed: make another one, distributed.Client(...)")
    try:
        client.wait_for_workers(1, timeout=_SOON)
    except DaskTimeout:
        warnings.warn("the Dask cluster has no workers: waiting until there is one", stacklevel=2)
        client.wait_for_workers(1)


def gather_blocks(client: Client, sources: Sources, identify: bool) -> Gathered:
    """Have the workers read, check and survey their blocks."""
    blocks = placed_blocks(client, sources)
    surveys = client.gather([client.submit(survey, part, identify, pure=False) for part in blocks])
    kept = [(part, seen) for part, seen in zip(blocks, surveys, strict=True) if seen.rows > 0]
    if not kept:
        raise ValueError("there are no rows to train on")
    return Gathered(client, [part for part, _ in kept], [seen for _, seen in kept])


def placed_blocks(client: Client, sources: Sources) -> list[Future]:
    """For each part to be, a list of its blocks on the worker for it."""
    wait_for_a_worker(client)
    blocks = []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")  # what the client has is in it, once
        for worker, chosen in sources.by_worker(client):
            part = dask.delayed(joined)(chosen)
            blocks.append(client.compute(part, workers=[worker], allow_other_workers=True))
    return blocks


def merged_labels(surveys: Sequence[Survey]) -> tuple[Any, Any, Any]:
    """Each label once, the weight of the rows that have it, and how many of them have a weight."""
    labels, codes = np.unique(np.concatenate([seen.labels for seen in surveys]), return_inverse=True)
    totals, counts = (
        np.bincount(codes, weights=np.concatenate(arrays), minlength=len(labels))
        for arrays in ([seen.totals for seen in surveys], [seen.counts for seen in surveys])
    )
    return labels, totals, counts.astype(np.int64)
