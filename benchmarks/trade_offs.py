"""Trade-offs of time, memory and accuracy: points of curves.

- "nodes of the trie": the time of a row against the number of nodes of the prefix trie, beside the best
  engine without a trie. The trie grows from the training rows, and is measured on the test rows, as in
  figures 3, 5 and 6 of Yoshinaga & Kitsuregawa (2009).
- "threshold": the time of a row against the threshold below which conjunctions are dropped, and the share of
  labels that do not change.
- "C": the accuracy and the number of conjunctions with a weight, along a path of C, for the l1 squared-hinge
  SVM and the l1 log-linear model; beside them the l2 SVM, for a single C (Chang et al. 2010, table 7).

`python benchmarks/page.py --figures FOLDER` draws the curves.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/trade_offs.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

import unkernel
from engines import TRAINED, load_task
from harness import Report, main, take_turns, timed
from poly_tasks import TASKS, load
from unkernel import PolyLogisticRegression, PolySVC

THRESHOLDS = tuple(10.0**power for power in np.arange(-6, 0.1, 0.5))
PATH_OF_C = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
SIZED = ("a9a", "mnist38")
TIME = "CPU µs per row"


def measure_tries(report: Report, task: str, name: str) -> None:
    """Report the candidates with tries that `compile` measures."""
    data = load_task(name)
    fast = unkernel.compile(data.model, sample=data.rows, trie=data.train[0])
    measured = [candidate for candidate in fast.candidates if candidate.microseconds > 0]
    best = min(
        (candidate for candidate in measured if not candidate.trie_nodes),
        key=lambda candidate: candidate.microseconds,
    )
    report.add(task, "unkernel, without a trie", "scores", TIME, best.microseconds, note=best.engine)
    report.add(task, "unkernel, without a trie", "tables", "MB", best.nbytes / 1e6)
    for with_trie in sorted(
        (candidate for candidate in measured if candidate.trie_nodes),
        key=lambda candidate: candidate.trie_nodes,
    ):
        report.add(
            task, "unkernel, with a trie", "scores", TIME, with_trie.microseconds, at=with_trie.trie_nodes
        )
        report.add(
            task, "unkernel, with a trie", "tables", "MB", with_trie.nbytes / 1e6, at=with_trie.trie_nodes
        )


def measure_thresholds(report: Report, task: str, name: str) -> None:
    data = load_task(name)
    exact = unkernel.compile(data.model, sample=data.rows)
    labels = exact.predict(data.rows, n_jobs=1)
    pruned = {
        threshold: unkernel.compile(data.model, "pruned", threshold=threshold, sample=data.rows)
        for threshold in (THRESHOLDS[::4] if report.quick else THRESHOLDS)
    }
    works = {"": partial(exact.score_csr, data.rows, 1)}
    works |= {f"{threshold}": partial(fast.score_csr, data.rows, 1) for threshold, fast in pruned.items()}
    times = take_turns(works, 3 if report.quick else 5)
    per_row = 1e6 / data.rows.shape[0]
    report.add(task, "unkernel, exact", "scores", TIME, times[""].scaled(per_row), note=exact.engine)
    report.add(task, "unkernel, exact", "tables", "MB", exact.nbytes / 1e6)
    for threshold, fast in pruned.items():
        equal_labels = 100 * float(np.mean(fast.predict(data.rows, n_jobs=1) == labels))
        spent = times[f"{threshold}"].scaled(per_row)
        report.add(task, "unkernel, pruned", "scores", TIME, spent, at=threshold)
        report.add(task, "unkernel, pruned", "tables", "MB", fast.nbytes / 1e6, at=threshold)
        report.add(task, "unkernel, pruned", "labels that stay", "%", equal_labels, at=threshold)


def measure_sizes(report: Report, task: str, name: str) -> None:
    data = TASKS[name]
    X, y, X_test, y_test = load(data)
    shared = {"degree": 2, "gamma": data.gamma, "random_state": 0}
    learners = {
        "unkernel, l1 squared hinge": PolySVC(penalty="l1", loss="squared_hinge", warm_start=True, **shared),
        "unkernel, l1 log-linear": PolyLogisticRegression(penalty="l1", warm_start=True, **shared),
        "unkernel, l2 hinge": PolySVC(**shared),
    }
    for contender, learner in learners.items():
        for C in PATH_OF_C if "l1" in contender else (data.C,):
            spent = timed(lambda learner=learner, C=C: learner.set_params(C=C).fit(X, y)).cpu
            accuracy = 100 * float(np.mean(learner.predict(X_test) == y_test))
            report.add(task, contender, "conjunctions", "number", learner.to_model().n_conjunctions, at=C)
            report.add(task, contender, "accuracy", "%", accuracy, at=C)
            report.add(task, contender, "training", "CPU s", spent, at=C)


WORK: dict[str, tuple[Callable[[Report, str, str], None], str]] = {
    **{f"{name} against nodes of the trie": (measure_tries, name) for name in TRAINED},
    **{f"{name} against threshold": (measure_thresholds, name) for name in TRAINED},
    **{f"{name} against C": (measure_sizes, name) for name in SIZED},
}


def measure(report: Report, tasks: Sequence[str]) -> None:
    for task in tasks:
        work, name = WORK[task]
        try:
            work(report, task, name)
        except (OSError, ImportError) as error:
            report.leave_out(task, error)


if __name__ == "__main__":
    main(measure, list(WORK), quick=["a9a-10k-d3 against threshold"])
