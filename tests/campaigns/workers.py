"""Dask workers that are killed during training: training continues, with the same result.

    python -m campaigns.workers --kills 100

The cluster consists of processes on this machine, whose nannies restart the workers.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import threading
import time
from typing import Any

import dask
from dask.distributed import Client, LocalCluster
from distributed.utils import get_mp_context

from campaigns.tasks import make_rows
from reference.patience import PATIENCE
from unkernel import CuttingPlaneSVC
from unkernel.distributed import DaskCuttingPlaneSVC

TOL = 1e-3
WORKERS = 3
SETTINGS = {
    "distributed.worker.multiprocessing-method": "forkserver",
    "distributed.comm.timeouts.connect": PATIENCE,
    "distributed.comm.timeouts.tcp": PATIENCE,
    "distributed.scheduler.allowed-failures": 1000,  # the same worker may be lost repeatedly
}


def kill_later(client: Any, seconds: float, rng: random.Random) -> threading.Timer:
    """Kill one of the workers after this number of seconds."""
    numbers = list(client.run(os.getpid).values())
    timer = threading.Timer(seconds, lambda: os.kill(rng.choice(numbers), signal.SIGKILL))
    timer.start()
    return timer


def run_campaign(kills: int, seed: int) -> int:
    """Train repeatedly, killing a worker each time; return how many losses were noticed."""
    rng = random.Random(seed)
    X, y = make_rows(1, rows=600)
    expected = CuttingPlaneSVC(tol=TOL, C=0.1).fit(X, y)
    recoveries = 0
    options = {"n_workers": WORKERS, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        seconds = 1.0
        for _ in range(kills):
            client.wait_for_workers(WORKERS, timeout=PATIENCE)
            timer = kill_later(client, rng.uniform(0, seconds), rng)
            began = time.perf_counter()
            learner = DaskCuttingPlaneSVC(tol=TOL, C=0.1, client=client).fit(X, y)
            seconds = min(seconds, time.perf_counter() - began)
            timer.join()
            assert learner.gap_ <= TOL, learner.gap_
            assert abs(learner.objective_ / expected.objective_ - 1) <= 2 * TOL, learner.objective_
            recoveries += learner.n_recoveries_
    return recoveries


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with dask.config.set(SETTINGS):
        get_mp_context().set_forkserver_preload(["distributed", "unkernel.distributed"])
        recoveries = run_campaign(options.kills, options.seed)
    print(
        f"{options.kills} workers killed, {recoveries} recoveries in the middle of a training, "
        "0 wrong answers"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
