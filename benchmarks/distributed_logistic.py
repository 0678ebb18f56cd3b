"""Sparse log-linear models on a cluster: two workers against one, and the number of steps for many parts.

Each worker is a process with one thread. A cluster of one worker and a cluster of two take turns to train
models of degree 2 with an l1 penalty to a gap of 1e-3. Larger clusters are simulated: one process runs the
parts of each round of ``DaskPolyLogisticRegression`` one after another, and the time of the slowest part is
taken as the time of the round.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/distributed_logistic.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from distributed_poly import Training, load_training, processor_seconds, start_workers
from harness import Report, main
from unkernel import PolyLogisticRegression
from unkernel.distributed import DaskPolyLogisticRegression
from unkernel.distributed.cluster.row_blocks import make_block
from unkernel.distributed.poly import sparse_tasks as tasks
from unkernel.distributed.poly.sparse_shards import SparseShards, number_features
from unkernel.distributed.poly.sparse_solver import SparseSolver
from unkernel.distributed.poly.svc_tasks import PolyPacking
from unkernel.poly.options import SparseOptions

CLUSTERS = {"arc_eager_ewt": "arc_eager_ewt"}
SIMULATED = {f"{name}, simulated parts": name for name in CLUSTERS}
PARTS = (1, 2, 8, 32, 128)
QUICK_ROWS = 30_000
PARAMETERS: dict[str, Any] = {"degree": 2, "C": 0.1, "gamma": 1.0, "coef0": 1.0}


def load_rows(name: str, quick: bool) -> Training:
    training = load_training(name)
    rows = slice(QUICK_ROWS if quick else None)
    return Training(training.X[rows], training.y[rows], PARAMETERS)


# --- Real workers -------------------------------------------------------------------------------------------


def measure_clusters(report: Report, task: str) -> None:
    training = load_rows(CLUSTERS[task], report.quick)
    began = time.process_time()
    on_one_machine = PolyLogisticRegression(**training.parameters, random_state=0).fit(training.X, training.y)
    report.add(task, "PolyLogisticRegression", "training", "CPU s", time.process_time() - began)
    report.add(task, "PolyLogisticRegression", "objective", "", on_one_machine.objective_)
    walls = {}
    with start_workers(1) as one_worker, start_workers(2) as two_workers:
        for workers, client in ((1, one_worker), (2, two_workers)):
            cpu_before, began = processor_seconds(client), time.perf_counter()
            learner = DaskPolyLogisticRegression(**training.parameters, random_state=0, client=client)
            learner.fit(training.X, training.y)
            walls[workers] = time.perf_counter() - began
            contender = f"DaskPolyLogisticRegression, {workers} worker{'s' * (workers > 1)}"
            report.add(task, contender, "training", "wall s", walls[workers])
            report.add(task, contender, "workers", "CPU s", processor_seconds(client) - cpu_before)
            report.add(task, contender, "rounds", "", learner.n_rounds_)
            report.add(task, contender, "steps", "", learner.n_iter_)
            for purpose, sent in learner.traffic_.items():
                report.add(task, contender, f"sent, {purpose}", "bytes", sent)
            report.add(task, contender, "objective", "", learner.objective_)
    report.add(task, "two workers to one", "training", "times", walls[1] / walls[2])


# --- Simulated workers --------------------------------------------------------------------------------------


class SimulatedShards(SparseShards):
    """Parts that answer in this process, one after another."""

    def __init__(self, parts: list[tasks.SparsePolyPart]) -> None:
        self._parts = parts
        self.seconds = 0.0  # processor time of the slowest part, summed over the questions
        self.questions = 0
        self.sum_bytes = 0  # size of the sums of conjunctions that all parts send

    def use(self, problem: tasks.SparseProblem, keys: tasks.Keys, version: int) -> None:
        self._ask(tasks.use_keys, problem, keys, version)

    def sum_bounds(self, task: Any, point: Any, *sent: Any) -> Any:
        return sum(self._ask(task, point, *sent))

    def find_strongest(self, point: Any, sent: Any, threshold: float, limit: int) -> Any:
        strongest, sent = tasks.find_strongest(self._ask(tasks.sum_buckets, point, *sent), threshold, limit)
        self.sum_bytes += sent
        return strongest

    def _ask(self, task: Any, *sent: Any) -> list[Any]:
        answers, seconds = [], []
        for part in self._parts:
            began = time.process_time()
            answers.append(task(part, *sent))
            seconds.append(time.process_time() - began)
        self.seconds += max(seconds)
        self.questions += 1
        return answers


def make_parts(training: Training, classes: np.ndarray, count: int) -> list[tasks.SparsePolyPart]:
    bounds = np.linspace(0, len(training.y), count + 1).astype(int).tolist()
    packing = PolyPacking(0, training.X.shape[1], classes, 1)
    return [
        tasks.SparsePolyPart([make_block(training.X[begin:end], training.y[begin:end])], packing)
        for begin, end in itertools.pairwise(bounds)
    ]


def measure_simulated(report: Report, task: str) -> None:
    training = load_rows(SIMULATED[task], report.quick)
    classes = np.unique(training.y)
    options = SparseOptions("logistic", 1.0, 0.0, training.parameters["C"], 0.0, 1e-3, 1000, 0, 1)
    mapping = {"degree": 2, "kind": "kernel", "gamma": 1.0, "coef0": 1.0}
    for count in PARTS[:3] if report.quick else PARTS:
        parts = make_parts(training, classes, count)
        counts = [tasks.count_columns(part).vector for part in parts]
        numbering = number_features(np.sum([count.unpack() for count in counts if count is not None], axis=0))
        for part in parts:
            tasks.number_columns(part, numbering)
        shards = SimulatedShards(parts)
        problem = tasks.SparseProblem("simulated", 0, options, mapping, [1.0] * len(classes))
        result = SparseSolver(shards, problem, numbering, lambda _: None).solve()
        contender = f"{count} parts"
        report.add(task, contender, "rounds", "", len(result.progress))
        report.add(task, contender, "steps", "", result.last.steps)
        report.add(task, contender, "questions", "", shards.questions)
        report.add(task, contender, "gap", "", result.last.gap)
        report.add(task, contender, "objective", "", result.last.objective)
        report.add(task, contender, "conjunctions in use", "", result.last.conjunctions)
        report.add(task, contender, "the slowest part", "CPU s", shards.seconds)
        report.add(task, contender, "sums sent per search", "bytes", shards.sum_bytes / len(result.progress))


def measure(report: Report, tasks_asked: Sequence[str]) -> None:
    for task in tasks_asked:
        (measure_simulated if task in SIMULATED else measure_clusters)(report, task)


if __name__ == "__main__":
    main(measure, [*CLUSTERS, *SIMULATED], quick=["arc_eager_ewt"])
