"""Limit the number of connections, and the time in which clients must send the head of a request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Protocol

_RESERVED_FILES = 200  # number of descriptors for models, logs and the event loop


class PendingConnection(Protocol):
    """A connection that may be waiting for the head of a request."""

    def pending_head(self) -> object | None:
        """Return an object that identifies the request whose head is incomplete, or None if there is none."""

    def refuse_late_head(self) -> None:
        """Send an error, and close the connection."""


class ConnectionLimits:
    """Limits of the connections of a worker.

    Parameters
    ----------
    seconds : float
        Time in which a client must send the head of a request. Late connections are closed after at most
        1.25 times this number.
    connections : int
        Largest number of connections. The limit is lower if the process may open fewer files.
    """

    def __init__(self, seconds: float, connections: int) -> None:
        self._seconds = seconds
        self.max_connections = min(connections, max(_raise_open_file_limit() - _RESERVED_FILES, 1))
        self.connections: Iterable[PendingConnection] = ()
        self.is_ending = (
            False  # True while the server is stopping: connections then close after one more request
        )
        # For each waiting connection: the request that it waits for, and when the wait was first seen.
        self._wait_starts: dict[PendingConnection, tuple[object, float]] = {}

    async def watch(self) -> None:
        """Close overdue connections at regular intervals, in an endless loop."""
        while True:
            await asyncio.sleep(self._seconds / 4)
            self.close_overdue(time.monotonic())

    def close_overdue(self, now: float) -> None:
        """Close the connections that have waited too long at the time `now`."""
        previous_waits, self._wait_starts = self._wait_starts, {}
        for connection in list(self.connections):
            wait = connection.pending_head()
            if wait is None:
                continue
            previous_wait, previous_start = previous_waits.get(connection, (None, now))
            start = previous_start if previous_wait is wait else now
            if now - start >= self._seconds:
                connection.refuse_late_head()
            else:
                self._wait_starts[connection] = (wait, start)


def _raise_open_file_limit() -> int:
    """Raise the limit of open files to its maximum, and return it."""
    try:
        import resource
    except ImportError:  # on Windows, which has no such limit
        return 2**31
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
    return hard_limit if hard_limit != resource.RLIM_INFINITY else 2**31
