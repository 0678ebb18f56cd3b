"""Dense rows: kernels of support vectors, and single rows, against scikit-learn.

    python benchmarks/dense.py [--quick] [--save] [TASK ...]

The models are RBF machines of 2 to 100 classes. scikit-learn's SVC(C=10, gamma=0.1) trains them on 9,000
generated rows of 16 numbers (make_classification, seed 0), most of which become support vectors. Both sides
score the same rows: 200 rows in an array, or one row at a time, for which ours uses score_one(ids, values).
The scores of both must be equal within 1e-9. "wide" has 2 classes, and rows of 784 numbers.

The task "one row" predicts the class of a row of 20 numbers. scikit-learn's SVC, a fitted PolySVC and its
compiled form get an array of one row (`predict`); the compiled form also gets the row alone (`predict_one`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.svm import SVC

import unkernel
from harness import Report, main, take_turns
from harness.state import find_version
from unkernel import PolySVC

ROWS = 200
SINGLE = 20
CLASSES = {"2 classes": 2, "5 classes": 5, "26 classes": 26, "100 classes": 100}
TASKS = [*CLASSES, "wide", "one row"]
QUICK = ["26 classes", "one row"]


def rbf_machine(classes: int, *, vectors: int = 9_000, columns: int = 16) -> tuple[SVC, np.ndarray]:
    """Return a machine trained by scikit-learn, and rows to score."""
    X, y = make_classification(
        14_000,
        columns,
        n_informative=12,
        n_redundant=2,
        n_classes=classes,
        n_clusters_per_class=2 if classes < 9 else 1,
        flip_y=0.3 if classes == 2 else 0.01,
        random_state=0,
    )
    return SVC(C=10, gamma=0.1).fit(X[:vectors], y[:vectors]), X[-ROWS:]


def measure_machine(report: Report, task: str, svc: SVC, rows: np.ndarray) -> None:
    fast = unkernel.compile(svc, measure=False)
    np.testing.assert_allclose(fast.decision_function(rows), svc.decision_function(rows), atol=1e-9)
    ids = np.arange(rows.shape[1])
    times = take_turns(
        {
            "batch": lambda: fast.decision_function(rows),
            "single": lambda: [fast.score_one(ids, row) for row in rows[:SINGLE]],
            "peer": lambda: svc.decision_function(rows),
            "single of peer": lambda: [svc.decision_function(row[None]) for row in rows[:SINGLE]],
        },
        3 if report.quick else 9,
    )
    note = f"{len(svc.support_vectors_):,} support vectors"
    for contender, batch, single in (("unkernel", "batch", "single"), ("SVC", "peer", "single of peer")):
        version = find_version("scikit-learn") if contender == "SVC" else ""
        for figure, name, count in (("of a batch", batch, ROWS), ("alone", single, SINGLE)):
            per_row = times[name].scaled(1e6 / count)
            report.add(task, contender, figure, "CPU µs per row", per_row, version=version, note=note)


def one_row() -> dict[str, Callable[[], Any]]:
    rng = np.random.default_rng(0)
    X = (rng.random((400, 20)) < 0.3).astype(float)
    y = (X[:, 0] * X[:, 1] + X[:, 2] > 0.5).astype(int)
    svc, poly = SVC(kernel="poly", degree=2, coef0=1.0).fit(X, y), PolySVC(degree=2).fit(X, y)
    fast = unkernel.compile(poly, measure=False)
    table, row = X[:1].copy(), X[0].copy()
    present, ids = np.flatnonzero(row).tolist(), np.arange(20)
    return {
        "unkernel, PolySVC": lambda: poly.predict(table),
        "unkernel, compiled": lambda: fast.predict(table),
        "unkernel, predict_one(ids)": lambda: fast.predict_one(present),
        "unkernel, predict_one(ids, values)": lambda: fast.predict_one(ids, row),
        "SVC": lambda: svc.predict(table),
    }


def measure_one_row(report: Report, task: str) -> None:
    calls = 500

    def repeat_calls(ask: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: [ask() for _ in range(calls)]

    contenders = {name: repeat_calls(ask) for name, ask in one_row().items()}
    for name, times in take_turns(contenders, 3 if report.quick else 9).items():
        version = find_version("scikit-learn") if name == "SVC" else ""
        report.add(task, name, "predict", "CPU µs", times.scaled(1e6 / calls), version=version)


def measure(report: Report, tasks: Sequence[str]) -> None:
    for task in tasks:
        if task == "one row":
            measure_one_row(report, task)
        elif task == "wide":
            measure_machine(report, task, *rbf_machine(2, vectors=1_500, columns=784))
        else:
            measure_machine(report, task, *rbf_machine(CLASSES[task]))


if __name__ == "__main__":
    main(measure, TASKS, quick=QUICK)
