"""A pool of threads for slow requests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from typing import Any

_Work = tuple[Future[Any], Callable[[], Any]]


class AbandonableThreads(Executor):
    """A pool of daemon threads, which do not keep the process alive.

    At exit, Python would wait for the threads of a ``ThreadPoolExecutor``. But a server that stops must not
    wait for requests that have timed out (504).

    Parameters
    ----------
    count : int
        Number of threads.
    """

    def __init__(self, count: int) -> None:
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._count = count

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call a function in one of the threads; return the future of its result."""
        future: Future[Any] = Future()
        self._queue.put((future, lambda: fn(*args, **kwargs)))
        if len(self._threads) < self._count:
            self._threads.append(threading.Thread(target=self._run, daemon=True))
            self._threads[-1].start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the threads when the queue is empty, without waiting for running calls."""
        for _ in self._threads:
            self._queue.put(None)

    def _run(self) -> None:
        """Make calls in this thread until the queue yields None."""
        while (work := self._queue.get()) is not None:
            future, call = work
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = call()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)
            del work, future, call  # frees the result while the thread waits for more work
