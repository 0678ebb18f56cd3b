"""Answering with prefix tries and groups of features, against the same engine without them, one thread.

Models are trained once by PolySVC on 0/1 rows (kernel (x'z + 1)^d) and kept in ``build/benchmarks``; of
degree 4, which it does not train, the model has the support vectors of degree 3: for speed alone. The trie
grows from the training rows and answers the test rows. ``unkernel.compile`` measures all layouts one after
the other, each the best of some runs; the last table repeats the best of each kind, interleaved, and pecco
if ``--pecco PROGRAM`` names a build of it (see engines.py).

    UNKERNEL_DATA=/where/the/data/is python benchmarks/trie.py [--pecco PROGRAM] [task ...]
    python benchmarks/trie.py --model NAME=model,rows.svm,trie-rows.svm ...        # a model of your own
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import unkernel
from unkernel import datasets
from unkernel.models import KernelModel

ROUNDS = 5
MEMORY = "280M"
CACHE = Path("build/benchmarks")
# data set, positive labels, and the C of each degree
DATA: dict[str, tuple[str, tuple[float, ...], dict[int, float]]] = {
    "bunsetsu": ("bunsetsu_kyoto", (1.0,), {1: 0.1, 2: 3e-3, 3: 1e-4}),
    "arc_eager": ("arc_eager_ewt", (3.0, 4.0), {1: 0.1, 2: 0.01, 3: 1e-3}),
}
TASKS = [f"{name}-d{degree}" for name in DATA for degree in (1, 2, 3, 4)]


@dataclass
class Task:
    """A model, rows to answer, and rows to grow a trie from."""

    name: str
    model: Any
    rows: Any
    source: Any
    labels: Any = None
    fast: dict[str, Any] = field(default_factory=dict)  # by the kind of layout
    times: dict[str, float] = field(default_factory=dict)


def load_task(name: str) -> Task:
    data, degree = name.rsplit("-d", 1)
    dataset, positive, costs = DATA[data]
    train, test = datasets.load(dataset), datasets.load(dataset, "test")
    width = max(train.X.shape[1], test.X.shape[1])
    for part in (train.X, test.X):
        part.resize(part.shape[0], width)
    trained = min(int(degree), 3)
    path = CACHE / f"{data}-d{trained}.uk"
    if not path.exists():
        print(f"training {path.stem}, once ...", flush=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        labels = np.where(np.isin(train.y, positive), 1, -1)
        clf = unkernel.PolySVC(degree=trained, C=costs[trained], gamma=1.0, tol=1e-2, n_jobs=-1)
        clf.fit(train.X, labels).save(path)
    model: Any = unkernel.load(path).to_model()
    if int(degree) > trained and isinstance(model, KernelModel):
        model = dataclasses.replace(model, kernel=dataclasses.replace(model.kernel, degree=int(degree)))
    return Task(name, model, test.X, train.X, np.where(np.isin(test.y, positive), 1, -1))


def own_task(words: str) -> Task:
    name, files = words.split("=", 1)
    model, rows, source = files.split(",")
    return Task(
        name, unkernel.read_model(model), unkernel.read_svmlight(rows).X, unkernel.read_svmlight(source).X
    )


def kind_of(candidate: Any) -> str:
    if candidate.trie_nodes:
        return "trie"
    return "groups" if candidate.grouped else "plain"


def try_layouts(task: Task) -> None:
    """All that compile tries, as it measured it."""
    began = time.process_time()
    sample = task.rows[np.linspace(0, task.rows.shape[0] - 1, 20_000).astype(int)]
    found = unkernel.compile(task.model, memory=MEMORY, sample=sample, n_jobs=1)
    compiled = time.process_time() - began
    task.fast[kind_of(found.chosen)] = found
    candidates = list(found.candidates)
    if task.name.endswith("-d1"):
        sizes: tuple[int, ...] = ()
    else:
        sizes = (1_000_000, 100_000, 10_000)
    for nodes in sizes:
        grown = unkernel.compile(
            task.model, memory="2G", sample=sample, trie=task.source, trie_nodes=nodes, n_jobs=1
        )
        candidates += [candidate for candidate in grown.candidates if candidate.trie_nodes]
        best = task.fast.get("trie")
        if best is None or grown.chosen.microseconds < best.chosen.microseconds:
            task.fast["trie"] = grown
    print(f"\n## {task.name}: {task.rows.shape[0]:,} rows; compile (auto) {compiled:.1f} CPU s")
    for candidate in candidates:
        if candidate.microseconds > 0:
            print(
                f"| {candidate.engine} | rare < {candidate.rare} | {candidate.grouped or '-'} grouped "
                f"| {candidate.trie_nodes or '-'} nodes | {candidate.nbytes / 1e6:.1f} MB "
                f"| {candidate.microseconds:.3f} µs |{' chosen' if candidate.chosen else ''}",
                flush=True,
            )


def measure(task: Task, pecco: str | None, folder: Path) -> None:
    """Interleaved rounds of the best of each kind, of decisions alone, and of pecco."""
    rows = task.rows
    for _ in range(ROUNDS):
        for kind, fast in task.fast.items():
            for name, decide in ((kind, False), (f"{kind}, decisions", True)):
                began = time.thread_time()
                fast.score_csr(rows, 1, until_decided=decide)
                spent = 1e6 * (time.thread_time() - began) / rows.shape[0]
                task.times[name] = min(spent, task.times.get(name, np.inf))
    if pecco and isinstance(task.model, KernelModel):
        measure_pecco(task, pecco, folder)


def measure_pecco(task: Task, program: str, folder: Path) -> None:
    unkernel.models.write_model(task.model, folder / "model", "svmlight")
    unkernel.write_svmlight(folder / "rows.svm", task.rows, np.ones(task.rows.shape[0]))
    for name, options in (("pecco", ()), ("pecco, decisions", ("-prune",))):
        command = [program, str(folder / "model"), str(folder / "rows.svm"), "-t", "1", "-R", "2", *options]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found = re.search(r"([0-9.]+) ns/row", printed)
        if found:
            task.times[name] = float(found[1]) / 1e3


def show(task: Task) -> None:
    for name, spent in sorted(task.times.items(), key=lambda item: item[1]):
        size = task.fast[name.split(",")[0]].nbytes / 1e6 if name.split(",")[0] in task.fast else 0
        print(f"| {task.name} | {name} | {spent:.3f} µs | {f'{size:.0f} MB' if size else ''} |")
    if task.labels is not None:
        fast = next(iter(task.fast.values()))
        answers = fast.predict(task.rows)
        print(f"| {task.name} | accuracy | {100 * np.mean(answers == task.labels):.2f} % |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", help=", ".join(TASKS))
    parser.add_argument("--pecco", help="a build of pecco's bench")
    parser.add_argument("--model", action="append", default=[], help="NAME=model,rows.svm,trie-rows.svm")
    arguments = parser.parse_args()
    tasks = arguments.tasks or ([] if arguments.model else TASKS)
    for make, names in ((load_task, tasks), (own_task, arguments.model)):
        for name in names:
            with tempfile.TemporaryDirectory() as folder:
                task = make(name)
                try_layouts(task)
                measure(task, arguments.pecco, Path(folder))
                show(task)


if __name__ == "__main__":
    main()
