"""Regression on a cluster: one worker and two beside `PolyRegressor` on one machine.

Each worker is a process with one thread, with Dask's settings for one machine (docs/distributed.md). A
cluster of one worker, a cluster of two and `PolyRegressor` with one thread take turns to train models of
degree 2 to a gap of 1e-3, and the best of their runs counts. The rows are generated: records of categories,
whose targets are sums of random weights of values and of some pairs of values, and noise. The workers have
their blocks before training begins.

    python benchmarks/distributed_regression.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
from dask.distributed import Client, LocalCluster, wait
from scipy import sparse

from distributed_poly import processor_seconds
from harness import Report, main
from unkernel import PolyRegressor
from unkernel.distributed import DaskPolyRegressor
from unkernel.distributed.cluster.local_settings import ONE_MACHINE

COLUMNS, PAIRS, BLOCKS = 15, 300, 8
RUNS = 2


@dataclass(frozen=True)
class Task:
    """The rows, and the parameters of the learner."""

    rows: int
    values: int  # different values of each column
    parameters: dict[str, Any]


TASKS = {
    "l2, 20,000 rows": Task(20_000, 10, {"C": 0.1}),
    "l2, 200,000 rows": Task(200_000, 10, {"C": 0.1}),
    "squared_epsilon_insensitive, 200,000 rows": Task(
        200_000, 10, {"C": 0.1, "loss": "squared_epsilon_insensitive", "epsilon": 0.5}
    ),
    "l1, 200,000 rows": Task(200_000, 10, {"C": 0.002, "penalty": "l1"}),
    "l1, many values, 200,000 rows": Task(200_000, 100, {"C": 0.002, "penalty": "l1"}),
}


def make_block(rows: int, values: int, seed: int) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Return rows of ones and zeros, and their targets; the weights are the same for every seed."""
    generator, shared = np.random.default_rng(seed), np.random.default_rng(12345)
    codes = (values * generator.random((rows, COLUMNS)) ** 2).astype(np.int32)  # small codes are frequent
    features = COLUMNS * values
    columns = codes + values * np.arange(COLUMNS, dtype=np.int32)
    offsets = np.arange(0, rows * COLUMNS + 1, COLUMNS)
    X = sparse.csr_matrix((np.ones(columns.size), columns.ravel(), offsets), shape=(rows, features))
    targets = X @ shared.normal(size=features)
    firsts, seconds = shared.integers(0, features, (2, PAIRS))
    targets += X[:, firsts].multiply(X[:, seconds]) @ shared.normal(size=PAIRS)
    return X, targets + generator.normal(size=rows)


@contextlib.contextmanager
def place_blocks(workers: int, task: Task) -> Iterator[tuple[Client, list[Any]]]:
    """Start a cluster whose workers have the blocks."""
    options = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    options["memory_limit"] = 0  # no limit, so nothing is written to disk
    with dask.config.set(ONE_MACHINE), LocalCluster(**options) as cluster, Client(cluster) as client:
        blocks = client.compute(
            [dask.delayed(make_block)(task.rows // BLOCKS, task.values, seed) for seed in range(BLOCKS)]
        )
        wait(blocks)
        yield client, blocks


def train_locally(task: Task) -> tuple[float, float, PolyRegressor]:
    """Return the wall time, the processor time and the fitted learner."""
    pieces = [make_block(task.rows // BLOCKS, task.values, seed) for seed in range(BLOCKS)]
    X, y = sparse.vstack([X for X, _ in pieces], format="csr"), np.concatenate([y for _, y in pieces])
    began, used = time.perf_counter(), time.process_time()
    learner = PolyRegressor(2, gamma=1.0, random_state=0, **task.parameters).fit(X, y)
    return time.perf_counter() - began, time.process_time() - used, learner


def train_on_workers(task: Task, client: Client, blocks: list[Any]) -> tuple[float, float, DaskPolyRegressor]:
    """Return the wall time, the processor time of the workers, and the fitted learner."""
    began, used = time.perf_counter(), processor_seconds(client)
    learner = DaskPolyRegressor(2, gamma=1.0, random_state=0, client=client, **task.parameters).fit(blocks)
    return time.perf_counter() - began, processor_seconds(client) - used, learner


def measure(report: Report, tasks: Sequence[str]) -> None:
    for name in tasks:
        task = TASKS[name]
        runs: dict[int, list[tuple[float, float, Any]]] = {0: [], 1: [], 2: []}
        with place_blocks(1, task) as one_worker, place_blocks(2, task) as two_workers:
            for _ in range(1 if report.quick else RUNS):
                runs[0].append(train_locally(task))
                runs[1].append(train_on_workers(task, *one_worker))
                runs[2].append(train_on_workers(task, *two_workers))
        walls = {}
        for workers, of_contender in runs.items():
            wall, processor, learner = min(of_contender, key=lambda run: run[0])
            walls[workers] = wall
            contender = f"{workers} worker{'s' * (workers > 1)}" if workers else "PolyRegressor"
            report.add(name, contender, "training", "wall s", wall)
            report.add(name, contender, "training", "CPU s", processor)
            report.add(name, contender, "steps", "", learner.n_iter_)
            report.add(name, contender, "weights", "", learner.model_.n_conjunctions)
            report.add(name, contender, "objective", "", learner.objective_)
            report.add(name, contender, "gap", "", learner.gap_)
            if workers:
                sent = sum(learner.traffic_.values()) / workers
                report.add(name, contender, "sent per worker", "bytes", sent)
        report.add(name, "two workers to one", "training", "times", walls[1] / walls[2])


if __name__ == "__main__":
    main(measure, list(TASKS), quick=["l2, 20,000 rows"])
