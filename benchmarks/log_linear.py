"""Training time of log-linear models on rows of categories, as advertising has them, against PolySVC.

    python benchmarks/log_linear.py [--quick] [--save] [TASK ...]

Rows have 15 fields of 2,000 values each, drawn by Zipf's law with exponent 1.3. The score of a row is a sum
of weights of its values and of three planted pairs of fields; its class is the sign of the score plus
logistic noise. The kernel is (x'z + 1)^2, and all contenders stop at a certified gap of 0.001. "slope" is the
slope of the logarithm of the time against the logarithm of the number of rows, between the previous size and
this one: 1 means that the time is linear in the rows. "2 threads" is the elapsed time with one thread,
divided by that with two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import log
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import roc_auc_score

from harness import Report, main, take_turns, wall_seconds
from unkernel import PolyLogisticRegression, PolySVC

SIZES = (200_000, 600_000, 2_000_000)
QUICK_SIZES = (20_000, 60_000)
FIELDS, VALUES, EXPONENT = 15, 2000, 1.3
PLANTED_PAIRS = ((0, 1), (2, 3), (4, 5))
SPREAD, SPREAD_OF_PAIRS = 0.5, 0.8  # of the true weights
TEST_ROWS = 20_000
TASKS = ("fixed C", "fixed C / rows", "threads")


def make_rows(count: int, *, seed: int = 0) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Return rows of categories, one column per value of a field, and their classes."""
    rng = np.random.default_rng(seed)
    truth = np.random.default_rng(12345)  # the same for every seed
    law = np.arange(1.0, VALUES + 1.0) ** -EXPONENT
    cumulative = np.cumsum(law / law.sum())
    values = np.searchsorted(cumulative, rng.random((count, FIELDS))).clip(0, VALUES - 1).astype(np.int32)
    scores = truth.normal(0, SPREAD, (FIELDS, VALUES))[np.arange(FIELDS), values].sum(axis=1)
    for first, second in PLANTED_PAIRS:
        weights = truth.normal(0, SPREAD_OF_PAIRS, (VALUES, VALUES)).astype(np.float32)
        scores += weights[values[:, first], values[:, second]]
    classes = (scores + rng.logistic(size=count) > 0).astype(np.int8)
    columns = values + VALUES * np.arange(FIELDS, dtype=np.int32)
    offsets = np.arange(0, columns.size + 1, FIELDS)
    shape = (count, FIELDS * VALUES)
    return sparse.csr_matrix((np.ones(columns.size), columns.ravel(), offsets), shape=shape), classes


def make_learners(factor: float = 1.0, n_jobs: int = 1) -> dict[str, Any]:
    options = {"gamma": 1.0, "n_jobs": n_jobs, "random_state": 0}
    return {
        "PolySVC": PolySVC(2, C=0.01 * factor, **options),
        "l2": PolyLogisticRegression(2, C=0.01 * factor, penalty="l2", **options),
        "l1": PolyLogisticRegression(2, C=0.1 * factor, **options),
    }


def measure_sizes(report: Report, task: str) -> None:
    sizes = QUICK_SIZES if report.quick else SIZES
    X, y = make_rows(sizes[-1])
    X_test, y_test = make_rows(TEST_ROWS, seed=1)
    before: dict[str, float] = {}
    for place, count in enumerate(sizes):
        learners = make_learners(1.0 if task == "fixed C" else count / SIZES[0])
        work: dict[str, Callable[[], Any]] = {
            name: partial(learner.fit, X[:count], y[:count]) for name, learner in learners.items()
        }
        for name, spent in take_turns(work, 1).items():
            at = f"{task}, {count:,} rows"
            report.add(at, name, "training", "CPU s", spent)
            area = roc_auc_score(y_test, learners[name].decision_function(X_test))
            report.add(at, name, "ROC area", "", area)
            if place:
                slope = log(spent.best / before[name]) / log(count / sizes[place - 1])
                report.add(at, name, "slope", "", slope)
            before[name] = spent.best


def measure_threads(report: Report, task: str) -> None:
    X, y = make_rows(QUICK_SIZES[-1] if report.quick else SIZES[1])
    one, two = make_learners(), make_learners(n_jobs=2)
    for name in one:
        ratio = wall_seconds(partial(one[name].fit, X, y)) / wall_seconds(partial(two[name].fit, X, y))
        report.add(task, name, "2 threads", "times", ratio)


def measure(report: Report, tasks: Sequence[str]) -> None:
    for task in tasks:
        (measure_threads if task == "threads" else measure_sizes)(report, task)


if __name__ == "__main__":
    main(measure, list(TASKS))
