"""Workers of a cluster that are killed while they are needed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any


def kill_a_worker(client: Any, after: int) -> Callable[[Any], Callable[..., Any]]:
    """Makes of a method one that kills a worker when it is called for the `after`-th time."""
    calls = 0

    def wrap(method: Any) -> Callable[..., Any]:
        def wrapped(self: Any, *arguments: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == after:
                place = self._cluster.places[1]
                os.kill(client.run(os.getpid, workers=[place])[place], signal.SIGKILL)
            return method(self, *arguments)

        return wrapped

    return wrap
