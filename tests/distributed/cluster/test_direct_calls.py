"""Direct calls of functions on workers that the client can or cannot reach."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from unkernel.distributed.cluster.direct_calls import DirectCalls


def find_worker(number: int, dask_worker: Any = None) -> tuple[int, str]:
    if number < 0:
        raise ValueError("a negative number")
    return number, dask_worker.address


def call_directly(client: Any, calls: DirectCalls, worker: str, number: int) -> Any:
    answer = asyncio.run_coroutine_threadsafe(
        calls.run(worker, find_worker, number), client.loop.asyncio_loop
    )
    return answer.result(timeout=60)


@pytest.mark.parametrize("reached", [True, False])
def test_calls(client: Any, reached: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    through_scheduler = []
    run = type(client).run

    def noted_run(self: Any, *arguments: Any, **options: Any) -> Any:
        through_scheduler.append(options["workers"])
        return run(self, *arguments, **options)

    async def unreachable(self: Any, worker: str) -> bool:
        return False

    monkeypatch.setattr(type(client), "run", noted_run)
    if not reached:
        monkeypatch.setattr(DirectCalls, "_can_reach", unreachable)
    calls = DirectCalls(client)
    for worker in client.nthreads():
        assert call_directly(client, calls, worker, 3) == (3, worker)
        with pytest.raises(ValueError, match="a negative number"):
            call_directly(client, calls, worker, -1)
    assert bool(through_scheduler) != reached


def test_a_worker_that_does_not_answer_is_not_reached(client: Any) -> None:
    reached = DirectCalls(client)._can_reach("tcp://127.0.0.1:1")
    assert not asyncio.run_coroutine_threadsafe(reached, client.loop.asyncio_loop).result(timeout=60)
