"""Limits of connections: their number, and the time to send the head of a request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Protocol

_RESERVED_FILES = 200  # descriptors that models, logs and the event loop need


class Waiting(Protocol):
    """A connection that may wait for the head of a request."""

    def waits_for(self) -> object | None:
        """What tells this wait from all others of the connection; None while it waits for nothing."""

    def give_up(self) -> None:
        """Say that the request did not come, and close the connection."""


class Guard:
    """Limits of the connections of a worker.

    Parameters
    ----------
    seconds : float
        How long the head of a request may take; connections are closed at most a quarter of it later.
    connections : int
        How many connections there may be. Fewer, if the process may not open as many files.
    """

    def __init__(self, seconds: float, connections: int) -> None:
        self._seconds = seconds
        self.most = min(connections, max(_open_files() - _RESERVED_FILES, 1))
        self.connections: Iterable[Waiting] = ()
        self.is_ending = False  # whether connections end after one more request
        self._since: dict[Waiting, tuple[object, float]] = {}

    async def give_up(self) -> None:
        """Close the connections that wait too long, in an endless loop."""
        while True:
            await asyncio.sleep(self._seconds / 4)
            self.look(time.monotonic())

    def look(self, now: float) -> None:
        """Close the connections that have waited too long at this time."""
        before, self._since = self._since, {}
        for connection in list(self.connections):
            wait = connection.waits_for()
            if wait is None:
                continue
            known, began = before.get(connection, (None, now))
            since = began if known is wait else now
            if now - since >= self._seconds:
                connection.give_up()
            else:
                self._since[connection] = (wait, since)


def _open_files() -> int:
    """How many files the process may open, after raising that to what it may be raised to."""
    try:
        import resource
    except ImportError:  # Windows sets no such limit
        return 2**31
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard if hard != resource.RLIM_INFINITY else 2**31
