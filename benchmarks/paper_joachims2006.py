"""Joachims (2006): linear SVMs in linear time, by cutting planes.

    python benchmarks/paper_joachims2006.py [--quick] [--save] ["figure 2" ...]

Of the paper's five tasks, covtype is available (class 1 against the rest), with 61,360 of its rows. The other
tasks are a9a, film reviews (imdb, above 6 points or below 5), and any number of generated rows whose words
follow Zipf's law. C is defined as in the paper: 1/2 w'w + (C / n) times the sum of losses.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

from _plots import Axes
from harness import Report, cpu_seconds
from papers import Paper
from unkernel import CuttingPlaneSVC, datasets
from zipf_rows import zipf_rows

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
EPSILONS = (0.1, 0.03, 0.01, 0.003, 0.001)
COSTS = (1e2, 1e3, 1e4, 1e5, 1e6)


@dataclass(frozen=True)
class Problem:
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    C: float  # the paper's

    def first(self, count: int) -> Problem:
        return replace(self, X=self.X[:count], y=self.y[:count])


def problems(report: Report) -> Iterator[tuple[str, Problem]]:
    yield "covtype 1", load_problem("covtype68k", 1e6, lambda y: y == 1)
    yield "a9a", load_problem("a9a", 1628.0, lambda y: y > 0)
    if not report.quick:
        yield "imdb", load_problem("imdb", 7500.0, lambda y: y >= 7, normalised=True)


def load_problem(name: str, C: float, positive: Callable[[Any], Any], *, normalised: bool = False) -> Problem:
    train, test = datasets.load(name), datasets.load(name, "test")
    order = np.random.default_rng(0).permutation(train.X.shape[0])
    width = train.X.shape[1]
    test.X.resize(test.X.shape[0], width)
    X, X_test = (normalize(train.X), normalize(test.X)) if normalised else (train.X, test.X)
    labels = [np.where(positive(y), 1, -1) for y in (train.y, test.y)]
    return Problem(X[order], labels[0][order], X_test, labels[1], C)


def made_up(count: int) -> Problem:
    X, target = zipf_rows(count)
    y = np.sign(target).astype(int)
    return Problem(X, y, X[:1000], y[:1000], 1e4)


def trained(problem: Problem, *, C: float | None = None, **options: Any) -> tuple[CuttingPlaneSVC, float]:
    """Return a fitted model, by cutting planes unless `options` say otherwise, and its CPU seconds."""
    shared = {"solver": "cutting_plane", "fit_intercept": False, "tol": 1e-3, "n_jobs": 1, "max_iter": 5000}
    svc = CuttingPlaneSVC((C or problem.C) / len(problem.y), **{**shared, **options})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        spent = cpu_seconds(lambda: svc.fit(problem.X, problem.y))
    return svc, spent


# rows, SVMperf, SVMlight, SVMperf for ordinal regression; CPU seconds
PRINTED = {
    "Reuters CCAT": (804_414, 149.7, 20_075.5, 304.1),
    "Reuters C11": (804_414, 178.9, 5_187.4, 499.1),
    "Arxiv astro-ph": (62_369, 16.9, 80.1, 26.1),
    "covtype 1": (522_911, 171.7, 25_514.3, 1_109.1),
    "KDD04 Physics": (150_000, 31.9, 1_040.2, 132.5),
}


def table_1(report: Report) -> None:
    """CPU seconds of training: classification, and ordinal regression with two ranks (the area under the ROC
    curve).

    unkernel stops at a certified relative gap of 1e-3; the paper's epsilon of 0.001 is the violation of a
    constraint. "dual" is our other solver, which `solver="auto"` chooses for data in memory.
    """
    for name, problem in [*problems(report), ("made-up words", made_up(30_000 if report.quick else 300_000))]:
        rows = f"{len(problem.y):,} rows"
        contenders: dict[str, dict[str, Any]] = {
            "unkernel, cutting planes": {}, "unkernel, dual": {"solver": "dual"},
        }  # fmt: skip
        for contender, options in contenders.items():
            spent = trained(problem, **options)[1]
            report.add(f"table 1, {name}", contender, "classification", "CPU s", spent, note=rows)
        spent = trained(problem, objective="roc_area")[1]
        report.add(f"table 1, {name}", "unkernel, cutting planes", "ordinal regression", "CPU s", spent)
    for name, (rows, perf, light, ordinal) in PRINTED.items():
        for contender, spent in (("paper, SVMperf", perf), ("paper, SVMlight", light)):
            note = f"{rows:,} rows"
            report.add(f"table 1, {name}", contender, "classification", "CPU s", spent, note=note)
        report.add(f"table 1, {name}", "paper, SVMperf", "ordinal regression", "CPU s", ordinal)


def growing(report: Report) -> Iterator[tuple[str, Problem]]:
    """Yield the tasks with growing numbers of rows."""
    sizes = SIZES[:4] if report.quick else SIZES
    for name, problem in problems(report):
        for count in (*sizes, len(problem.y)):
            if count <= min(len(problem.y), sizes[-1]):
                yield name, problem.first(count)
    for count in sizes:
        yield "made-up words", made_up(count)


def figure_1(report: Report) -> None:
    """CPU seconds of classification against the number of rows; a slope of 1 is linear time.

    The paper finds about n^0.8 for SVMperf, and n^1.7 for SVMlight, which is not measured again. C is taken
    from the whole data set, divided by the number of rows that are used.
    """
    for name, problem in growing(report):
        report.add("figure 1", name, "training", "CPU s", trained(problem)[1], at=len(problem.y))


def figure_1_right(report: Report) -> None:
    """The last part of figure 1: ordinal regression, here the area under the ROC curve."""
    for name, problem in growing(report):
        spent = trained(problem, objective="roc_area")[1]
        report.add("figure 1 right", name, "training", "CPU s", spent, at=len(problem.y))


def figure_2(report: Report) -> None:
    """Iterations against the number of rows: they do not grow."""
    for name, problem in growing(report):
        svc, _ = trained(problem)
        report.add("figure 2", name, "iterations", "", float(np.sum(svc.n_iter_)), at=len(problem.y))


def figure_3(report: Report) -> None:
    """Test accuracy at a tolerance of 0.001, minus that of a more accurate solution, in points, against C.

    The more accurate solution has a certified gap of 1e-5, and takes the place of SVMlight's. The imdb
    reviews are measured by their accuracy, too; for texts, the paper has the break-even point.
    """
    for name, problem in problems(report):
        for C in COSTS:
            ours = trained(problem, C=C)[0].score(problem.X_test, problem.y_test)
            exact = trained(problem, C=C, tol=1e-5)[0]
            difference = 100 * (ours - exact.score(problem.X_test, problem.y_test))
            report.add("figure 3", name, "difference", "points", difference, at=C)


def figure_4(report: Report) -> None:
    """Test accuracy minus that at a tolerance of 0.001, in points, against the tolerance."""
    for name, problem in problems(report):
        accuracies = {
            eps: trained(problem, tol=eps)[0].score(problem.X_test, problem.y_test) for eps in EPSILONS
        }
        for eps, accuracy in accuracies.items():
            report.add("figure 4", name, "difference", "points", 100 * (accuracy - accuracies[0.001]), at=eps)


def add_iterations(report: Report, figure: str, option: str, values: Sequence[float]) -> None:
    """Add the iterations of all tasks for several values of an option of the learner."""
    for name, problem in problems(report):
        for value in values:
            svc, _ = trained(problem, **{option: value})
            report.add(figure, name, "iterations", "", float(np.sum(svc.n_iter_)), at=value)


def add_seconds(report: Report, figure: str, option: str, values: Sequence[float]) -> None:
    for name, problem in problems(report):
        for value in values:
            spent = trained(problem, **{option: value})[1]
            report.add(figure, name, "training", "CPU s", spent, at=value)


def figure_5(report: Report) -> None:
    """Iterations against the tolerance. The paper finds about 1 / epsilon^0.3."""
    add_iterations(report, "figure 5", "tol", EPSILONS)


def figure_6(report: Report) -> None:
    """CPU seconds against the tolerance. The paper finds about 1 / epsilon^0.4."""
    add_seconds(report, "figure 6", "tol", EPSILONS)


def figure_7(report: Report) -> None:
    """Excess of the objective over the optimum, as a share of the optimum, against the tolerance.

    The optimum is the objective of a run to a certified gap of 1e-5. The paper's values, about 0.1 to 1 % at
    0.001, are those of the relaxed problem, and are below the optimum. Ours are those of the weights; they
    are above the optimum, by less than the certified tolerance. Values below 1e-9 are drawn at 1e-9.
    """
    for name, problem in problems(report):
        optimum = objective(problem, trained(problem, tol=1e-5)[0])
        for eps in EPSILONS:
            above = objective(problem, trained(problem, tol=eps)[0]) / optimum - 1
            report.add("figure 7", name, "above the optimum", "", max(above, 1e-9), at=eps)


def objective(problem: Problem, svc: CuttingPlaneSVC) -> float:
    w = svc.coef_.ravel()
    losses = np.maximum(0.0, 1.0 - problem.y * (problem.X @ w))
    return float(0.5 * w @ w + problem.C * losses.mean())


def figure_8(report: Report) -> None:
    """Iterations against C. The paper finds about the square root of C."""
    add_iterations(report, "figure 8", "C", COSTS)


def figure_9(report: Report) -> None:
    """CPU seconds against C. SVMlight, in the right half of the paper's figure, is not measured again."""
    add_seconds(report, "figure 9", "C", COSTS)


WORK: dict[str, Callable[[Report], None]] = {
    "table 1": table_1, "figure 1": figure_1, "figure 1 right": figure_1_right, "figure 2": figure_2,
    "figure 3": figure_3, "figure 4": figure_4, "figure 5": figure_5, "figure 6": figure_6,
    "figure 7": figure_7, "figure 8": figure_8, "figure 9": figure_9,
}  # fmt: skip
PAPER = Paper(
    WORK,
    axes={
        "figure 1": Axes("training rows", "CPU s"),
        "figure 1 right": Axes("training rows", "CPU s"),
        "figure 2": Axes("training rows", "iterations"),
        "figure 3": Axes("C", "difference, points", y_scale="linear"),
        "figure 4": Axes("tolerance", "difference, points", y_scale="linear"),
        "figure 5": Axes("tolerance", "iterations"),
        "figure 6": Axes("tolerance", "CPU s"),
        "figure 7": Axes("tolerance", "share above the optimum"),
        "figure 8": Axes("C", "iterations"),
        "figure 9": Axes("C", "CPU s"),
    },
    missing={
        "Reuters, Arxiv, KDD04 Physics": "the data sets cannot be had here",
        "SVMlight": "its licence forbids passing it on; `benchmarks/cutplane.py` measures it if built",
        "the third part of figure 1": "C at its best for each number of rows: the first part has the scaling",
    },
)

if __name__ == "__main__":
    PAPER.run()
