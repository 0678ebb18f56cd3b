"""Training time of PolySVC against the number of rows.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/poly_scaling.py [--quick] [--save] [TASK ...]

Decisions of a parser (arc_eager_ewt) with all their 57,109 features, in a random order that is the same for
all sizes, kernel (x'z + 1)^2, C 0.01, one thread. "slope" is that of the logarithm of the time from the size
before to this one: 1 is linear in the rows. Sizes take turns, and the best of their times counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import log

import numpy as np

from harness import Report, main, take_turns
from unkernel import PolySVC, datasets

SIZES = (10_000, 30_000, 100_000, 300_000)
TASKS = ["arc_eager-d2"]


def measure(report: Report, tasks: Sequence[str]) -> None:
    for task in tasks:
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


if __name__ == "__main__":
    main(measure, TASKS)
