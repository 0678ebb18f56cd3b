"""Scoring on a cluster: the gain of a second worker, the bytes through the client, and the cost of a kill.

The peer of two workers is one worker, on another cluster in the same run; they take turns. Workers are
processes of one thread on this machine, with Dask's settings for one machine (docs/distributed.md). Records
are generated, and the workers read them from files. A model of pairs of features, mapped from its file,
predicts them as files, or as a Dask data frame or array. Every file of predictions is synchronised with the
disk, which all workers share: use TMPDIR=/dev/shm to measure the work only.

    [TMPDIR=/dev/shm] python benchmarks/distributed_scoring.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

import contextlib
import itertools
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import dask
import distributed.comm.tcp
import numpy as np
import pandas as pd
from dask.distributed import Client, LocalCluster
from distributed.utils import nbytes
from sklearn.pipeline import make_pipeline

import unkernel
from harness import Report, main, take_turns, wall_seconds
from unkernel.cli import main as command_line
from unkernel.distributed.cluster.local_settings import ONE_MACHINE

# Dask imports a package of this name, and would find the benchmark. Workers run this line, too.
sys.modules["sparse"] = None  # type: ignore[assignment]

TASKS = ["CSV files", "Parquet files", "data frame", "array", "killed"]
FILES = 16
COLUMNS, CHUNKS = 24, 32  # of the array
JOBS = np.array(["clerk", "cook", "farmer", "pilot", "teacher", "trader", "welder", "writer"], dtype=object)


def people(rows: int, seed: int) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": generator.integers(17, 90, rows),
            "job": generator.choice(JOBS, rows),
            "hours": generator.integers(1, 99, rows),
            "gain": np.where(generator.random(rows) < 0.9, 0, generator.integers(1, 99_999, rows)),
            "city": generator.choice([f"city {k}" for k in range(40)], rows),
        }
    )


def make_people_model(path: Path) -> Any:
    frame = people(20_000, seed=10**6)
    score = frame["age"] / 30 + (frame["job"] == "pilot") * (frame["hours"] > 40) * 3 + frame["gain"] / 30_000
    learner = make_pipeline(unkernel.RecordEncoder(), unkernel.PolySVC(C=0.1))
    unkernel.compile(learner.fit(frame, np.where(score > 2.5, "rich", "poor"))).save(path)
    return unkernel.load(path)


def make_rows_model(path: Path) -> Any:
    X = (np.random.default_rng(0).random((5_000, COLUMNS)) < 0.3).astype(float)
    unkernel.compile(unkernel.PolySVC().fit(X, X[:, 0] * X[:, 1] + X[:, 2] > 0.5)).save(path)
    return unkernel.load(path)


class Bytes:
    """Counts the bytes that this process sends and receives; it runs the client and the schedulers."""

    def __init__(self) -> None:
        self.count = 0

    @contextlib.contextmanager
    def count_bytes(self) -> Iterator[None]:
        module = distributed.comm.tcp
        to_frames, from_frames = module.to_frames, module.from_frames

        async def counting_to(*arguments: Any, **options: Any) -> Any:
            frames = await to_frames(*arguments, **options)
            self.count += sum(map(nbytes, frames))
            return frames

        async def counting_from(frames: Any, **options: Any) -> Any:
            self.count += sum(map(nbytes, frames))
            return await from_frames(frames, **options)

        module.to_frames, module.from_frames = counting_to, counting_from
        try:
            yield
        finally:
            module.to_frames, module.from_frames = to_frames, from_frames


@contextlib.contextmanager
def clusters() -> Iterator[dict[int, Client]]:
    """Start a cluster of one worker, and one of two."""
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0", "memory_limit": 0}
    with contextlib.ExitStack() as stack:
        stack.enter_context(dask.config.set(ONE_MACHINE))
        result = {}
        for workers in (1, 2):
            cluster = stack.enter_context(LocalCluster(n_workers=workers, **options))
            result[workers] = stack.enter_context(Client(cluster, set_as_default=False))
        yield result


Scoring = Callable[[Client], object]


def scoring_files(folder: Path, kind: str) -> Scoring:
    """Return a run of the command, which predicts all files on the workers of a scheduler."""
    numbers = itertools.count()

    def score(client: Client) -> None:
        output = folder / f"answers-{next(numbers)}"
        names = ["predict", folder / "people.uk", folder / f"*.{kind}", "-o", output]
        options = ["--dask", client.scheduler.address, "-q"]
        assert command_line([str(word) for word in names + options]) == 0

    return score


def scoring_frame(folder: Path) -> Scoring:
    import dask.dataframe as dd

    fast = unkernel.load(folder / "people.uk")

    def score(client: Client) -> Any:
        frame = dd.read_parquet([str(path) for path in sorted(folder.glob("*.parquet"))])
        return client.compute((fast.predict(frame) == "rich").sum()).result()

    return score


def scoring_array(folder: Path, rows: int) -> Scoring:
    """Return a run on an array whose chunks the workers make themselves; that is part of the work."""
    import dask.array as da

    fast = make_rows_model(folder / "rows.uk")

    def score(client: Client) -> Any:
        X = da.random.default_rng(0).random((rows, COLUMNS), chunks=(rows // CHUNKS, COLUMNS)) < 0.3
        return client.compute(fast.predict(X.astype(np.float64)).sum()).result()

    return score


def write_files(folder: Path, rows: int, tasks: Sequence[str]) -> None:
    for number in range(FILES):
        frame = people(rows // FILES, number)
        if {"CSV files", "killed"} & set(tasks):
            frame.to_csv(folder / f"part-{number:02}.csv", index=False)
        if {"Parquet files", "data frame"} & set(tasks):
            frame.to_parquet(folder / f"part-{number:02}.parquet")


def measure(report: Report, tasks: Sequence[str]) -> None:
    rows = 1_600_000 if report.quick else 16_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_people_model(folder / "people.uk")
        write_files(folder, rows, tasks)
        works = {
            "CSV files": scoring_files(folder, "csv"),
            "Parquet files": scoring_files(folder, "parquet"),
            "data frame": scoring_frame(folder),
            "array": scoring_array(folder, rows),
        }
        with clusters() as clients:
            for task in tasks:
                if task in works:
                    add_figures(report, f"{task}, {rows:,} rows", works[task], clients)
        if "killed" in tasks:
            add_kills(report, folder, rows)


def add_figures(report: Report, task: str, score: Scoring, clients: dict[int, Client]) -> None:
    for client in clients.values():
        score(client)  # start-up: the processes import their modules
    sent = Bytes()
    with sent.count_bytes():
        score(clients[2])
    works = {f"{count}": lambda client=client: score(client) for count, client in clients.items()}
    times = take_turns(works, 2 if report.quick else 3, wall_seconds)
    for count, times_of_cluster in times.items():
        report.add(
            task, f"unkernel, {count} worker{'s' * (count != '1')}", "score", "wall s", times_of_cluster.best
        )
    report.add(task, "two workers to one", "score", "times", times["1"].best / times["2"].best)
    report.add(task, "unkernel, 2 workers", "through client and scheduler", "bytes", sent.count)


def add_kills(report: Report, folder: Path, rows: int) -> None:
    """Kill the client at random moments until a run ends; compare its predictions with an undisturbed run."""
    words = ["predict", folder / "people.uk", folder / "*.csv"]
    command = [sys.executable, "-m", "unkernel", *map(str, words), "--dask", "local", "--jobs", "2", "-q"]
    subprocess.run([*command, "-o", str(folder / "whole")], check=True)
    began, generator, kills = time.perf_counter(), np.random.default_rng(0), 0
    while True:
        with subprocess.Popen([*command, "-o", str(folder / "killed")]) as run:
            try:
                run.wait(6 + 6 * generator.random())  # starting takes half of it
                break
            except subprocess.TimeoutExpired:
                run.send_signal(signal.SIGKILL)
                kills += 1
    task = f"CSV files, {rows:,} rows, killed"
    report.add(task, "unkernel, 2 workers", "runs that were killed", "runs", kills)
    report.add(task, "unkernel, 2 workers", "until the end", "wall s", time.perf_counter() - began)
    is_same = all(
        path.read_bytes() == (folder / "killed" / path.name).read_bytes()
        for path in (folder / "whole").glob("*.csv")
    )
    report.add(task, "unkernel, 2 workers", "files with the bytes of one run", "share", float(is_same))


if __name__ == "__main__":
    main(measure, TASKS)
