"""How fast svmlight files are read, against scikit-learn's load_svmlight_file.

Both are asked for the same: the whole training file as a CSR matrix and labels. Times are
processor seconds of one thread, the best of five, the contestants taking turns. The ``.xz``
column is ours reading the compressed file, against scikit-learn reading the plain one.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/data.py [name ...]
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from sklearn.datasets import load_svmlight_file

from unkernel.data import datasets, read_svmlight
from unkernel.data.files import read_blocks

NAMES = ("a9a", "mnist38", "covtype68k", "arc_eager_ewt")
REPETITIONS = 5


def processor_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def best_of_turns(contestants: dict[str, Callable[[], object]]) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(REPETITIONS):
        for name, work in contestants.items():
            times[name].append(processor_seconds(work))
    return {name: min(values) for name, values in times.items()}


def decompress(source: Path, target: Path) -> None:
    with target.open("wb") as file:
        for block in read_blocks(source):
            file.write(block)


def check_equal(plain: Path) -> None:
    ours = read_svmlight(plain)
    X, y = load_svmlight_file(str(plain))
    if (ours.X != X).nnz or (ours.y != y).any():
        raise SystemExit(f"{plain.name}: the two readers disagree")


def measure(name: str, folder: Path) -> None:
    source = datasets.path(name)
    plain = folder / f"{name}.svm"
    decompress(source, plain)
    check_equal(plain)
    seconds = best_of_turns(
        {
            "scikit-learn": lambda: load_svmlight_file(str(plain)),
            "plain": lambda: read_svmlight(plain, n_jobs=1),
            "compressed": lambda: read_svmlight(source, n_jobs=1),
        }
    )
    peer, ours, compressed = seconds.values()
    print(
        f"{name:<16}{plain.stat().st_size / 1e6:>8.1f}{peer:>14.3f}{ours:>10.4f}{peer / ours:>8.1f}"
        f"{compressed:>10.4f}{peer / compressed:>8.1f}",
        flush=True,
    )


def main(names: list[str]) -> None:
    print(f"{'data':<16}{'MB':>8}{'scikit-learn s':>14}{'ours s':>10}{'ratio':>8}{'.xz s':>10}{'ratio':>8}")
    folder = Path(tempfile.mkdtemp(prefix="unkernel-benchmark-"))
    try:
        for name in names:
            try:
                measure(name, folder)
            except FileNotFoundError as error:
                print(f"{name:<16}skipped: {error}")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(sys.argv[1:] or list(NAMES))
