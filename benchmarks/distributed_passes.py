"""Training on a cluster: what more workers save, what a pass costs at least, and what it sends.

The peer of two workers is one worker in the same run, on the same rows and for the same number of passes;
workers are processes of one thread. Rows are generated: columns by Zipf's law, labels of a hidden weight
vector. The time of a pass on more machines is extrapolated: the work divided by the machines, the messages
along trees.

    python benchmarks/distributed_passes.py [--rows 4000000] [--entries 70] [--features 50000] [--passes 8]
"""

from __future__ import annotations

import argparse
import contextlib
import math
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
from dask.distributed import Client, LocalCluster, wait
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from unkernel.distributed import DaskCuttingPlaneSVC, DaskRankSVM
from unkernel.distributed.risks import JointRisk, SeparableRisk

BLOCKS = 8
FAN = 4
# What is assumed of a cluster's network: 10 Gbit/s a machine, and what Dask needs for a task from end to end.
BANDWIDTH = 1.25e9
LATENCY = 0.01
TASK = 3e-4  # the scheduler's time for a task


def zipf_block(rows: int, entries: int, features: int, seed: int, ranks: int) -> tuple[Any, np.ndarray]:
    """A block of rows; labels by a hidden weight vector that all blocks share."""
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
    """What a run of a few passes took."""

    pass_seconds: float
    worker_seconds: float  # of processor time a pass, of the busiest worker
    traffic: dict[str, float]  # bytes per pass and part


def measure(learner: Any, blocks: list[Any], passes: int) -> Figures:
    """The shortest time from one pass to the next, in a run of some passes."""
    clock = Clock(learner.client)
    learner.set_params(max_iter=passes + 1, tol=1e-9)
    with warnings.catch_warnings(), noting_times(SeparableRisk, clock), noting_times(JointRisk, clock):
        warnings.simplefilter("ignore", ConvergenceWarning)
        learner.fit(blocks)
    rounds = learner.n_iter_ + 1
    traffic = {name: sent / rounds / learner.n_parts_ for name, sent in learner.traffic_.items()}
    return Figures(min(clock.seconds[-passes:]), float(np.median(clock.worker_seconds[-passes:])), traffic)


class Clock:
    """The time from one pass to the next, and the processor time that the busiest worker used in it."""

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
def noting_times(risk: Any, clock: Clock) -> Iterator[None]:
    """Note when passes begin."""
    aim = risk.aim

    def noting(self: Any, weights: np.ndarray) -> None:
        clock.next_pass()
        aim(self, weights)

    risk.aim = noting
    try:
        yield
    finally:
        risk.aim = aim


def on_workers(workers: int, learner: Any, shape: tuple[int, int, int, int], passes: int) -> Figures:
    rows, entries, features, ranks = shape
    options = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    options["memory_limit"] = 0  # nothing is to be written to disk
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        made = [
            dask.delayed(zipf_block)(rows // BLOCKS, entries, features, seed, ranks) for seed in range(BLOCKS)
        ]
        blocks = client.compute(made)
        wait(blocks)
        figures = measure(learner.set_params(client=client), blocks, passes)
    return figures


def extrapolated(figures: Figures, machines: int, work_seconds: float) -> float:
    """Seconds of a pass: two questions, each down one tree of messages and up another."""
    levels = max(1, math.ceil(math.log(machines, FAN)))
    sent = sum(figures.traffic.values())
    tasks = 2 * machines * (1 + 1 / (FAN - 1)) + machines
    return (
        work_seconds / machines + levels * FAN * sent / BANDWIDTH + 2 * (levels + 1) * LATENCY + tasks * TASK
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--entries", type=int, default=70)
    parser.add_argument("--features", type=int, default=50_000)
    parser.add_argument("--passes", type=int, default=8)
    chosen = parser.parse_args()

    tiny = on_workers(2, DaskCuttingPlaneSVC(), (2000, 10, 200, 2), 40)
    print(f"a pass over 2,000 rows, 2 workers: {tiny.pass_seconds * 1e3:.0f} ms")

    size = f"{chosen.rows:,} rows of {chosen.entries} entries, {chosen.features:,} columns"
    print(f"\n{size}, {chosen.passes} passes")
    print("| learner | 1 worker, s a pass | 2 workers | ratio | ratio of the workers' processor time |")
    print("|---|---|---|---|---|")
    found = {}
    # The client sorts the scores for RankSVM: a tenth of the rows takes as long.
    for name, learner, shape in (
        ("SVC", DaskCuttingPlaneSVC(), (chosen.rows, chosen.entries, chosen.features, 2)),
        (
            "RankSVM, a tenth of the rows",
            DaskRankSVM(),
            (chosen.rows // 10, chosen.entries, chosen.features, 5),
        ),
    ):
        one, two = (on_workers(count, learner, shape, chosen.passes) for count in (1, 2))
        found[name] = one, two
        ratio = one.pass_seconds / two.pass_seconds
        work_ratio = one.worker_seconds / two.worker_seconds
        print(
            f"| {name} | {one.pass_seconds:.2f} ({one.worker_seconds:.2f} of processor time) | "
            f"{two.pass_seconds:.2f} ({two.worker_seconds:.2f}) | {ratio:.2f}x | {work_ratio:.2f}x |"
        )

    print("\nbytes per pass and worker (2 workers):")
    for name, (_, two) in found.items():
        print(f"  {name}: " + ", ".join(f"{what} {sent:,.0f}" for what, sent in two.traffic.items()))

    one, two = found["SVC"]
    work = one.worker_seconds * 1000  # so large that 1,000 machines are worth their while
    print(f"\nexpected for 1,000 times the rows, {chosen.rows * 1000:,}, SVC:")
    for machines in (1, 10, 100, 1000):
        seconds = extrapolated(two, machines, work)
        print(
            f"  {machines:5d} machines: {seconds:8.2f} s a pass, {work / machines / seconds:.0%} of it work"
        )


if __name__ == "__main__":
    main()
