"""The client's side: parts on the workers of a cluster, and questions to all of them at once."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Protocol

import dask
import numpy as np
from dask.distributed import Client, Future
from dask.distributed import TimeoutError as DaskTimeout

from unkernel.distributed.cluster.direct_calls import Calls
from unkernel.distributed.cluster.packed_vectors import Answer, added, packed
from unkernel.distributed.cluster.row_sources import Sources
from unkernel.distributed.cluster.row_tasks import Packing, Part, Survey, joined, survey
from unkernel.distributed.cluster.workers import (
    FETCHING,
    PATIENCE,
    SOON,
    SchedulerLostError,
    Watch,
    fetch,
    finished,
    losses_named,
    make_at,
    results,
    seen_by_scheduler,
)

Arguments = Callable[[int], tuple[Any, ...]]  # what a part is asked with besides itself
Join = Callable[..., Any]  # makes one answer of several
Asked = dict[str, Future]  # what each worker that is asked will say

_FAN = 4  # of the trees that spread weights and sum gradients
_SENT_BY_CLIENT = 1 << 23  # bytes up to which the client sends weights and sums gradients without a tree
_SENT_WITH_TASKS = 1 << 18  # bytes up to which weights go with each task; more go through a tree
# From so many rows and entries on, a part is large; others of the same worker become one. A part takes time
# of its own: two of a million rows each take 5 % more than one of two million.
_LARGE_PART_ROWS = 1 << 22
_LARGE_PART_ENTRIES_PER_COLUMN = 32
# Seconds: until the end of a worker is surely noticed; after which the client looks for new workers.
_GRACE = 2.0
_NEWCOMERS = 5.0
# A worker is late if it takes so many times as long as half of the others, and at least so many seconds.
_LATE_TIMES = 5.0
_LATE_SECONDS = 20.0


class Interrupted(Exception):  # noqa: N818 (it is no error)
    """The client's thread was asked to stop."""


@dataclass(eq=False)
class Cluster:
    """Parts, where they are, and what was sent.

    Tasks are tied to the worker that has their part, and a worker is asked about all its parts at once. When
    a worker is lost, falls silent or is far slower than the others, its parts are made again elsewhere, and
    the question under way is asked again. When workers have come, parts are made again there, so that all
    have as much to do.
    """

    client: Client
    parts: list[Future]
    rows: list[int]  # of each part
    columns: int = 0  # of the rows
    places: list[str] = field(default_factory=list)  # one worker address per part
    traffic: Counter[str] = field(default_factory=Counter)  # bytes by purpose
    recoveries: int = 0
    checkpoint: str | os.PathLike[str] | None = None  # of the run
    stopped: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._watch = Watch(self.client)
        self._calls = Calls(self.client)
        self._locate()
        self._levelled_for: set[str] = set()
        self._next_look = time.monotonic() + _NEWCOMERS

    @property
    def workers(self) -> list[str]:
        """The workers that have parts, in the order of the parts."""
        return list(dict.fromkeys(self.places))

    # --- Questions ---------------------------------------------------------------------------------------

    def sums(self, task: Callable[..., Answer], arguments: Arguments, purpose: str) -> Answer:
        """Ask all parts, and add up what they say, first that of each worker.

        If that is much, all is added on the workers, but for the last few sums. The arguments may hold a
        :class:`Spread`.
        """

        def ask() -> list[Answer]:
            if 8 * self.columns * len(self.workers) <= _SENT_BY_CLIENT:
                return self._told(task, arguments, self._by_worker(), added)
            asked = self._asked(task, arguments, self._by_worker(), added)
            return self._answers(list(self._joined(added, asked).values()), asked)

        answer = added(*self._until_answered(ask))
        if answer.vector is not None:
            self.traffic[purpose] += answer.vector.nbytes * len(self.workers)
        return answer

    def each(
        self, task: Callable[..., Any], arguments: Arguments, parts: Sequence[int] | None = None
    ) -> list[Any]:
        """Ask all parts, or some, and get what each says."""

        def ask() -> list[Any]:
            together = self._by_worker(parts)
            asked = self._asked(task, arguments, together)
            return _of_parts(together, self._answers(list(asked.values()), asked), parts)

        return self._until_answered(ask)

    def directly(
        self, task: Callable[..., Any], arguments: Arguments, parts: Sequence[int] | None = None
    ) -> list[Any]:
        """As `each`, but workers are asked past the scheduler's tasks, which takes a fifth of the time.

        For learners that ask short questions often. What is sent goes through the client.
        """

        def ask() -> list[Any]:
            together = self._by_worker(parts)
            return _of_parts(together, self._told(task, arguments, together), parts)

        return self._until_answered(ask)

    def spread(self, vector: Any, purpose: str) -> Spread:
        """A vector for all parts: sent when they are asked with it."""
        message = packed(vector)
        self.traffic[purpose] += message.nbytes * len(self.workers)
        return Spread(self, message)

    def _by_worker(self, parts: Sequence[int] | None = None) -> dict[str, list[int]]:
        """The parts of each worker; all parts, or those of some."""
        together: dict[str, list[int]] = {}
        for k in range(len(self.parts)) if parts is None else parts:
            together.setdefault(self.places[k], []).append(k)
        return together

    def _asked(
        self,
        task: Callable[..., Any],
        arguments: Arguments,
        together: dict[str, list[int]],
        join: Join | None = None,
    ) -> Asked:
        asked = {}
        for worker, parts in together.items():
            told = [
                [item.at(worker) if isinstance(item, Spread) else item for item in arguments(k)]
                for k in parts
            ]
            held = [self.parts[k] for k in parts]
            asked[worker] = self._submit(_answered, task, held, told, join, worker=worker)
        return asked

    def _submit(self, task: Callable[..., Any], *arguments: Any, worker: str) -> Future:
        tied = {"workers": [worker], "allow_other_workers": False}
        return self.client.submit(task, *arguments, pure=False, **tied)

    def _joined(self, join: Join, asked: Asked) -> Asked:
        """The answers, joined on the workers until there are few."""
        while len(asked) > _FAN:
            workers = list(asked)
            groups = [workers[k : k + _FAN] for k in range(0, len(workers), _FAN)]
            asked = {
                group[0]: self._submit(join, *(asked[worker] for worker in group), worker=group[0])
                for group in groups
            }
        return asked

    def _told(
        self,
        task: Callable[..., Any],
        arguments: Arguments,
        together: dict[str, list[int]],
        join: Join | None = None,
    ) -> list[Any]:
        loop = self.client.loop.asyncio_loop

        async def tell(worker: str, parts: list[int]) -> Any:
            keys = [self.parts[k].key for k in parts]
            told = [_with_messages(arguments(k)) for k in parts]
            return await self._calls.run(worker, _answered_there, task, keys, told, join)

        asked = {
            worker: asyncio.run_coroutine_threadsafe(tell(worker, parts), loop)
            for worker, parts in together.items()
        }
        times = _Times(asked)
        try:
            while concurrent.futures.wait(asked.values(), PATIENCE, "FIRST_EXCEPTION").not_done:
                for answer in asked.values():
                    if answer.done():
                        answer.result()  # raises what went wrong
                self._expect_answers(times)
            return [answer.result() for answer in asked.values()]
        finally:
            for answer in asked.values():
                answer.cancel()

    def copies(self, first: Future, at: str) -> Asked:
        """What is on a worker, for all workers: each gets it from another, in a tree."""
        order = [at, *(worker for worker in self.workers if worker != at)]
        copies = {at: first}
        for number, worker in enumerate(order[1:]):
            copies[worker] = self._submit(_copy, copies[order[number // _FAN]], worker=worker)
        return copies

    # --- When workers are lost ---------------------------------------------------------------------------

    def _until_answered(self, ask: Callable[[], list[Any]]) -> list[Any]:
        try:
            self._level()
            return self._asked_again(ask)
        except SchedulerLostError as error:
            if self.checkpoint is None:
                raise
            folder = os.fspath(self.checkpoint)
            raise SchedulerLostError(f"{error}; it goes on from the checkpoint {folder}") from error

    def _asked_again(self, ask: Callable[[], list[Any]]) -> list[Any]:
        while True:
            if self.stopped.is_set():
                raise Interrupted
            try:
                return ask()
            except DaskTimeout:
                pass
            except Interrupted:
                raise
            except Exception:
                if self._stay_there(_GRACE):  # it is the task that failed, not its worker
                    raise
            self.recoveries += 1
            self._locate()

    def _answers(self, futures: list[Future], asked: Asked) -> list[Any]:
        """What they say; DaskTimeout when a worker is gone, and nobody will say it.

        A worker may also be lost between the end of its task and the transfer: so that has a time, too.
        """
        times = _Times(asked)
        while not finished(self.client, futures, PATIENCE):
            self._expect_answers(times)
        patience = FETCHING
        while True:
            fetched = fetch(self.client, futures)
            try:
                return fetched.result(patience)
            except CancelledError as error:  # they were lost with their worker, which may be back already
                raise DaskTimeout from error
            except (DaskTimeout, TimeoutError):
                fetched.cancel()
                self._expect_answers(times)
                patience *= 2  # it is much, or slow

    def _expect_answers(self, times: _Times) -> None:
        """Raise what keeps workers from answering; DaskTimeout if others should be asked."""
        if self.stopped.is_set():
            raise Interrupted
        if not self._all_there():
            raise DaskTimeout
        usable, late = set(self._watch.usable()), times.late()
        if usable - late and not set(self.places) <= usable - late:
            self._watch.shun(late)
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
        with losses_named(self.client):
            where = self.client.who_has(self.parts)
            alive = set(self.client.nthreads())
        return all(
            place in alive and place in where.get(part.key, ())
            for part, place in zip(self.parts, self.places, strict=True)
        )

    def _locate(self) -> None:
        """Wait until all parts are made, again if need be, and note where."""
        while True:
            if self.stopped.is_set():
                raise Interrupted
            usable = self._watch.usable()
            with losses_named(self.client):
                for part in self.parts:
                    if part.status in ("error", "cancelled"):
                        part.result()  # raises what went wrong
                where = self.client.who_has(self.parts)
            places = [sorted(usable.keys() & where.get(part.key, ())) for part in self.parts]
            if all(places):
                self.places = [place[0] for place in places]
                return
            make_at(self.client, {part.key: usable for part in self.parts}, usable)
            time.sleep(0.1)

    def _level(self) -> None:
        """At first, and if workers have come or gone, give all of them as much to do."""
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + _NEWCOMERS
        usable = self._watch.usable()
        if usable.keys() == self._levelled_for or not usable.keys() >= set(self.places):
            return
        self._levelled_for = set(usable)
        threads = {name: worker.threads for name, worker in usable.items()}
        moves = levelled(self.places, self.rows, threads)
        if moves:
            make_at(self.client, {self.parts[k].key: [worker] for k, worker in moves.items()}, usable)
            self._locate()


def levelled(places: Sequence[str], sizes: Sequence[int], threads: Mapping[str, int]) -> dict[int, str]:
    """Which parts should move where, so that no worker has much more to do for each of its threads.

    As few as possible: a part moves only if the difference between two workers becomes far smaller by it.
    """
    held: dict[str, list[int]] = {worker: [] for worker in threads}
    for k, place in enumerate(places):
        held[place].append(k)
    work = {worker: sum(sizes[k] for k in parts) / threads[worker] for worker, parts in held.items()}
    moves: dict[int, str] = {}
    while True:
        idlest, busiest = min(work, key=work.__getitem__), max(work, key=work.__getitem__)
        spare = (work[busiest] - work[idlest]) * threads[idlest] / 1.5
        best = max((k for k in held[busiest] if sizes[k] <= spare), key=sizes.__getitem__, default=None)
        if best is None or best in moves:
            return moves
        moves[best] = idlest
        held[busiest].remove(best)
        held[idlest].append(best)
        work[busiest] -= sizes[best] / threads[busiest]
        work[idlest] += sizes[best] / threads[idlest]


class _Times:
    """How long workers take to answer."""

    def __init__(self, asked: Mapping[str, Any]) -> None:
        self._asked = asked
        self._began = time.monotonic()
        self._took: dict[str, float] = {}

    def late(self) -> set[str]:
        """Those that take far longer than half of the others did."""
        now = time.monotonic() - self._began
        for worker, answer in self._asked.items():
            if answer.done():
                self._took.setdefault(worker, now)
        if 2 * len(self._took) < len(self._asked) or not self._took:
            return set()
        limit = max(_LATE_SECONDS, _LATE_TIMES * median(self._took.values()))
        return set(self._asked) - set(self._took) if now > limit else set()


def _answered(
    task: Callable[..., Any], parts: Sequence[Any], told: Sequence[Iterable[Any]], join: Join | None
) -> Any:
    """Do a task with each part of a worker; what all of them say, joined or as a list."""
    answers = [task(part, *arguments) for part, arguments in zip(parts, told, strict=True)]
    return answers if join is None else join(*answers)


async def _answered_there(
    task: Callable[..., Any],
    keys: Sequence[Any],
    told: Sequence[Iterable[Any]],
    join: Join | None,
    dask_worker: Any = None,
) -> Any:
    """The same with parts of this worker, on one of its threads."""
    threads = dask_worker.executors["default"]
    parts = [dask_worker.data[key] for key in keys]
    return await asyncio.get_running_loop().run_in_executor(threads, _answered, task, parts, told, join)


def _of_parts(
    together: dict[str, list[int]], answers: Sequence[Sequence[Any]], parts: Sequence[int] | None = None
) -> list[Any]:
    """What all parts say, or some, of what the workers say that have them."""
    found = {
        k: answer
        for held, some in zip(together.values(), answers, strict=True)
        for k, answer in zip(held, some, strict=True)
    }
    return [found[k] for k in (range(len(found)) if parts is None else parts)]


class Message(Protocol):
    """What can be sent, and how much it is."""

    @property
    def nbytes(self) -> int: ...


class Spread:
    """A message on its way to all parts: with the tasks if small, else from worker to worker in a tree."""

    def __init__(self, cluster: Cluster, message: Message) -> None:
        self._cluster = cluster
        self.message = message
        self._copies: dict[tuple[str, ...], Asked] = {}

    def at(self, worker: str) -> Any:
        """The message, or what stands for it in tasks of a worker."""
        if self.message.nbytes <= _SENT_WITH_TASKS:
            return self.message
        places = tuple(self._cluster.places)
        if places not in self._copies:
            self._copies = {places: self._tree()}
        return self._copies[places][worker]

    def _tree(self) -> Asked:
        cluster = self._cluster
        root = cluster.places[0]
        first = cluster.client.scatter(self.message, workers=[root], hash=False, broadcast=False)
        return cluster.copies(first, root)


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

        def ask() -> list[Any]:
            seen = self._view(view)
            return cluster._answers(list(seen.values()), seen)

        return cluster._until_answered(ask)[0]

    def shown_to_all(
        self, view: Callable[..., Any], task: Callable[..., Any], arguments: Arguments
    ) -> tuple[Any, list[Any]]:
        """A view of it, and what all parts say when they are asked with the whole."""
        cluster = self._cluster

        def ask() -> list[Any]:
            copies = cluster.copies(self._there(), self._worker)
            together = cluster._by_worker()
            asked = cluster._asked(task, lambda k: (copies[cluster.places[k]], *arguments(k)), together)
            seen, *answers = cluster._answers([*self._view(view).values(), *asked.values()], asked)
            return [seen, *_of_parts(together, answers)]

        seen, *answers = cluster._until_answered(ask)
        return seen, answers

    @property
    def _worker(self) -> str:
        return self._cluster.places[self._at]

    def _view(self, view: Callable[..., Any]) -> Asked:
        return {self._worker: self._cluster._submit(view, self._there(), worker=self._worker)}

    def _there(self) -> Future:
        cluster = self._cluster
        places = tuple(cluster.places)
        if places not in self._found:
            asked = cluster._asked(*self._give, cluster._by_worker(), self._join)
            given = list(cluster._joined(self._join, asked).values())
            task, arguments = self._make
            self._found = {places: cluster._submit(task, given, *arguments, worker=self._worker)}
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
    soon = time.monotonic() + SOON
    told = False
    while not seen_by_scheduler(client):  # one that has paused is there, too: it is named later
        if time.monotonic() >= soon and not told:
            warnings.warn("the Dask cluster has no workers: waiting until there is one", stacklevel=2)
            told = True
        time.sleep(0.05)


def gather_blocks(client: Client, sources: Sources, identify: bool, parts_each: int = 1) -> Gathered:
    """Have the workers read, check and survey their blocks, for at most so many parts each."""
    placed = placed_blocks(client, sources, parts_each)
    surveys = results(client, [client.submit(survey, blocks, identify, pure=False) for _, blocks in placed])
    kept = [(*part, seen) for part, seen in zip(placed, surveys, strict=True) if seen.rows > 0]
    if not kept:
        raise ValueError("there are no rows to train on")
    return _of_large_parts(client, kept)


def _of_large_parts(client: Client, small: list[tuple[str, Future, Survey]]) -> Gathered:
    """Parts in a row of the same worker become one until they are large."""
    enough = _LARGE_PART_ENTRIES_PER_COLUMN * max(seen.end_index for _, _, seen in small)
    groups: list[list[tuple[str, Future, Survey]]] = []
    for part in small:
        if groups and _alike(groups[-1][-1], part) and not _is_large(groups[-1], enough):
            groups[-1].append(part)
        else:
            groups.append([part])
    blocks = [
        group[0][1] if len(group) == 1 else client.submit(joined, [own for _, own, _ in group], pure=False)
        for group in groups
    ]
    return Gathered(client, blocks, [_merged_surveys([seen for _, _, seen in group]) for group in groups])


def _is_large(group: list[tuple[str, Future, Survey]], entries: int) -> bool:
    surveys = [seen for _, _, seen in group]
    return (
        sum(seen.rows for seen in surveys) >= _LARGE_PART_ROWS
        and sum(seen.entries for seen in surveys) >= entries
    )


def _alike(one: tuple[str, Future, Survey], other: tuple[str, Future, Survey]) -> bool:
    """Whether two parts are of the same worker, and both have groups or weights, or neither has."""
    (worker, _, seen), (worker_too, _, seen_too) = one, other
    return (worker, seen.has_qid, seen.has_weights) == (worker_too, seen_too.has_qid, seen_too.has_weights)


def placed_blocks(client: Client, sources: Sources, parts_each: int = 1) -> list[tuple[str, Future]]:
    """For each part to be, the worker for it, and a list of its blocks there."""
    wait_for_a_worker(client)
    blocks = []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")  # what the client has is in it, once
        for worker, chosen in sources.by_worker(client, parts_each):
            part = dask.delayed(joined)(chosen)
            blocks.append((worker, client.compute(part, workers=[worker], allow_other_workers=True)))
    return blocks


def merged_labels(surveys: Sequence[Survey]) -> tuple[Any, Any, Any]:
    """Each label once, the weight of the rows that have it, and how many of them have a weight."""
    labels, codes = np.unique(np.concatenate([seen.labels for seen in surveys]), return_inverse=True)
    totals, counts = (
        np.bincount(codes, weights=np.concatenate(arrays), minlength=len(labels))
        for arrays in ([seen.totals for seen in surveys], [seen.counts for seen in surveys])
    )
    return labels, totals, counts.astype(np.int64)


def _merged_surveys(surveys: Sequence[Survey]) -> Survey:
    """What is known of several parts that become one."""
    if len(surveys) == 1:
        return surveys[0]
    labels, totals, counts = merged_labels(surveys)
    return Survey(
        rows=sum(seen.rows for seen in surveys),
        entries=sum(seen.entries for seen in surveys),
        end_index=max(seen.end_index for seen in surveys),
        first_index=min(seen.first_index for seen in surveys),
        labels=labels,
        totals=totals,
        counts=counts,
        has_qid=surveys[0].has_qid,
        has_weights=surveys[0].has_weights,
        fingerprint=sum(seen.fingerprint for seen in surveys) % 2**64,
    )
