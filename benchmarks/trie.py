"""Answering with prefix tries and groups of features, against the same engine without them.

PolySVC trains the models once on 0/1 rows (kernel (x'z + 1)^d); they are kept in `build/benchmarks`. PolySVC
does not train degree 4: these models have the support vectors of degree 3, and only their speed is of
interest. The trie grows from the training rows, and is measured on the test rows. `unkernel.compile` measures
all layouts one after another. For the tables, the best layouts of all kinds are measured again, in turns:
once for scores, and once for decisions, which stop as soon as the class is certain. pecco is measured if its
benchmark program has been built (see engines.py).

    UNKERNEL_DATA=/where/the/data/is python benchmarks/trie.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

import dataclasses
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import unkernel
from harness import Report, Times, main, take_turns
from harness.processes import LeftOutError, program
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


def describe_layout(candidate: Any) -> str:
    if candidate.trie_nodes:
        return "trie"
    return "groups" if candidate.grouped else "plain"


def try_layouts(report: Report, task: Task) -> None:
    """Keep the fastest layout of each kind among those that `compile` measures."""
    began = time.process_time()
    sample = task.rows[np.linspace(0, task.rows.shape[0] - 1, 20_000).astype(int)]
    classifier = unkernel.compile(task.model, memory=MEMORY, sample=sample, n_jobs=1)
    report.add(task.name, "unkernel, auto", "compiling", "CPU s", time.process_time() - began)
    task.fast[describe_layout(classifier.chosen)] = classifier
    for nodes in () if task.name.endswith("-d1") else (1_000_000, 100_000, 10_000):
        grown = unkernel.compile(
            task.model, memory="2G", sample=sample, trie=task.source, trie_nodes=nodes, n_jobs=1
        )
        best = task.fast.get("trie")
        if best is None or grown.chosen.microseconds < best.chosen.microseconds:
            task.fast["trie"] = grown


def measure_ours(report: Report, task: Task) -> None:
    per_row = 1e6 / task.rows.shape[0]
    for figure, decide in (("scores", False), ("decisions", True)):
        works = {
            kind: lambda fast=fast, decide=decide: fast.score_csr(task.rows, 1, until_decided=decide)
            for kind, fast in task.fast.items()
        }
        for kind, times in take_turns(works, ROUNDS).items():
            report.add(task.name, f"unkernel, {kind}", figure, "µs/row", times.scaled(per_row))
    for kind, fast in task.fast.items():
        report.add(task.name, f"unkernel, {kind}", "tables", "MB", fast.nbytes / 1e6)
        accuracy = 100 * float(np.mean(fast.predict(task.rows) == task.labels))
        report.add(task.name, f"unkernel, {kind}", "accuracy", "%", accuracy)


def measure_pecco(report: Report, task: Task, folder: Path) -> None:
    bench = program("pecco-bench")
    unkernel.models.write_model(task.model, folder / "model", format="svmlight")
    unkernel.write_svmlight(folder / "rows.svm", task.rows, np.ones(task.rows.shape[0]))
    for figure, options in (("scores", ()), ("decisions", ("-prune",))):
        command = [bench, str(folder / "model"), str(folder / "rows.svm"), "-t", "1", "-R", "2", *options]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        times = [float(nanoseconds) / 1e3 for nanoseconds in re.findall(r"([0-9.]+) ns/row", printed)]
        report.add(task.name, "pecco", figure, "µs/row", Times(times) if times else None)


def measure(report: Report, tasks: Sequence[str]) -> None:
    for name in tasks:
        try:
            task = load_task(name)
        except FileNotFoundError as error:
            report.leave_out(name, error)
            continue
        try_layouts(report, task)
        measure_ours(report, task)
        with tempfile.TemporaryDirectory() as folder:
            try:
                if isinstance(task.model, KernelModel):
                    measure_pecco(report, task, Path(folder))
            except LeftOutError as reason:
                report.leave_out(f"{name}, pecco", reason)


if __name__ == "__main__":
    main(measure, TASKS, quick=["arc_eager-d2"])
