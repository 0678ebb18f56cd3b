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
    function: Callable[[_Task], _Result], tasks: Iterable[_Task], threads: int
) -> Generator[_Result]:
    """Yield the results of all tasks in order, holding few tasks and results in memory at a time.

    None among the tasks is a barrier: all pending results are yielded before the next task starts.

    >>> list(map_in_order(lambda number: number * number, range(4), threads=2))
    [0, 1, 4, 9]
    """
    if threads == 1:
        yield from (function(task) for task in tasks if task is not None)
        return
    pool = ThreadPoolExecutor(threads, thread_name_prefix="unkernel-parser")
    pending: deque[Future[_Result]] = deque()
    try:
        for task in tasks:
            if task is not None:
                pending.append(pool.submit(function, task))
            max_pending = 0 if task is None else _TASKS_AHEAD_PER_THREAD * threads
            while len(pending) > max_pending:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
