"""Support vector regression of degree 2: CPU time to the same objective, beside LIBLINEAR.

LIBLINEAR (scikit-learn's `LinearSVR`, dual coordinate descent) gets the expanded matrix; the time of the
expansion is given separately. Both run at a ladder of tolerances; the time to a gap of g is that of the
quickest run whose objective is within a factor 1 + g of the optimum, which a long run of ours certifies from
below. The rows are covtype68k without its first feature, the elevation, which is the target (times
10).

    UNKERNEL_DATA=/where/the/data/is python benchmarks/svr.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import LinearSVR

from harness import Report, main
from unkernel import PolyRegressor, datasets

EPSILON = 0.1
GAPS = (1e-2, 1e-3, 1e-4)
LADDER = (0.1, 1e-2, 1e-3, 1e-4, 1e-5)
EXPANSION, TRAINING = "expansion", "to {:g}"


@dataclass(frozen=True)
class RegressionTask:
    """A loss and its weight."""

    loss: str
    C: float


TASKS = {
    "elevation-svr": RegressionTask("epsilon_insensitive", 0.1),
    "elevation-svr-close": RegressionTask("epsilon_insensitive", 1.0),
    "elevation-squared-svr": RegressionTask("squared_epsilon_insensitive", 0.1),
}


def objective(task: RegressionTask, w: np.ndarray, residuals: np.ndarray) -> float:
    excess = np.maximum(np.abs(residuals) - EPSILON, 0.0)
    losses = excess**2 if task.loss.startswith("squared") else excess
    return float(0.5 * w @ w + task.C * losses.sum())


def ours(task: RegressionTask, X: Any, y: np.ndarray, tol: float) -> tuple[float, PolyRegressor]:
    learner = PolyRegressor(
        2,
        loss=task.loss,
        epsilon=EPSILON,
        C=task.C,
        feature_map="plain",
        tol=tol,
        max_iter=10**6,
        random_state=0,
    )
    start = time.process_time()
    learner.fit(X, y)
    return time.process_time() - start, learner


def theirs(task: RegressionTask, mapped: Any, y: np.ndarray, tol: float) -> tuple[float, float]:
    learner = LinearSVR(
        loss=task.loss, epsilon=EPSILON, C=task.C, fit_intercept=False, dual=True, tol=tol, max_iter=10**5,
        random_state=0,
    )  # fmt: skip
    start = time.process_time()
    learner.fit(mapped, y)
    spent = time.process_time() - start
    return spent, objective(task, learner.coef_, y - mapped @ learner.coef_)


def measure_task(report: Report, name: str, rows: int) -> None:
    task = TASKS[name]
    data = datasets.load("covtype68k").X[:rows].tocsc()
    X, y = data[:, 1:].tocsr(), 10.0 * data[:, 0].toarray().ravel()
    certain = ours(task, X, y, 1e-6)[1]
    optimum = certain.objective_ * (1.0 - certain.gap_)
    centred = y - certain._centre  # so that both solve the same problem
    runs: dict[str, list[tuple[float, float]]] = {"unkernel": [], "LIBLINEAR": []}
    start = time.process_time()
    mapped = PolynomialFeatures(2).fit_transform(X)
    report.add(
        name, "LIBLINEAR", EXPANSION, "CPU s", time.process_time() - start, version=sklearn.__version__
    )
    for tol in LADDER:  # side by side, so that both see the same machine
        spent, learner = ours(task, X, y, tol)
        runs["unkernel"].append((spent, learner.objective_))
        runs["LIBLINEAR"].append(theirs(task, mapped, centred, tol))
    for contender, runs_of_contender in runs.items():
        for gap in GAPS:
            reached = [spent for spent, value in runs_of_contender if value <= optimum * (1.0 + gap)]
            report.add(name, contender, TRAINING.format(gap), "CPU s", min(reached, default=None))
        report.add(
            name,
            contender,
            "best gap",
            "",
            max(min(value for _, value in runs_of_contender) / optimum - 1.0, 0.0),
        )


def measure(report: Report, tasks: Sequence[str]) -> None:
    warnings.simplefilter("ignore")
    for name in tasks:
        try:
            datasets.path("covtype68k")
        except FileNotFoundError as error:
            report.leave_out(name, error)
            continue
        measure_task(report, name, 5_000 if report.quick else 30_000)


if __name__ == "__main__":
    main(measure, list(TASKS))
