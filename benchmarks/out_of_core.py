"""Training on files larger than memory: time, memory, and the speed of a pass.

The command line packs a file of Zipf rows once, and trains on it with a limit on its memory; the peak is the
memory that the system reports for this process. Passes over the packed file are then compared with the same
passes over the same rows in memory, and with the speed of plain reading of memory on one core.

    python benchmarks/out_of_core.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harness import Report, main, take_turns, wall_seconds
from unkernel import read_svmlight
from unkernel._core import RowStore, pack_rows
from unkernel.data.rows.row_files import open_rows
from zipf_rows import FEATURES, write_large

GIGABYTES = {"4 GB of text in 1 GB": (4.0, "1G"), "400 MB of text in 300 MB": (0.4, "300M")}
JOBS = 2
ROUNDS = 5


def passes(store: RowStore) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    weights, coefficients = rng.standard_normal(store.features), rng.standard_normal(store.rows)
    return {
        "scores": lambda: store.scores(weights, 0.0, JOBS),
        "transposed": lambda: store.transposed(coefficients, 0.0, JOBS),
    }


def train_in_process(file: Path, memory: str) -> dict[str, Any]:
    places = [str(file), "-o", str(file.with_suffix(".uk"))]
    program = [sys.executable, "-m", "unkernel", "train", "linear", *places, "--force"]
    options = ["--out-of-core", "--memory", memory, "--C", "0.003", "--jobs", str(JOBS)]
    began = time.perf_counter()
    completed = subprocess.run([*program, *options, "--json"], capture_output=True, text=True, check=True)
    return json.loads(completed.stdout) | {"wall": time.perf_counter() - began}


def measure_training(report: Report, task: str, file: Path, memory: str) -> None:
    for run in ("unkernel, packing first", "unkernel, packed"):
        result = train_in_process(file, memory)
        report.add(task, run, "training", "wall s", result["wall"])
        report.add(task, run, "rows", "number", result["rows"])
        report.add(task, run, "passes", "number", result["passes"])
        report.add(task, run, "gap", "", result["gap"])
        report.add(task, run, "peak memory", "MB", result["peak_memory_bytes"] / 1e6)


def measure_passes(report: Report, task: str, file: Path) -> None:
    opened = open_rows(file)
    gigabytes = opened.path.stat().st_size / 1e9
    packed = pack_rows(read_svmlight(file, n_jobs=-1).X, threads=1)
    array = np.ones(1 << 27)
    on_disk, in_memory = passes(opened.store), passes(packed)
    for name in on_disk:
        contenders = {"file": on_disk[name], "memory": in_memory[name], "sum of an array": array.sum}
        times = take_turns(contenders, ROUNDS, wall_seconds)
        for where, sizes in (("file", gigabytes), ("memory", packed.nbytes / 1e9)):
            row = f"{task}, pass: {name}"
            report.add(row, f"unkernel, {where}", "time", "wall s", times[where])
            report.add(row, f"unkernel, {where}", "speed", "GB/s", sizes / times[where].best)
        plain_speed = array.nbytes / 1e9 / times["sum of an array"].best
        report.add(row, "plain reading of memory, one core", "speed", "GB/s", plain_speed)


def measure(report: Report, tasks: Sequence[str]) -> None:
    for task in tasks:
        gigabytes, memory = GIGABYTES[task]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "zipf.svm"
            write_large(file, gigabytes, FEATURES)
            measure_training(report, task, file, memory)
            measure_passes(report, task, file)


if __name__ == "__main__":
    main(measure, list(GIGABYTES), quick=["400 MB of text in 300 MB"])
