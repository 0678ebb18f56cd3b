"""Answering: every engine and its rivals on the same kernel models and the same rows, one thread.

Models are trained once by LIBSVM (kernel (x'z + 1)^d) and kept in ``build/benchmarks``; rows are read in
advance. Rounds are interleaved, and the best one counts. pecco, which no package index has, takes part if
``--pecco PROGRAM`` names a build of it: a program that is called as ``PROGRAM MODEL ROWS OPTION ...`` with a
model in SVMlight's format, renumbers and scores the rows, and prints ``<number> ns/row``. All its exact modes
run; the fastest is what we compare with.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/engines.py [--markdown] [--pecco PROGRAM] [task ...]
    python benchmarks/engines.py --model NAME=model,rows.svm ...        # a model of your own
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import unkernel
from unkernel import datasets

ROUNDS = 5
ENGINES = ("auto", "expanded", "split", "bitsliced", "inverted")
SLOW = ("bitsliced", "inverted", "kernel sum", "LIBSVM", "SVC")  # scored on fewer rows
FEW_ROWS = 300
# What pecco calls its exact ways: expansion, with a split at some share of the features, and tries that
# remember the weights of the training rows' prefixes.
PECCO_MODES = (("-t", "1"), *(("-t", "1", "-r", share) for share in (".02", ".05", ".1", ".5")))
CACHE = Path("build/benchmarks")


@dataclass
class Task:
    """A kernel model and rows to score."""

    name: str
    model: Any
    rows: sparse.csr_matrix
    train: Any = None  # rows and labels, for what scikit-learn trains
    times: dict[str, float] = field(default_factory=dict)  # contender -> µs/row, the best so far
    notes: dict[str, str] = field(default_factory=dict)

    def saw(self, contender: str, microseconds: float) -> None:
        self.times[contender] = min(microseconds, self.times.get(contender, np.inf))


# name -> data set, positive labels, rows to train on, least frequency of a feature, degree, C
TRAINED = {
    "a9a-d2": ("a9a", (1.0,), None, 0, 2, 0.01),
    "a9a-d3": ("a9a", (1.0,), None, 0, 3, 0.0005),
    "arc_eager-d2": ("arc_eager_ewt", (3.0, 4.0), 40_000, 20, 2, 0.01),
    "arc_eager-d3": ("arc_eager_ewt", (3.0, 4.0), 40_000, 20, 3, 0.001),
}


def load_task(name: str) -> Task:
    dataset, positive, count, least, degree, C = TRAINED[name]
    train, test = datasets.load(dataset), datasets.load(dataset, "test")
    keep = np.asarray((train.X != 0).sum(axis=0)).ravel() >= least
    X, rows = (part.X[:, keep].tocsr() for part in (train, test))
    path = CACHE / f"{name}.libsvm"
    labels = np.where(np.isin(train.y, positive), 1.0, -1.0)
    if not path.exists():
        train_libsvm(path, X[:count], labels[:count], f"-q -t 1 -d {degree} -g 1 -r 1 -c {C} -m 2000")
    return Task(name, unkernel.read_model(path), rows, (X, labels))


def train_libsvm(path: Path, X: sparse.csr_matrix, y: np.ndarray, options: str) -> None:
    from libsvm.svmutil import svm_save_model, svm_train

    print(f"training {path.stem} with LIBSVM, once ...", flush=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    svm_save_model(str(path), svm_train(y, X, options))


def own_task(words: str) -> Task:
    name, _, paths = words.partition("=")
    model, _, rows = paths.partition(",")
    return Task(name, unkernel.read_model(model), unkernel.read_svmlight(rows).X)


def compiled(task: Task) -> dict[str, Any]:
    """A classifier for each engine that there is for the model."""
    found = {}
    for engine in ENGINES:
        begin, spent = time.perf_counter(), time.process_time()
        try:
            fast = unkernel.compile(task.model, engine, sample=task.rows if engine == "auto" else None)
        except ValueError as error:
            print(f"  {engine}: {error}")
            continue
        task.notes[engine] = (
            f"{fast.nbytes / 1e6:.1f} MB; compiled in {time.perf_counter() - begin:.2f} s "
            f"({time.process_time() - spent:.2f} s CPU)"
        )
        if engine == "auto":
            chosen = fast.chosen
            task.notes[engine] += f"; {chosen.engine}, rare < {chosen.rare}, {chosen.fused} fused"
        found[engine] = fast
    return found


def cpu_seconds(work: Any) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def measure_ours(task: Task, engines: dict[str, Any]) -> None:
    for engine, fast in engines.items():
        rows = task.rows[:FEW_ROWS] if engine in SLOW else task.rows
        spent = cpu_seconds(lambda fast=fast, rows=rows: fast.score_csr(rows, 1))
        task.saw(engine, 1e6 * spent / rows.shape[0])


def measure_two_threads(task: Task, fast: Any) -> None:
    for threads in (1, 2):
        begin = time.perf_counter()
        fast.score_csr(task.rows, threads)
        task.saw(
            f"auto, {threads} thread{'s' * (threads > 1)}, wall",
            1e6 * (time.perf_counter() - begin) / task.rows.shape[0],
        )


def measure_one_row(task: Task, fast: Any, count: int = 2000) -> None:
    """From Python, row by row: a list of ids, and an array."""
    rows = [task.rows[k].indices.astype(np.int32) for k in range(min(count, task.rows.shape[0]))]
    for kind, ready in (("list", [row.tolist() for row in rows]), ("int32 array", rows)):
        score = fast.score_one
        spent = cpu_seconds(lambda score=score, ready=ready: [score(row) for row in ready])
        task.saw(f"score_one, {kind}", 1e6 * spent / len(ready))
    native = sparse.vstack([task.rows[k] for k in range(len(rows))]).tocsr()
    task.saw("score_one's rows as a batch", 1e6 * cpu_seconds(lambda: fast.score_csr(native, 1)) / len(rows))


def measure_pecco(task: Task, program: str, folder: Path) -> None:
    model, rows = folder / f"{task.name}.svmlight", folder / f"{task.name}.rows"
    if not model.exists():
        unkernel.write_model(task.model, model, format="svmlight")
        unkernel.write_svmlight(rows, task.rows, np.ones(task.rows.shape[0]))
    modes = [*PECCO_MODES]
    if task.train is not None:
        events = folder / f"{task.name}.events"
        if not events.exists():
            unkernel.write_svmlight(events, *task.train)
        modes.insert(1, ("-t", "2", "-f", str(events)))  # a trie of the training rows' prefixes
    for mode in modes:
        done = subprocess.run(
            [program, model, rows, *mode, "-R", "3"], capture_output=True, text=True, check=False
        )
        found = re.search(r"([0-9.]+) ns/row", done.stdout + done.stderr)
        if found:
            task.saw(f"pecco {' '.join(Path(word).name for word in mode)}", float(found[1]) / 1e3)


def measure_libsvm(task: Task) -> None:
    try:
        from libsvm.svmutil import svm_load_model, svm_predict
    except ImportError:
        return
    path = CACHE / f"{task.name}.libsvm"
    if not path.exists():
        return
    loaded = svm_load_model(str(path))
    few = task.rows[:FEW_ROWS]
    task.saw("LIBSVM", 1e6 * cpu_seconds(lambda: svm_predict([], few, loaded, "-q")) / few.shape[0])


def measure_scikit_learn(task: Task, count: int = 5000, calls: int = 200) -> None:
    """One row at a time: a linear SVM and a polynomial one of few rows, as they are and compiled."""
    from sklearn.svm import SVC, LinearSVC

    if task.train is None:
        return
    X, y = (part[:count] for part in task.train)
    kernel = task.model.kernel
    for estimator in (
        LinearSVC(C=0.1, dual=True, max_iter=10_000),
        SVC(kernel="poly", degree=kernel.degree, gamma=1.0, coef0=1.0, C=0.001),
    ):
        name = type(estimator).__name__
        estimator.fit(X, y)
        singles = [task.rows[k] for k in range(calls)]
        spent = cpu_seconds(
            lambda estimator=estimator, singles=singles: [estimator.predict(row) for row in singles]
        )
        task.saw(f"scikit-learn {name}, one row", 1e6 * spent / calls)
        fast = unkernel.compile(estimator)
        ids = [row.indices.tolist() for row in singles]
        spent = min(
            cpu_seconds(lambda fast=fast, ids=ids: [fast.score_one(row) for row in ids])
            for _ in range(ROUNDS)
        )
        task.saw(f"the same, compiled, score_one ({name})", 1e6 * spent / calls)


def check(task: Task, engines: dict[str, Any]) -> None:
    """Speed counts only if the answers are right: the plain kernel sum says so."""
    few = task.rows[:FEW_ROWS]
    right = task.model.scores(few)
    for engine, fast in engines.items():
        error = np.abs(fast.score_csr(few, 1) - right).max() / max(np.abs(right).max(), 1e-300)
        assert error < 1e-10, f"{task.name}, {engine}: off by {error:.1e}"
    one = engines["auto"].score_csr(task.rows, 1)
    for engine in ("expanded", "split"):
        if engine in engines:
            assert np.array_equal(engines[engine].score_csr(task.rows, 1) > 0, one > 0), engine


def run(task: Task, arguments: argparse.Namespace) -> None:
    print(
        f"== {task.name}: {task.model.n_support:,} support vectors, {task.rows.shape[0]:,} rows", flush=True
    )
    engines = compiled(task)
    check(task, engines)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            measure_ours(task, engines)
            measure_two_threads(task, engines["auto"])
            measure_one_row(task, engines["auto"])
            if arguments.pecco:
                measure_pecco(task, arguments.pecco, Path(folder))
        measure_libsvm(task)
        measure_scikit_learn(task)
        measure_loading(task, engines["auto"], Path(folder))
    show(task, arguments.markdown)


def measure_loading(task: Task, fast: Any, folder: Path) -> None:
    path = folder / "model.uk"
    fast.save(path)
    best = np.inf
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        unkernel.load(path)
        best = min(best, time.perf_counter() - begin)
    task.notes["auto"] += f"; loads in {1e3 * best:.1f} ms from a file of {path.stat().st_size / 1e6:.1f} MB"


def show(task: Task, markdown: bool) -> None:
    peers = [spent for name, spent in task.times.items() if name.startswith("pecco")]
    for name, spent in task.times.items():
        ratio = (
            f"{min(peers) / spent:.2f}x the speed of pecco's fastest" if peers and "pecco" not in name else ""
        )
        cells = [task.name, name, f"{spent:.3f}", "; ".join(filter(None, [ratio, task.notes.get(name, "")]))]
        print(
            "| " + " | ".join(cells) + " |" if markdown else f"  {name:34} {spent:10.3f} µs/row  {cells[3]}"
        )
    print(flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", metavar="task", help=f"of {', '.join(TRAINED)}")
    parser.add_argument("--model", action="append", default=[], metavar="NAME=MODEL,ROWS")
    parser.add_argument("--pecco", metavar="PROGRAM")
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    names = arguments.tasks or ([] if arguments.model else list(TRAINED))
    for name in names:
        try:
            task = load_task(name)
        except (OSError, ImportError) as error:
            print(f"{name}: left out ({error})")
            continue
        run(task, arguments)
    for words in arguments.model:
        run(own_task(words), arguments)


if __name__ == "__main__":
    main()
