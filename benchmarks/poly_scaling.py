"""Training time of PolySVC against the number of rows.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/poly_scaling.py [--quick] [--save] [TASK ...]

- "arc_eager-d2": decisions of a parser (arc_eager_ewt) with all their 57,109 features, in a random order that
  is the same for all sizes; kernel (x'z + 1)^2, C 0.01, one thread. "slope" is the slope of the logarithm of
  the time against the logarithm of the number of rows, between the previous size and this one: 1 means that
  the time is linear in the rows.
- "a9a against rows": census data, kernel (x'z / 32 + 1)^2, C 8, beside scikit-learn's SVC and LIBLINEAR on
  expanded rows, whose time includes the expansion. Each stops by its own rule at its default tolerance: a
  certified gap of 0.001 for PolySVC. SVC gets at most 10,000 rows, because its time grows with the square of
  their number.

Sizes and contenders take turns, and the best of their times counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import log
from typing import Any

import numpy as np

import poly_tasks
from harness import Report, main, take_turns
from unkernel import PolySVC, datasets

SIZES = (10_000, 30_000, 100_000, 300_000)
SIZES_WITH_PEERS = (1000, 3000, 10_000, 30_000)
MOST_FOR_SVC = 10_000


def measure_slopes(report: Report, task: str) -> None:
    data = datasets.load("arc_eager_ewt")
    order = np.random.default_rng(0).permutation(data.X.shape[0])
    X, y = data.X[order], np.where(np.isin(data.y[order], (3.0, 4.0)), 1, -1)
    sizes = SIZES[:3] if report.quick else SIZES
    learner = PolySVC(2, C=0.01, gamma=1.0, n_jobs=1, random_state=0)
    work = {f"{count:,} rows": partial(learner.fit, X[:count], y[:count]) for count in sizes}
    times = list(take_turns(work, 2 if report.quick else 5).values())
    for place, (count, spent) in enumerate(zip(sizes, times, strict=True)):
        report.add(f"{task}, {count:,} rows", "unkernel", "training", "CPU s", spent)
        if place:
            rows = log(count / sizes[place - 1])
            slope = log(spent.best / times[place - 1].best) / rows
            report.add(f"{task}, {count:,} rows", "unkernel", "slope", "", slope)


def measure_peers(report: Report, task: str) -> None:
    setting = poly_tasks.TASKS["a9a"]
    X, y, *_ = poly_tasks.load(setting)
    for count in SIZES_WITH_PEERS:
        works = contenders(setting, X[:count], y[:count])
        if count > MOST_FOR_SVC:
            del works["SVC"]
        for name, spent in take_turns(works, 1 if report.quick else 3).items():
            report.add(task, name, "training", "CPU s", spent, at=count)


def contenders(setting: poly_tasks.Task, X: Any, y: np.ndarray) -> dict[str, Callable[[], Any]]:
    from liblinear.liblinearutil import problem, train
    from sklearn.svm import SVC

    C, gamma = setting.C, setting.gamma

    def liblinear() -> Any:
        return train(problem(y, poly_tasks.expand(X, gamma)), f"-s 3 -c {C} -q")

    return {
        "unkernel": lambda: PolySVC(2, C=C, gamma=gamma, n_jobs=1, random_state=0).fit(X, y),
        "LIBLINEAR, rows expanded": liblinear,
        "SVC": lambda: SVC(kernel="poly", degree=2, C=C, gamma=gamma, coef0=1).fit(X, y),
    }


MEASURES = {"arc_eager-d2": measure_slopes, "a9a against rows": measure_peers}


def measure(report: Report, tasks: Sequence[str]) -> None:
    for task in tasks:
        try:
            MEASURES[task](report, task)
        except (FileNotFoundError, ImportError) as error:
            report.leave_out(task, error)


if __name__ == "__main__":
    main(measure, list(MEASURES))
