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
    """Calls functions on workers directly, or through the scheduler if the client cannot reach a worker.

    Compared with calls through the scheduler, direct calls take two thirds of the time for short requests,
    and half of the time for large requests.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._reachable: dict[str, bool] = {}

    async def run(self, worker: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a module-level function; if it has a parameter ``dask_worker``, that receives the worker."""
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
        """Return whether the client can open a direct connection to a worker."""
        try:
            await asyncio.wait_for(self._client.rpc(worker).identity(), _CONNECT_TIMEOUT_SECONDS)
        except (OSError, TimeoutError):
            return False
        return True
