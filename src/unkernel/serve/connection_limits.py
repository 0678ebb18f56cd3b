"""Limits of connections: their number, and the time to send the head of a request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Protocol

_RESERVED_FILES = 200  # descriptors for models, logs and the event loop


class PendingConnection(Protocol):
    """A connection that may wait for the head of a request."""

    def pending_head(self) -> object | None:
        """Return an object that identifies the current wait; None while the connection waits for nothing."""

    def refuse_late_head(self) -> None:
        """Answer that the request did not arrive, and close the connection."""


class ConnectionLimits:
    """Limits of the connections of a worker.

    Parameters
    ----------
    seconds : float
        Time to send the head of a request; late connections are closed after at most 1.25 times this.
    connections : int
        Largest number of connections; fewer if the process may open fewer files.
    """

    def __init__(self, seconds: float, connections: int) -> None:
        self._seconds = seconds
        self.max_connections = min(connections, max(_max_open_files() - _RESERVED_FILES, 1))
        self.connections: Iterable[PendingConnection] = ()
        self.is_ending = False  # whether connections close after one more request
        self._since: dict[PendingConnection, tuple[object, float]] = {}

    async def watch(self) -> None:
        """Close overdue connections regularly, in an endless loop."""
        while True:
            await asyncio.sleep(self._seconds / 4)
            self.close_overdue(time.monotonic())

    def close_overdue(self, now: float) -> None:
        """Close the connections that have waited too long by now."""
        former_waits, self._since = self._since, {}
        for connection in list(self.connections):
            wait = connection.pending_head()
            if wait is None:
                continue
            former_wait, began = former_waits.get(connection, (None, now))
            since = began if former_wait is wait else now
            if now - since >= self._seconds:
                connection.refuse_late_head()
            else:
                self._since[connection] = (wait, since)


def _max_open_files() -> int:
    """Raise the limit of open files to its maximum, and return it."""
    try:
        import resource
    except ImportError:  # Windows sets no such limit
        return 2**31
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard if hard != resource.RLIM_INFINITY else 2**31
