"""Training tree kernels on a cluster: the gain of a second worker, and the bytes of a round.

The trees are PropBank's candidates (tree_tasks.py), in eight files that the workers read themselves; kernel
and C are the same as in tree.py. The peer of two workers is one worker in the same run, on the same files,
with the same samples and for the same number of rounds, or to the same certified gap. Each worker is a
process with one thread, and clusters take turns. "whole" is a fit from the files to the model; "training" is
the part after the trees are read and counted.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/distributed_trees.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from dask.distributed import Client, LocalCluster
from sklearn.exceptions import ConvergenceWarning

from harness import Report, main
from tree import DECAY, C
from tree_tasks import find_file
from unkernel import TreeSVC, read_trees
from unkernel.distributed import DaskTreeSVC
from unkernel.distributed.tree.shards import ClusterTrees

FILES = 8
TURNS = 2


def sampled(size: int, rounds: int) -> dict[str, Any]:
    return {"solver": "sampled", "sample_size": size, "max_iter": rounds}


# The examples, and the options of the learner.
TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "100,000 candidates, exact": ("boundaries-100k", {"solver": "exact"}),
    "100,000 candidates, samples of 1,000": ("boundaries-100k", sampled(1000, 100)),
    "1,463,591 candidates, exact, 8 rounds": ("boundaries-all", {"solver": "exact", "max_iter": 8}),
    "1,463,591 candidates, samples of 1,000": ("boundaries-all", sampled(1000, 300)),
    "1,463,591 candidates, samples of 5,000": ("boundaries-all", sampled(5000, 100)),
    "1,463,591 candidates, samples of 20,000": ("boundaries-all", sampled(20_000, 40)),
}


def divide_files(task: str) -> list[Path]:
    """Return files that divide the examples of a task, neighbours together."""
    file = find_file(task)
    parts = [file.with_suffix(f".{number}-of-{FILES}.dat") for number in range(FILES)]
    if not all(part.exists() for part in parts):
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        bounds = np.linspace(0, len(lines), FILES + 1).astype(int)
        for number, part in enumerate(parts):
            part.write_text("".join(lines[bounds[number] : bounds[number + 1]]), encoding="utf-8")
    return parts


@dataclass(frozen=True)
class Figures:
    """Measurements of a fit."""

    whole: float  # seconds
    training: float
    worker_cpu: float  # seconds of the busiest worker, for training
    client_cpu: float
    learner: DaskTreeSVC


@contextlib.contextmanager
def note_training(client: Client, noted: dict[str, float]) -> Iterator[None]:
    """Note the time of training, without reading and counting the trees."""

    def noting(train: Callable[..., Any]) -> Callable[..., Any]:
        def noted_training(self: Any, *arguments: Any) -> Any:
            workers_before, client_before, began = (
                client.run(time.process_time),
                time.process_time(),
                time.perf_counter(),
            )
            trained = train(self, *arguments)
            noted["training"] = time.perf_counter() - began
            noted["client_cpu"] = time.process_time() - client_before
            used = client.run(time.process_time)
            noted["worker_cpu"] = max(used[worker] - workers_before[worker] for worker in used)
            return trained

        return noted_training

    with mock.patch.multiple(
        ClusterTrees,
        train_exact=noting(ClusterTrees.train_exact),
        train_sampled=noting(ClusterTrees.train_sampled),
    ):
        yield


def fit(client: Client, files: list[Path], options: dict[str, Any]) -> Figures:
    learner = DaskTreeSVC(decay=DECAY, C=C, random_state=0, client=client, **options)
    noted: dict[str, float] = {}
    with warnings.catch_warnings(), note_training(client, noted):
        warnings.simplefilter("ignore", ConvergenceWarning)
        began = time.perf_counter()
        learner.fit(files)
        return Figures(time.perf_counter() - began, **noted, learner=learner)


def measure(report: Report, tasks: Sequence[str]) -> None:
    for name in tasks:
        task, options = TASKS[name]
        try:
            files = divide_files(task)
        except FileNotFoundError as reason:
            report.leave_out(name, reason)
            continue
        with contextlib.ExitStack() as stack:
            clients = {count: stack.enter_context(start_workers(count)) for count in (2, 1)}
            result: dict[int, list[Figures]] = {count: [] for count in clients}
            for _ in range(1 if report.quick else TURNS):
                for count, client in clients.items():
                    result[count].append(fit(client, files, options))
        add_figures(report, name, result)
        add_differences(report, name, result[2][0].learner, task, options)


@contextlib.contextmanager
def start_workers(workers: int) -> Iterator[Client]:
    options = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    options["memory_limit"] = 0  # no limit, so nothing is written to disk
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


def add_figures(report: Report, name: str, actual: dict[int, list[Figures]]) -> None:
    for count, runs in actual.items():
        contender = f"unkernel, {count} worker{'s' * (count > 1)}"
        rounds = runs[0].learner.n_iter_
        report.add(name, contender, "whole", "wall s", min(run.whole for run in runs))
        report.add(name, contender, "training", "wall s", min(run.training for run in runs))
        report.add(name, contender, "busiest worker, a round", "CPU ms", smallest(runs, "worker_cpu", rounds))
        report.add(
            name, contender, "client and scheduler, a round", "CPU ms", smallest(runs, "client_cpu", rounds)
        )
        for purpose, sent in runs[0].learner.traffic_.items():
            report.add(name, contender, f"{purpose}, a round", "bytes", sent / rounds)
    for figure in ("whole", "training"):
        seconds_of_one, seconds_of_two = (
            min(getattr(run, figure) for run in actual[count]) for count in (1, 2)
        )
        report.add(name, "two workers to one", figure, "times", seconds_of_one / seconds_of_two)


def smallest(runs: list[Figures], figure: str, rounds: int) -> float:
    return 1000 * min(getattr(run, figure) for run in runs) / rounds


def add_differences(report: Report, name: str, ours: Any, task: str, options: dict[str, Any]) -> None:
    """Report the differences from the model of one machine."""
    examples = read_trees(find_file(task), format="lines")
    theirs = TreeSVC(decay=DECAY, C=C, random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs.fit(examples.X, examples.y)
    rows = examples.X[:10_000]
    difference = np.abs(ours.decision_function(rows) - theirs.decision_function(rows)).max()
    report.add(name, "unkernel, 2 workers", "scores, from those of TreeSVC", "largest difference", difference)
    change = abs(ours.objective_ / theirs.objective_ - 1)
    report.add(name, "unkernel, 2 workers", "objective, from that of TreeSVC", "relative", change)


if __name__ == "__main__":
    main(measure, list(TASKS), quick=["100,000 candidates, samples of 1,000"])
