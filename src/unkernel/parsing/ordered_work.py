"""Run tasks in several threads, and return their results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")
_TASKS_AHEAD_PER_THREAD = 2


def map_in_order(
    work: Callable[[_Task], _Result], tasks: Iterable[_Task], threads: int
) -> Generator[_Result]:
    """Yield the results of all tasks in order, with few tasks and results in memory at a time.

    A task that is None does no work: it makes all pending results be yielded before the next task is taken.

    >>> list(map_in_order(lambda number: number * number, range(4), threads=2))
    [0, 1, 4, 9]
    """
    if threads == 1:
        yield from (work(task) for task in tasks if task is not None)
        return
    pool = ThreadPoolExecutor(threads, thread_name_prefix="unkernel-parser")
    pending: deque[Future[_Result]] = deque()
    try:
        for task in tasks:
            if task is not None:
                pending.append(pool.submit(work, task))
            while len(pending) > (_TASKS_AHEAD_PER_THREAD * threads if task is not None else 0):
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
