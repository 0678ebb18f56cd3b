"""Training on a cluster: the gain of a second worker, the overhead of a pass, and the bytes it sends.

The peer of two workers is one worker in the same run, on the same rows and for the same number of passes.
Each worker is a process with one thread. The rows are generated: their columns follow Zipf's law, and a
hidden weight vector determines the labels. The time of a pass on more machines is extrapolated: the work is
divided by the number of machines, and messages follow trees.

    python benchmarks/distributed_passes.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

import contextlib
import math
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
from dask.distributed import Client, LocalCluster, wait
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from harness import Report, main
from unkernel.distributed import DaskCuttingPlaneSVC
from unkernel.distributed.cutplane.risks import GroupRisk

BLOCKS = 8
FAN = 4
# Assumptions for a cluster: 10 Gbit/s per machine, the time of a task from end to end, and its time in the
# scheduler.
BANDWIDTH = 1.25e9  # bytes per second
LATENCY_SECONDS = 0.01
SCHEDULING_SECONDS = 3e-4
ENTRIES, FEATURES = 70, 50_000
# Learner, rows and ranks.
TASKS: dict[str, tuple[Any, int, int]] = {
    "SVC, 2,000 rows": (DaskCuttingPlaneSVC, 2_000, 2),
    "SVC, 400,000 rows": (DaskCuttingPlaneSVC, 400_000, 2),
    "SVC, 4,000,000 rows": (DaskCuttingPlaneSVC, 4_000_000, 2),
}


def zipf_block(rows: int, entries: int, features: int, seed: int, ranks: int) -> tuple[Any, np.ndarray]:
    """Return a block of rows, with labels by a hidden weight vector that all blocks share."""
    generator = np.random.default_rng(seed)
    columns = np.minimum(np.exp(generator.random((rows, entries)) * math.log(features)), features - 1)
    X = sparse.csr_matrix(
        (
            np.full(rows * entries, 1 / math.sqrt(entries), np.float64),
            columns.astype(np.int32).ravel(),
            np.arange(0, rows * entries + 1, entries, dtype=np.int32),
        ),
        shape=(rows, features),
    )
    X.sum_duplicates()
    hidden = np.random.default_rng(0).normal(size=features)
    scores = X @ hidden + 0.3 * generator.normal(size=rows)
    return X, np.digitize(scores, np.linspace(-1, 1, ranks + 1)[1:-1])


@dataclass(frozen=True)
class Figures:
    """Measurements of a run of a few passes."""

    pass_seconds: float
    worker_seconds: float  # of processor time per pass, of the busiest worker
    traffic: dict[str, float]  # bytes per pass and worker


def measure_passes(learner: Any, blocks: list[Any], passes: int) -> Figures:
    """Return the shortest time from one pass to the next, in a run of some passes."""
    clock = Clock(learner.client)
    learner.set_params(max_iter=passes + 1, tol=1e-9)
    with warnings.catch_warnings(), note_passes(GroupRisk, clock):
        warnings.simplefilter("ignore", ConvergenceWarning)
        learner.fit(blocks)
    rounds, workers = learner.n_iter_ + 1, len(learner.client.nthreads())
    traffic = {name: sent / rounds / workers for name, sent in learner.traffic_.items()}
    return Figures(min(clock.seconds[-passes:]), float(np.median(clock.worker_seconds[-passes:])), traffic)


class Clock:
    """The times from one pass to the next, and the processor times of the busiest worker."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._began: float | None = None
        self._used: dict[str, float] = {}
        self.seconds: list[float] = []
        self.worker_seconds: list[float] = []

    def next_pass(self) -> None:
        now = time.perf_counter()
        used = self._client.run(time.process_time)
        if self._began is not None:
            self.seconds.append(now - self._began)
            self.worker_seconds.append(max(used[worker] - self._used[worker] for worker in used))
        self._used = used
        self._began = time.perf_counter()


@contextlib.contextmanager
def note_passes(risk: Any, clock: Clock) -> Iterator[None]:
    """Note the beginning of each pass."""
    aim = risk.aim

    def noting(self: Any, weights: np.ndarray) -> None:
        clock.next_pass()
        aim(self, weights)

    risk.aim = noting
    try:
        yield
    finally:
        risk.aim = aim


def run_on_workers(workers: int, learner: Any, shape: tuple[int, int, int, int], passes: int) -> Figures:
    rows, entries, features, ranks = shape
    options = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    options["memory_limit"] = 0  # no limit, so nothing is written to disk
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        delayed_blocks = [
            dask.delayed(zipf_block)(rows // BLOCKS, entries, features, seed, ranks) for seed in range(BLOCKS)
        ]
        blocks = client.compute(delayed_blocks)
        wait(blocks)
        figures = measure_passes(learner.set_params(client=client), blocks, passes)
    return figures


def extrapolate_pass(figures: Figures, machines: int, work_seconds: float) -> float:
    """Return the seconds of a pass: two requests, sent down a tree of machines and answered up a tree."""
    levels = max(1, math.ceil(math.log(machines, FAN)))
    sent = sum(figures.traffic.values())
    tasks = 2 * machines * (1 + 1 / (FAN - 1)) + machines
    return (
        work_seconds / machines
        + levels * FAN * sent / BANDWIDTH
        + 2 * (levels + 1) * LATENCY_SECONDS
        + tasks * SCHEDULING_SECONDS
    )


def measure(report: Report, tasks: Sequence[str]) -> None:
    for task in tasks:
        make, rows, ranks = TASKS[task]
        is_small = rows < 10_000
        shape = (rows, 10, 200, ranks) if is_small else (rows, ENTRIES, FEATURES, ranks)
        result = {
            count: run_on_workers(count, make(), shape, 40 if is_small else 4 if report.quick else 8)
            for count in (2, 1)
        }
        for count, figures in result.items():
            contender = f"unkernel, {count} worker{'s' * (count > 1)}"
            report.add(task, contender, "pass", "wall s", figures.pass_seconds)
            report.add(task, contender, "busiest worker", "CPU s", figures.worker_seconds)
            report.add(task, contender, "sent per worker", "bytes", sum(figures.traffic.values()))
        report.add(
            task, "two workers to one", "pass", "times", result[1].pass_seconds / result[2].pass_seconds
        )
        if not is_small:
            add_expected(report, task, result[2], result[1].worker_seconds)


def add_expected(report: Report, task: str, figures: Figures, worker_seconds: float) -> None:
    """Report times for a thousand times the rows, where many machines pay."""
    for machines in (10, 100, 1000):
        seconds = extrapolate_pass(figures, machines, 1000 * worker_seconds)
        share = 100 * 1000 * worker_seconds / machines / seconds
        expected = f"{task}, 1,000 times, extrapolated"
        report.add(expected, f"unkernel, {machines} machines", "pass", "s", seconds)
        report.add(expected, f"unkernel, {machines} machines", "of it work", "%", share)


if __name__ == "__main__":
    main(measure, list(TASKS), quick=["SVC, 2,000 rows", "SVC, 400,000 rows"])
