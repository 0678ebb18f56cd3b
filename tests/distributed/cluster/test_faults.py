"""Faults of workers before training do not change the result; errors without recovery are named."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from dask.distributed import Client, KilledWorker, LocalCluster

from reference.lost_workers import continue_workers, find_process
from reference.patience import wait_for
from unkernel.distributed import DaskCuttingPlaneSVC, DaskPolySVC, DaskRankSVM, DaskTreeSVC
from unkernel.distributed.cluster import gathered_blocks, regroup, workers
from unkernel.distributed.cluster.part_placement import PartPlacement
from unkernel.distributed.cluster.workers import (
    SchedulerLostError,
    Worker,
    WorkerMonitor,
    explain_losses,
)
from unkernel.distributed.poly.cascade import ClusterShards
from unkernel.distributed.tree import shards

TREES = ["(S (A a) (B b))", "(S (A a) (C c))", "(S (B b) (C c))", "(T (A a) (C c))"] * 5

LEARNERS = {
    "linear": DaskCuttingPlaneSVC,
    "polynomial": DaskPolySVC,
    "ranks": DaskRankSVM,
    "groups": DaskRankSVM,
    "trees": DaskTreeSVC,
}


def fit_learner(kind: str, client: Any, data: Any) -> Any:
    """Return a learner fitted to blocks that are made on the workers."""
    if kind == "trees":
        blocks = [dask.delayed((TREES, [0, 1, 1, 0] * 5)) for _ in range(5)]
        return DaskTreeSVC(random_state=0, client=client).fit(blocks)
    labels, other_columns = (data.ranks, ()) if kind != "groups" else (data.ranks, (data.groups,))
    rows = np.array_split(np.arange(600), 10)
    blocks = [
        dask.delayed((data.X[part], labels[part], *(column[part] for column in other_columns)))
        for part in rows
    ]
    return LEARNERS[kind](C=0.03, client=client).fit(blocks)


@pytest.fixture(scope="module")
def expected(client: Any, data: Any) -> dict[str, float]:
    return {kind: fit_learner(kind, client, data).objective_ for kind in LEARNERS}


def once_before(method: Callable[..., Any], do: Callable[[], None]) -> Callable[..., Any]:
    """Return `method` so that its first call runs `do` before."""
    todo = [do]

    def wrapped(*arguments: Any) -> Any:
        while todo:
            todo.pop()()
        return method(*arguments)

    return wrapped


PHASES: dict[str, list[tuple[Any, str]]] = {
    "read": [(gathered_blocks, "fetch_results"), (shards, "fetch_results")],
    "pack": [(PartPlacement, "locate")],
}


@pytest.mark.hostile
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("kind", LEARNERS)
def test_a_worker_that_is_killed_before_training(
    process_client: Any, data: Any, expected: dict[str, float], kind: str, phase: str
) -> None:
    def kill() -> None:
        os.kill(find_process(process_client, min(process_client.nthreads())), signal.SIGKILL)

    with pytest.MonkeyPatch.context() as patch:
        for place, name in PHASES[phase]:
            patch.setattr(place, name, once_before(getattr(place, name), kill))
        distributed = fit_learner(kind, process_client, data)
    assert distributed.objective_ == pytest.approx(expected[kind], rel=3e-3)


@pytest.mark.hostile
@pytest.mark.parametrize(
    "phase", [*PHASES["read"][:1], *PHASES["pack"], (regroup, "fetch_results"), (ClusterShards, "solve")]
)
def test_a_worker_that_is_stopped_before_and_while_one_worker_works_alone(
    process_client: Any, data: Any, expected: dict[str, float], phase: tuple[Any, str]
) -> None:
    def stop() -> None:
        os.kill(find_process(process_client, min(process_client.nthreads())), signal.SIGSTOP)

    place, name = phase
    kind = "groups" if place is regroup else "polynomial"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "_MAX_SILENCE_SECONDS", 3.0)
        patch.setattr(workers, "_FIRST_FETCH_SECONDS", 0.5)
        patch.setattr(place, name, once_before(getattr(place, name), stop))
        try:
            distributed = fit_learner(kind, process_client, data)
        finally:
            continue_workers(process_client)
    assert distributed.objective_ == pytest.approx(expected[kind], rel=3e-3)


def test_blocks_are_made_again_when_all_workers_are_lost_at_once(
    data: Any, expected: dict[str, float]
) -> None:
    """Dask would keep tasks that prefer a lost worker waiting for it, even when other workers join."""
    options = {"processes": False, "n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        LocalCluster(**options) as cluster,
        Client(cluster, set_as_default=False) as client,
        pytest.MonkeyPatch.context() as patch,
    ):

        def replace_all() -> None:
            cluster.scale(0)
            wait_for(lambda: not client.nthreads())
            cluster.scale(2)

        replacing = once_before(gathered_blocks.fetch_results, replace_all)
        patch.setattr(gathered_blocks, "fetch_results", replacing)
        distributed = fit_learner("linear", client, data)
    assert distributed.objective_ == pytest.approx(expected["linear"], rel=3e-3)


# --- Faults without recovery --------------------------------------------------------------------------------

SCHEDULER = """
    import sys
    import dask
    from distributed import LocalCluster

    if __name__ == "__main__":
        with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0",
                          protocol="tcp://") as cluster:
            print(cluster.scheduler_address, flush=True)
            sys.stdin.read()
"""


@pytest.fixture
def scheduler() -> Iterator[tuple[Client, int]]:
    """Yield a client of a scheduler in its own process, and that process."""
    command = [sys.executable, "-c", textwrap.dedent(SCHEDULER)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **pipes) as process:  # type: ignore[call-overload]
        address = process.stdout.readline().strip()
        with (
            dask.config.set({"distributed.comm.timeouts.connect": 1.0}),
            Client(address, timeout=1.0, set_as_default=False) as client,
        ):
            yield client, process.pid


@pytest.mark.hostile
@pytest.mark.parametrize("learner", [DaskCuttingPlaneSVC, DaskRankSVM])
def test_a_run_whose_scheduler_was_lost_resumes_from_its_checkpoint(
    scheduler: tuple[Client, int], client: Any, data: Any, learner: Any, tmp_path: Path
) -> None:
    doomed, process = scheduler
    folder = tmp_path / "kept"
    reports: list[Any] = []

    def kill(progress: Any) -> None:
        reports.append(progress)
        if (folder / "problem-0" / "state.uk").exists():
            os.kill(process, signal.SIGKILL)

    distributed = learner(C=0.03, tol=1e-6, checkpoint=folder, client=doomed)
    other_columns = {"qid": None} if learner is DaskRankSVM else {}
    with pytest.raises(SchedulerLostError, match=rf"scheduler was lost.*from the checkpoint {folder}"):
        distributed.fit_reporting(
            data.X, data.ranks > 1, sample_weight=None, **other_columns, on_progress=kill
        )
    refitted = distributed.set_params(client=client).fit(data.X, data.ranks > 1)
    assert refitted.gap_ <= 1e-6


def test_workers_whose_memory_is_full_are_named(data: Any) -> None:
    settings = {f"distributed.worker.memory.{name}": False for name in ("target", "spill", "terminate")}
    options = {"processes": False, "n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        dask.config.set(settings | {"distributed.worker.memory.pause": 1e-6}),
        LocalCluster(**options, memory_limit="8GiB") as cluster,
        Client(cluster, set_as_default=False) as client,
        pytest.MonkeyPatch.context() as patch,
    ):
        wait_for(lambda: all(worker.paused for worker in workers.list_workers(client).values()))
        patch.setattr(workers, "_MAX_SILENCE_SECONDS", 0.5)
        message = (
            r"do not fit into the memory of the workers: \S+ has paused .* of its memory_limit of 8.00 GiB"
        )
        with pytest.raises(MemoryError, match=message + ".*use more workers"):
            DaskCuttingPlaneSVC(client=client).fit(data.X, data.binary)


def test_tasks_that_no_worker_survives_are_named(client: Any) -> None:
    class Last:
        address, memory_limit = "tcp://a:1", 1 << 30

    message = r"several workers were lost while they ran 'Part-1'; .* tcp://a:1 \(memory_limit 1.00 GiB\)"
    with pytest.raises(MemoryError, match=message), explain_losses(client):
        raise KilledWorker("Part-1", Last, 3)


@pytest.fixture
def known_workers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Worker]:
    """Return a table of workers, which the test changes and the client reads as the scheduler's."""
    result: dict[str, Worker] = {}
    monkeypatch.setattr(workers, "list_workers", lambda _: dict(result))
    return result


def test_clusters_without_workers_warn_and_finally_fail(
    client: Any, known_workers: dict[str, Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = WorkerMonitor(client)
    monkeypatch.setattr(workers, "_WARNING_SECONDS", 0.0)
    with pytest.warns(UserWarning, match="no workers: waiting"):
        assert monitor.find_usable() == {}
    monkeypatch.setattr(workers, "_MAX_ABSENCE_SECONDS", 0.0)
    with pytest.raises(ConnectionError, match=r"no usable workers for 0 seconds; .* out of memory"):
        monitor.find_usable()
    known_workers["a"] = Worker(1, 0.0, False, 0, 0)
    assert set(monitor.find_usable()) == {"a"}


def test_silent_workers_are_not_relied_on_until_they_speak(
    client: Any, known_workers: dict[str, Worker]
) -> None:
    monitor = WorkerMonitor(client)
    known_workers.update(
        a=Worker(1, 0.0, False, 0, 0), b=Worker(1, workers._MAX_SILENCE_SECONDS, False, 0, 0)
    )
    assert set(monitor.find_usable()) == {"a", "b"}  # the scheduler itself may have been suspended
    assert set(monitor.find_usable()) == {"a"}
    known_workers["b"] = Worker(1, 0.0, False, 0, 0)
    assert set(monitor.find_usable()) == {"a", "b"}
    monitor.exclude({"a"})
    assert set(monitor.find_usable()) == {"b"}
