"""What time, memory and accuracy cost each other: tables, and a plot of each in ``build/benchmarks``.

``tries``       µs a row against nodes of the prefix trie, beside the best engine without one; the trie is
                grown from the training rows and measured on the test rows, as in figures 3, 5 and 6 of
                Yoshinaga & Kitsuregawa
``thresholds``  µs a row against the threshold below which conjunctions are dropped, and the share of labels
                that stay
``sizes``       accuracy against conjunctions that have a weight, along a path of C: the l1 squared-hinge SVM
                and the l1 log-linear model, beside the l2 SVM, which has one size (Chang et al., table 7)

    UNKERNEL_DATA=/where/the/data/is python benchmarks/trade_offs.py [section ...] [--task NAME ...]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import unkernel
from _plots import Axes, Curve, draw
from engines import TRAINED, Task, load_task
from poly_tasks import TASKS, load
from unkernel import PolyLogisticRegression, PolySVC, datasets

FOLDER = Path("build/benchmarks")
THRESHOLDS = tuple(10.0**power for power in np.arange(-6, 0.1, 0.5))
PATH_OF_C = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
SIZED = ("a9a", "mnist38")
ROUNDS = 5
TIME = "µs a row, one thread"


def microseconds(fast: Any, rows: Any) -> float:
    """The best of some rounds, CPU time."""
    spent = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        fast.score_csr(rows, 1)
        spent.append(time.process_time() - begin)
    return 1e6 * min(spent) / rows.shape[0]


def tries(task: Task) -> None:
    fast = unkernel.compile(task.model, sample=task.rows, trie=task.train[0])
    tried = [candidate for candidate in fast.candidates if candidate.microseconds > 0]
    with_tries = sorted((c for c in tried if c.trie_nodes), key=lambda candidate: candidate.trie_nodes)
    best = min((c for c in tried if not c.trie_nodes), key=lambda candidate: candidate.microseconds)
    curve, plain = Curve("with a trie"), Curve(f"the best without: {best.engine}, {best.grouped} grouped")
    print(f"{task.name}: without a trie {best.microseconds:.3f} µs, {best.nbytes / 1e6:.1f} MB")
    for candidate in with_tries:
        print(
            f"  {candidate.trie_nodes:10,} nodes {candidate.microseconds:8.3f} µs "
            f"{candidate.nbytes / 1e6:8.1f} MB  {best.microseconds / candidate.microseconds:.2f}x the speed"
        )
        curve.add(candidate.trie_nodes, candidate.microseconds)
        plain.add(candidate.trie_nodes, best.microseconds)
    axes = Axes("nodes of the trie", TIME)
    draw(
        FOLDER / f"{task.name}-tries.svg", f"{task.name}: time against the trie's size", axes, [curve, plain]
    )


def thresholds(task: Task) -> None:
    exact = unkernel.compile(task.model, sample=task.rows)
    labels = exact.predict(task.rows, n_jobs=1)
    base = microseconds(exact, task.rows)
    print(f"{task.name}: exact {base:.3f} µs, {exact.nbytes / 1e6:.1f} MB")
    pruned, plain = Curve("pruned"), Curve(f"exact: {exact.engine}")
    for threshold in THRESHOLDS:
        fast = unkernel.compile(task.model, "pruned", threshold=threshold, sample=task.rows)
        spent = microseconds(fast, task.rows)
        same = 100 * float(np.mean(fast.predict(task.rows, n_jobs=1) == labels))
        print(
            f"  {threshold:8.1e} {spent:8.3f} µs {fast.nbytes / 1e6:8.1f} MB {same:7.2f} % of the labels stay"
        )
        pruned.add(threshold, spent, f"{same:.1f} %")
        plain.add(threshold, base)
    axes = Axes("threshold (labels that stay in %)", TIME)
    title = f"{task.name}: time against the threshold"
    draw(FOLDER / f"{task.name}-thresholds.svg", title, axes, [pruned, plain])


def sizes(name: str) -> None:
    task = TASKS[name]
    X, y, X_test, y_test = load(task)
    shared = {"degree": 2, "gamma": task.gamma, "random_state": 0}
    learners = {
        "l1 squared hinge": PolySVC(penalty="l1", loss="squared_hinge", warm_start=True, **shared),
        "l1 log-linear": PolyLogisticRegression(penalty="l1", warm_start=True, **shared),
        "l2 hinge": PolySVC(**shared),
    }
    curves = []
    for label, learner in learners.items():
        curves.append(Curve(label))
        for C in PATH_OF_C if "l1" in label else (task.C,):
            begin = time.process_time()
            learner.set_params(C=C).fit(X, y)
            spent = time.process_time() - begin
            count = learner.to_model().n_conjunctions
            right = 100 * float(np.mean(learner.predict(X_test) == y_test))
            print(f"{name}, {label}, C = {C:g}: {count:,} conjunctions, {right:.2f} %, {spent:.2f} CPU s")
            curves[-1].add(count, right, f"C = {C:g}")
    axes = Axes("conjunctions that have a weight", "accuracy on the test rows, %", y_scale="linear")
    draw(FOLDER / f"{name}-sizes.svg", f"{name}: accuracy against the model's size", axes, curves)


def on_engines(work: Any, names: list[str]) -> None:
    for name in names:
        try:
            task = load_task(name)
        except (OSError, ImportError) as error:
            print(f"{name}: left out ({error})")
            continue
        work(task)


def on_training_sets(names: list[str]) -> None:
    for name in names:
        try:
            datasets.path(TASKS[name].dataset)
        except FileNotFoundError as error:
            print(f"{name}: left out ({error})")
            continue
        sizes(name)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sections = ("tries", "thresholds", "sizes")
    parser.add_argument("sections", nargs="*", metavar="section", help=f"of {', '.join(sections)}")
    known = sorted({*TRAINED, *SIZED})
    parser.add_argument("--task", action="append", choices=known, help="default: all that a section has")
    arguments = parser.parse_args()
    if unknown := set(arguments.sections) - set(sections):
        parser.error(f"no such section: {', '.join(sorted(unknown))}")
    for section in arguments.sections or sections:
        has = SIZED if section == "sizes" else tuple(TRAINED)
        names = [name for name in has if arguments.task is None or name in arguments.task]
        if section == "sizes":
            on_training_sets(names)
        else:
            on_engines({"tries": tries, "thresholds": thresholds}[section], names)


if __name__ == "__main__":
    main()
