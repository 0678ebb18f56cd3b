"""Reading svmlight files, against scikit-learn's load_svmlight_file.

Both read a whole training file into a CSR matrix and labels. Only unkernel reads compressed files: compare
its time with scikit-learn's time for the uncompressed file.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/data.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from sklearn.datasets import load_svmlight_file

from harness import Report, main, take_turns
from harness.state import find_version
from unkernel.data import datasets, read_svmlight
from unkernel.data.files import read_blocks

NAMES = ("a9a", "mnist38", "covtype68k", "arc_eager_ewt")
ROUNDS = 5


def decompress(source: Path, target: Path) -> None:
    with target.open("wb") as file:
        for block in read_blocks(source):
            file.write(block)


def check_equal(path: Path) -> None:
    ours = read_svmlight(path)
    X, y = load_svmlight_file(str(path))
    if (ours.X != X).nnz or (ours.y != y).any():
        raise SystemExit(f"{path.name}: the two readers disagree")


def measure_one(report: Report, name: str, folder: Path) -> None:
    source = datasets.path(name)
    uncompressed = folder / f"{name}.svm"
    decompress(source, uncompressed)
    check_equal(uncompressed)
    times = take_turns(
        {
            "unkernel": lambda: read_svmlight(uncompressed, n_jobs=1),
            "unkernel, compressed": lambda: read_svmlight(source, n_jobs=1),
            "scikit-learn": lambda: load_svmlight_file(str(uncompressed)),
        },
        ROUNDS,
    )
    task = f"{name}, {uncompressed.stat().st_size / 1e6:.1f} MB"
    for contender, seconds in times.items():
        version = find_version("scikit-learn") if contender == "scikit-learn" else ""
        report.add(task, contender, "time", "CPU s", seconds, version=version)


def measure(report: Report, tasks: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="unkernel-benchmark-") as folder:
        for name in tasks:
            try:
                measure_one(report, name, Path(folder))
            except FileNotFoundError as error:
                report.leave_out(name, error)


if __name__ == "__main__":
    main(measure, NAMES, quick=("a9a", "mnist38"))
