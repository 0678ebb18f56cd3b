"""Answering: every engine and its rivals on the same kernel models and the same rows, one thread.

LIBSVM trains the models once (kernel (x'z + 1)^d); they are kept in `build/benchmarks`. Rows are read in
advance. The scores of all engines must equal the kernel sum to 1e-10, and all engines must give every row the
same label. Engines that sum over support vectors, and LIBSVM, score only 300 rows. The tasks "one row" call
`score_one` from Python, one row at a time; `predict` of scikit-learn's estimators, fitted on 5,000 rows, is
compared with `score_one` of the same estimators compiled. pecco is measured if its benchmark program has been
built (see peers.py); its times, like ours, include renumbering and sorting the features of each row. All of
its exact modes run: expansion, expansion with a split (`-r`), and expansion with a trie of the prefixes of
the training rows (`-t 2`).

    UNKERNEL_DATA=/where/the/data/is python benchmarks/engines.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import unkernel
from harness import Report, Times, main, take_turns, timed, wall_seconds
from harness.processes import LeftOutError, program, run_program
from unkernel import datasets

ROUNDS, QUICK_ROUNDS = 7, 3
ENGINES = ("auto", "expanded", "split", "bitsliced", "inverted")
SUMS = ("bitsliced", "inverted")  # over support vectors
FEW_ROWS = 300
SINGLE_ROWS = 2000
PECCO_MODES = (("-t", "1"), *(("-t", "1", "-r", share) for share in (".02", ".05", ".1", ".5")))
CACHE = Path("build/benchmarks")


@dataclass
class Task:
    """A kernel model and rows to score."""

    name: str
    model: Any
    rows: sparse.csr_matrix
    train: Any = None  # rows and labels, for what scikit-learn trains


# name -> data set, positive labels, rows to train on, least frequency of a feature, degree, C
TRAINED = {
    "a9a-10k-d2": ("a9a", (1.0,), 10_000, 0, 2, 0.01),
    "a9a-10k-d3": ("a9a", (1.0,), 10_000, 0, 3, 0.0005),
    "a9a-d2": ("a9a", (1.0,), None, 0, 2, 0.01),
    "a9a-d3": ("a9a", (1.0,), None, 0, 3, 0.0005),
    "arc_eager-d2": ("arc_eager_ewt", (3.0, 4.0), 40_000, 20, 2, 0.01),
    "arc_eager-d3": ("arc_eager_ewt", (3.0, 4.0), 40_000, 20, 3, 0.001),
}


def load_task(name: str) -> Task:
    if "=" in name:
        name, _, paths = name.partition("=")
        model, _, rows = paths.partition(",")
        return Task(name, unkernel.read_model(model), unkernel.read_svmlight(rows).X)
    dataset, positive, count, min_count, degree, C = TRAINED[name]
    train, test = datasets.load(dataset), datasets.load(dataset, "test")
    keep = np.asarray((train.X != 0).sum(axis=0)).ravel() >= min_count
    X, rows = (part.X[:, keep].tocsr() for part in (train, test))
    path = CACHE / f"{name}.libsvm"
    labels = np.where(np.isin(train.y, positive), 1.0, -1.0)
    if not path.exists():
        train_libsvm(path, X[:count], labels[:count], f"-q -t 1 -d {degree} -g 1 -r 1 -c {C} -m 2000")
    return Task(name, unkernel.read_model(path), rows, (X, labels))


def train_libsvm(path: Path, X: sparse.csr_matrix, y: np.ndarray, options: str) -> None:
    from libsvm.svmutil import svm_save_model, svm_train

    print(f"  training {path.stem} with LIBSVM, once ...", flush=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    svm_save_model(str(path), svm_train(y, X, options))


def compile_engines(report: Report, task: Task) -> dict[str, Any]:
    """Return a classifier for each engine that supports the model."""
    result = {}
    for engine in ENGINES:
        sample = task.rows if engine == "auto" else None
        try:
            fast, cpu, _ = timed(
                lambda engine=engine, sample=sample: unkernel.compile(task.model, engine, sample=sample)
            )
        except ValueError as error:
            report.leave_out(f"{task.name}, {engine}", error)
            continue
        chosen_engine = fast.chosen.engine if engine == "auto" else ""
        report.add(task.name, f"unkernel, {engine}", "compiling", "CPU s", cpu, note=chosen_engine)
        report.add(task.name, f"unkernel, {engine}", "tables", "MB", fast.nbytes / 1e6)
        result[engine] = fast
    return result


def check(task: Task, engines: dict[str, Any]) -> None:
    rows = task.rows[:FEW_ROWS]
    expected = task.model.scores(rows)
    for engine, fast in engines.items():
        error = np.abs(fast.score_csr(rows, 1) - expected).max() / max(np.abs(expected).max(), 1e-300)
        assert error < 1e-10, f"{task.name}, {engine}: off by {error:.1e}"
    auto_scores = engines["auto"].score_csr(task.rows, 1)
    for engine in ("expanded", "split"):
        if engine in engines:
            assert np.array_equal(engines[engine].score_csr(task.rows, 1) > 0, auto_scores > 0), engine


def measure_batches(report: Report, task: Task, engines: dict[str, Any]) -> None:
    """Measure the scores of a batch by all engines and LIBSVM, in turns."""
    first_rows = task.rows[:FEW_ROWS]
    works: dict[str, tuple[Callable[[], Any], int]] = {}
    for engine, fast in engines.items():
        rows = first_rows if engine in SUMS else task.rows
        works[f"unkernel, {engine}"] = (lambda fast=fast, rows=rows: fast.score_csr(rows, 1), rows.shape[0])
    if task.train is not None:
        from libsvm.svmutil import svm_load_model, svm_predict

        loaded = svm_load_model(str(CACHE / f"{task.name}.libsvm"))
        works["LIBSVM"] = (lambda: svm_predict([], first_rows, loaded, "-q"), first_rows.shape[0])
    rounds = QUICK_ROUNDS if report.quick else ROUNDS
    for name, times in take_turns({name: work for name, (work, _) in works.items()}, rounds).items():
        report.add(task.name, name, "scores", "CPU µs per row", times.scaled(1e6 / works[name][1]))


def measure_pecco(report: Report, task: Task, folder: Path) -> None:
    bench = program("pecco-bench")
    model, rows, events = (folder / name for name in ("model", "rows", "events"))
    unkernel.write_model(task.model, model, format="svmlight")
    unkernel.write_svmlight(rows, task.rows, np.ones(task.rows.shape[0]))
    modes = [*PECCO_MODES]
    if task.train is not None:
        unkernel.write_svmlight(events, *task.train)
        modes.append(("-t", "2", "-f", str(events)))
    for mode in modes:
        printed = run_program([bench, model, rows, *mode, "-R", "3"]).printed
        times = [float(nanoseconds) / 1e3 for nanoseconds in re.findall(r"([0-9.]+) ns/row", printed)]
        name = f"pecco {' '.join(Path(word).name for word in mode)}"
        report.add(task.name, name, "scores", "CPU µs per row", Times(times) if times else None)


def measure_threads_and_loading(report: Report, task: Task, fast: Any, folder: Path) -> None:
    path = folder / "model.uk"
    fast.save(path)
    rounds = QUICK_ROUNDS if report.quick else ROUNDS
    works = {
        "1 thread": lambda: fast.score_csr(task.rows, 1),
        "2 threads": lambda: fast.score_csr(task.rows, 2),
    }
    times = take_turns(works, rounds, wall_seconds)
    loading = take_turns({"": lambda: unkernel.load(path)}, rounds)[""]
    name = f"{task.name}, auto"
    for threads in ("1 thread", "2 threads"):
        per_row = times[threads].scaled(1e6 / task.rows.shape[0])
        report.add(name, "unkernel", f"scores, {threads}", "wall µs per row", per_row)
    report.add(name, "unkernel", "loading", "CPU ms", loading.scaled(1e3))
    report.add(name, "unkernel", "file", "MB", path.stat().st_size / 1e6)


def measure_single_rows(report: Report, task: Task, fast: Any) -> None:
    """Measure single rows from Python, the same rows as a batch, and scikit-learn's estimators."""
    rows = [task.rows[k].indices.astype(np.int32) for k in range(min(SINGLE_ROWS, task.rows.shape[0]))]
    lists = [row.tolist() for row in rows]
    batch = task.rows[: len(rows)]
    works: dict[str, tuple[Callable[[], Any], int]] = {
        "unkernel, score_one(list)": (lambda: [fast.score_one(row) for row in lists], len(rows)),
        "unkernel, score_one(array)": (lambda: [fast.score_one(row) for row in rows], len(rows)),
        "unkernel, the same rows as a batch": (lambda: fast.score_csr(batch, 1), len(rows)),
    }
    for name, estimator in fit_baselines(task).items() if task.train is not None else ():
        singles = [task.rows[k] for k in range(100)]
        ids, classifier = [row.indices.tolist() for row in singles], unkernel.compile(estimator)
        works[f"unkernel, {name} compiled, score_one"] = (
            lambda classifier=classifier, ids=ids: [classifier.score_one(row) for row in ids],
            len(ids),
        )
        works[f"{name}, predict"] = (
            lambda estimator=estimator, singles=singles: [estimator.predict(row) for row in singles],
            len(singles),
        )
    rounds = QUICK_ROUNDS if report.quick else ROUNDS
    for name, times in take_turns({name: work for name, (work, _) in works.items()}, rounds).items():
        per_row = times.scaled(1e6 / works[name][1])
        report.add(f"{task.name}, one row", name, "time", "CPU µs", per_row)


def fit_baselines(task: Task, count: int = 5000) -> dict[str, Any]:
    from sklearn.svm import SVC, LinearSVC

    X, y = (part[:count] for part in task.train)
    kernel = task.model.kernel
    return {
        "LinearSVC": LinearSVC(C=0.1, dual=True, max_iter=10_000).fit(X, y),
        "SVC": SVC(kernel="poly", degree=kernel.degree, gamma=1.0, coef0=1.0, C=0.001).fit(X, y),
    }


def load_tasks(report: Report, tasks: Sequence[str]) -> Iterator[Task]:
    """Yield the tasks whose data and trainers are installed."""
    for name in tasks:
        try:
            yield load_task(name)
        except (OSError, ImportError) as error:
            report.leave_out(name, error)


def measure(report: Report, tasks: Sequence[str]) -> None:
    for task in load_tasks(report, tasks):
        engines = compile_engines(report, task)
        check(task, engines)
        measure_batches(report, task, engines)
        with tempfile.TemporaryDirectory() as folder:
            try:
                measure_pecco(report, task, Path(folder))
            except LeftOutError as reason:
                report.leave_out(f"{task.name}, pecco", reason)
            measure_threads_and_loading(report, task, engines["auto"], Path(folder))
        measure_single_rows(report, task, engines["auto"])


if __name__ == "__main__":
    main(measure, list(TRAINED), quick=["a9a-10k-d2", "a9a-10k-d3"], added_form="NAME=MODEL,ROWS")
