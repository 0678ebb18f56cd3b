"""Training on a file larger than the memory it is given: time, memory, and the speed of a pass.

A file of Zipf rows is written (zipf_rows.py), packed once, and trained on by the command line with --memory;
its peak memory is what the system says of that process. Passes over the packed file are then timed beside the
same passes over the same rows in memory, and beside what plain reading of memory reaches.

    python benchmarks/out_of_core.py [--gigabytes 4] [--memory 1G] [--folder FOLDER] [--jobs 2]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from unkernel import read_svmlight
from unkernel._core import RowStore, pack_rows
from unkernel.data.rows.row_files import open_rows
from zipf_rows import FEATURES, write_large


def best_of(work: Callable[[], Any], times: int = 5) -> tuple[float, float]:
    """Least wall and CPU seconds."""
    spent = []
    for _ in range(times):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        spent.append((time.perf_counter() - wall, time.process_time() - cpu))
    return min(wall for wall, _ in spent), min(cpu for _, cpu in spent)


def passes(store: RowStore, jobs: int) -> dict[str, tuple[float, float]]:
    rng = np.random.default_rng(0)
    weights, coefficients = rng.standard_normal(store.features), rng.standard_normal(store.rows)
    return {
        "scores": best_of(lambda: store.scores(weights, 0.0, jobs)),
        "transposed": best_of(lambda: store.transposed(coefficients, 0.0, jobs)),
    }


def read_speed() -> float:
    """Bytes per second when one core sums an array that is larger than any cache."""
    array = np.ones(1 << 27)
    wall, _ = best_of(array.sum)
    return array.nbytes / wall


def trained(file: Path, memory: str, jobs: int) -> dict[str, Any]:
    places = [str(file), "-o", str(file.with_suffix(".uk"))]
    program = [sys.executable, "-m", "unkernel.cli", "train", "linear", *places]
    options = ["--out-of-core", "--memory", memory, "--C", "0.003", "--jobs", str(jobs)]
    began = time.perf_counter()
    done = subprocess.run([*program, *options, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout) | {"wall": time.perf_counter() - began}


def in_memory(file: Path) -> RowStore:
    X = read_svmlight(file, n_jobs=-1).X
    return pack_rows(X, threads=1)


def measure(folder: Path, gigabytes: float, memory: str, jobs: int) -> None:
    file = folder / "zipf.svm"
    if not file.exists():
        print(f"writing {gigabytes:g} GB of text ...", flush=True)
        write_large(file, gigabytes, FEATURES)
    for run in ("first run, packing", "second run"):
        result = trained(file, memory, jobs)
        print(
            f"{run}: {result['rows']:,} rows, {file.stat().st_size / 1e9:.2f} GB of text; "
            f"{result['wall']:.1f} s, {result['passes']} passes, gap {result['gap']:.1e}, "
            f"peak memory {result['peak_memory_bytes'] / 1e6:.0f} MB",
            flush=True,
        )
    opened = open_rows(file)
    size = opened.path.stat().st_size
    print(f"packed copy: {size / 1e9:.2f} GB, {opened.store.entries:,} entries")
    on_disk = passes(opened.store, jobs)
    held = passes(in_memory(file), jobs)
    print("| pass | file, wall s | memory, wall s | speed of the file | file, GB/s |")
    print("|---|---|---|---|---|")
    for name, (wall, _) in on_disk.items():
        ratio = held[name][0] / wall
        print(f"| {name} | {wall:.2f} | {held[name][0]:.2f} | {ratio:.2f} | {size / wall / 1e9:.2f} |")
    print(f"plain reading of memory, one core: {read_speed() / 1e9:.1f} GB/s")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gigabytes", type=float, default=4.0)
    parser.add_argument("--memory", default="1G")
    parser.add_argument(
        "--folder", type=Path, help="where the files are made, and kept; else they are deleted"
    )
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    if given.folder is not None:
        measure(given.folder, given.gigabytes, given.memory, given.jobs)
        return
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), given.gigabytes, given.memory, given.jobs)


if __name__ == "__main__":
    main()
