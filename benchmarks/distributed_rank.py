"""Ranking on a cluster: the gain of a second worker, and the bytes sent for one and for two million rows.

The peer of two workers is one worker in the same run, on the same rows; they take turns with the first twenty
passes of training to a gap of 1e-3. Each worker is a process with one thread, with Dask's settings for one
machine (docs/distributed.md). The rows are generated: their columns follow Zipf's law, a hidden weight vector
determines their five labels and, for the task with groups, a thousand rows form a group. The time of a pass
is the mean over a run, and the best run counts.

    python benchmarks/distributed_rank.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
from dask.distributed import Client, LocalCluster, wait
from sklearn.exceptions import ConvergenceWarning

from distributed_passes import BLOCKS, Clock, note_passes, zipf_block
from harness import Report, main
from unkernel.distributed import DaskRankSVM
from unkernel.distributed.cluster.local_settings import ONE_MACHINE
from unkernel.distributed.cutplane.risks import GroupRisk

ENTRIES, FEATURES, RANKS = 70, 50_000, 5
GROUP_ROWS = 1000
PASSES = 20
RUNS = 2
# Rows, and True for groups.
TASKS: dict[str, tuple[int, bool]] = {
    "100,000 rows": (100_000, False),
    "1,000,000 rows": (1_000_000, False),
    "2,000,000 rows": (2_000_000, False),
    "2,000,000 rows in groups": (2_000_000, True),
}


@dataclass(frozen=True)
class Figures:
    """Measurements of a training run."""

    pass_seconds: float
    worker_seconds: float  # of processor time per pass, of the busiest worker
    traffic: dict[str, float]  # bytes per pass and worker
    objective: float


def make_ranked_block(rows: int, seed: int, grouped: bool) -> tuple[Any, ...]:
    X, y = zipf_block(rows, ENTRIES, FEATURES, seed, RANKS)
    return (X, y, (seed * rows + np.arange(rows)) // GROUP_ROWS) if grouped else (X, y)


@contextlib.contextmanager
def place_blocks(workers: int, rows: int, grouped: bool) -> Iterator[tuple[Client, list[Any]]]:
    """Start a cluster whose workers have the blocks."""
    options = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    options["memory_limit"] = 0  # no limit, so nothing is written to disk
    with dask.config.set(ONE_MACHINE), LocalCluster(**options) as cluster, Client(cluster) as client:
        delayed_blocks = [
            dask.delayed(make_ranked_block)(rows // BLOCKS, seed, grouped) for seed in range(BLOCKS)
        ]
        blocks = client.compute(delayed_blocks)
        wait(blocks)
        yield client, blocks


def train(client: Client, blocks: list[Any]) -> Figures:
    clock = Clock(client)
    with warnings.catch_warnings(), note_passes(GroupRisk, clock):
        warnings.simplefilter("ignore", ConvergenceWarning)
        learner = DaskRankSVM(max_iter=PASSES, client=client).fit(blocks)
    rounds, workers = learner.n_iter_ + 1, len(learner.client.nthreads())
    return Figures(
        float(np.mean(clock.seconds)),
        float(np.mean(clock.worker_seconds)),
        {name: sent / rounds / workers for name, sent in learner.traffic_.items()},
        learner.objective_,
    )


def measure(report: Report, tasks: Sequence[str]) -> None:
    for task in tasks:
        rows, grouped = TASKS[task]
        with place_blocks(1, rows, grouped) as one_worker, place_blocks(2, rows, grouped) as two_workers:
            runs = [(train(*one_worker), train(*two_workers)) for _ in range(1 if report.quick else RUNS)]
        best = {
            count: min(figures, key=lambda run: run.pass_seconds)
            for count, figures in zip((1, 2), zip(*runs, strict=True), strict=True)
        }
        for count, figures in best.items():
            contender = f"unkernel, {count} worker{'s' * (count > 1)}"
            report.add(task, contender, "pass", "wall s", figures.pass_seconds)
            report.add(task, contender, "busiest worker", "CPU s", figures.worker_seconds)
            report.add(task, contender, "sent per worker", "bytes", sum(figures.traffic.values()))
            report.add(task, contender, "counts per worker", "bytes", figures.traffic.get("counts", 0.0))
            report.add(task, contender, "objective", "", figures.objective)
        report.add(task, "two workers to one", "pass", "times", best[1].pass_seconds / best[2].pass_seconds)


if __name__ == "__main__":
    main(measure, list(TASKS), quick=["100,000 rows"])
