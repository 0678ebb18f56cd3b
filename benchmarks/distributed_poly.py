"""Polynomial SVMs on a cluster: two workers against one, and the number of rounds for many parts.

Each worker is a process with one thread. A cluster of one worker and a cluster of two take turns to train
models of degree 2 to a gap of 1e-3; with one worker, all rows are solved together. Larger clusters are
simulated: one process runs the parts of each round of ``DaskPolySVC`` one after another, and the time of the
slowest part is taken as the time of the round.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/distributed_poly.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

import contextlib
import itertools
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from dask.distributed import Client, LocalCluster
from scipy import sparse

from harness import Report, main
from poly_tasks import TASKS as POLY_TASKS
from poly_tasks import load
from unkernel import PolySVC, datasets
from unkernel.distributed import DaskPolySVC
from unkernel.distributed.cluster.row_blocks import make_block
from unkernel.distributed.poly.cascade import FetchModel, Members, choose_first_members, solve_by_rounds
from unkernel.distributed.poly.svc_tasks import (
    Effort,
    Places,
    PolyPacking,
    PolyPart,
    PolyProblem,
    Solved,
    Verdict,
    judge,
    sample_places,
    select_members,
    solve_members,
)

CLUSTERS = {"arc_eager_ewt": "arc_eager_ewt", "bunsetsu_kyoto": "bunsetsu_kyoto"}
SIMULATED = {f"{name}, simulated parts": name for name in CLUSTERS}
PARTS = (2, 8, 32, 128)
RUNS = 2


@dataclass(frozen=True)
class Training:
    """Rows, labels, and the parameters of the learner."""

    X: sparse.csr_matrix
    y: np.ndarray
    parameters: dict[str, Any]


def load_training(name: str) -> Training:
    if name == "bunsetsu_kyoto":
        data = datasets.load(name)
        return Training(data.X, data.y, {"degree": 2, "C": 0.0025, "gamma": 1.0, "coef0": 1.0})
    task = POLY_TASKS[f"{name}-whole"]
    X, y, _, _ = load(task)
    return Training(X, y, {"degree": 2, "C": task.C, "gamma": task.gamma, "coef0": 1.0})


# --- Real workers -------------------------------------------------------------------------------------------


@contextlib.contextmanager
def start_workers(workers: int) -> Iterator[Client]:
    options = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(memory_limit=0, **options) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


def processor_seconds(client: Client) -> float:
    """Return the processor time of the workers so far."""

    def count_seconds() -> float:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime

    return float(sum(client.run(count_seconds).values()))


def measure_clusters(report: Report, task: str) -> None:
    training = load_training(CLUSTERS[task])
    began = time.process_time()
    on_one_machine = PolySVC(**training.parameters, random_state=0).fit(training.X, training.y)
    report.add(task, "PolySVC", "training", "CPU s", time.process_time() - began)
    report.add(task, "PolySVC", "objective", "", on_one_machine.objective_)
    runs: dict[int, list[tuple[float, float, DaskPolySVC]]] = {1: [], 2: []}
    with start_workers(1) as one_worker, start_workers(2) as two_workers:
        for _ in range(1 if report.quick else RUNS):
            for workers, client in ((1, one_worker), (2, two_workers)):
                cpu_before, began = processor_seconds(client), time.perf_counter()
                learner = DaskPolySVC(**training.parameters, random_state=0, client=client)
                learner.fit(training.X, training.y)
                wall = time.perf_counter() - began
                runs[workers].append((wall, processor_seconds(client) - cpu_before, learner))
    best = {
        workers: min(runs_of_cluster, key=lambda run: run[0]) for workers, runs_of_cluster in runs.items()
    }
    for workers, (wall, processor, learner) in best.items():
        contender = f"DaskPolySVC, {workers} worker{'s' * (workers > 1)}"
        report.add(task, contender, "training", "wall s", wall)
        report.add(task, contender, "workers", "CPU s", processor)
        report.add(task, contender, "rounds", "", learner.n_rounds_)
        report.add(task, contender, "sent", "bytes", sum(learner.traffic_.values()))
        report.add(task, contender, "objective", "", learner.objective_)
    report.add(task, "two workers to one", "training", "times", best[1][0] / best[2][0])


# --- Simulated workers --------------------------------------------------------------------------------------


@dataclass
class SimulatedShards:
    """Parts that answer in this process, one after another."""

    parts: list[PolyPart]
    seconds: float = 0.0  # processor time of solving, and of the slowest part
    sent: int = 0  # bytes of the rows sent to the solving worker, and of the model sent to each part
    sizes: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.sizes = [len(part.examples.codes) for part in self.parts]

    def sample(self, step: int) -> list[Places]:
        return [sample_places(part, step) for part in self.parts]

    def solve(self, problem: PolyProblem, members: Members, effort: Effort) -> tuple[FetchModel, Solved]:
        rows = [select_members(part, places) for part, places in zip(self.parts, members.places, strict=True)]
        began = time.process_time()
        solved = solve_members(rows, problem, effort)
        self.seconds += time.process_time() - began
        self.sent += solved.rows_nbytes
        return lambda: solved.model, solved

    def solve_and_judge(
        self, problem: PolyProblem, members: Members, effort: Effort
    ) -> tuple[FetchModel, Solved, list[Verdict]]:
        fetch_model, solved = self.solve(problem, members, effort)
        verdicts, seconds = [], []
        for part, places in zip(self.parts, members.places, strict=True):
            began = time.process_time()
            verdicts.append(judge(part, solved, problem, places))
            seconds.append(time.process_time() - began)
        self.seconds += max(seconds)
        self.sent += solved.model_nbytes * (len(self.parts) - 1)
        return fetch_model, solved, verdicts


def make_parts(training: Training, classes: np.ndarray, count: int) -> list[PolyPart]:
    bounds = np.linspace(0, len(training.y), count + 1).astype(int).tolist()
    packing = PolyPacking(0, training.X.shape[1], classes, 1)
    return [
        PolyPart([make_block(training.X[begin:end], training.y[begin:end])], packing)
        for begin, end in itertools.pairwise(bounds)
    ]


def measure_simulated(report: Report, task: str) -> None:
    training = load_training(SIMULATED[task])
    classes = np.unique(training.y)
    learner = PolySVC(**training.parameters, random_state=0)
    problem = PolyProblem(learner, classes, [1.0] * len(classes), 1.0, training.X.shape[1], 1)
    for count in PARTS[:2] if report.quick else PARTS:
        shards = SimulatedShards(make_parts(training, classes, count))
        result = solve_by_rounds(shards, problem, choose_first_members(shards))
        contender = f"{count} parts"
        report.add(task, contender, "rounds", "", len(result.history))
        report.add(task, contender, "gap", "", result.gap)
        report.add(task, contender, "solving and the slowest part", "CPU s", shards.seconds)
        report.add(task, contender, "sent per round", "bytes", shards.sent / len(result.history))


def measure(report: Report, tasks: Sequence[str]) -> None:
    for task in tasks:
        (measure_simulated if task in SIMULATED else measure_clusters)(report, task)


if __name__ == "__main__":
    main(measure, [*CLUSTERS, *SIMULATED], quick=["arc_eager_ewt"])
