"""Training l1-regularised models of degree 2: CPU time, non-zeros and accuracy, beside LIBLINEAR.

LIBLINEAR's `-s 5` (squared hinge) and `-s 6` (logistic) get the expanded matrix: all monomials with the
constants of eq. (4) of Chang et al. Their time is for `train` alone; the time of the expansion is given
separately. Our time is for `fit`, from the raw rows to the finished model. Both run at a ladder of
tolerances; the time to a gap of g is the time of the quickest run whose primal objective is within a factor 1
+ g of the optimum, which a long run of ours certifies from below. Non-zeros and accuracy belong to the run
with the best objective.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/sparse.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from harness import Report, main
from harness.state import find_version
from poly_tasks import TASKS, Task, expand, load
from unkernel import PolyLogisticRegression, PolySVC, datasets

BASES = TASKS | {"kyoto": Task("kyoto", "bunsetsu_kyoto", 1.0, 1.0, (1.0,))}


@dataclass(frozen=True)
class SparseTask:
    """A base task with the loss and the C of a sparse model.

    A run to the tolerance `certain` gives the optimum. Training and test use the first `rows` rows; 0 means
    all rows.
    """

    dataset: str
    loss: str
    C: float
    solver: int
    ours: tuple[float, ...] = (0.9, 0.7, 0.5, 0.3, 0.1, 1e-2, 1e-3)
    theirs: tuple[float, ...] = (1.0, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.003, 0.001, 0.0003)
    certain: float = 1e-5
    rows: int = 0


SPARSE_TASKS = {
    "a9a-svm": SparseTask("a9a", "squared_hinge", 2.0, 5),
    "a9a-logistic": SparseTask("a9a", "logistic", 8.0, 6),
    "mnist38-svm": SparseTask("mnist38", "squared_hinge", 2.0, 5),
    "mnist38-svm-sparser": SparseTask("mnist38", "squared_hinge", 0.1, 5),
    "mnist38-logistic": SparseTask("mnist38", "logistic", 2.0, 6),
    "kyoto-logistic": SparseTask(
        "kyoto",
        "logistic",
        1.0,
        6,
        ours=(0.5, 0.1, 1e-2, 1e-3),
        theirs=(0.01, 0.001, 1e-4, 1e-5),
        certain=3e-4,
        rows=30_000,
    ),
}
GAPS = (1e-2, 1e-3, 1e-4)


def learner(task: SparseTask, gamma: float, tol: float):
    if task.loss == "logistic":
        return PolyLogisticRegression(2, C=task.C, gamma=gamma, tol=tol, random_state=0)
    return PolySVC(2, penalty="l1", loss=task.loss, C=task.C, gamma=gamma, tol=tol, random_state=0)


def objective(task: SparseTask, w: np.ndarray, Phi: sparse.csr_matrix, y: np.ndarray) -> float:
    margins = y * (Phi @ w)
    logistic = task.loss == "logistic"
    losses = np.logaddexp(0.0, -margins) if logistic else np.maximum(0.0, 1.0 - margins) ** 2
    return float(np.abs(w).sum() + task.C * losses.sum())


def our_runs(task: SparseTask, gamma: float, data: tuple, repetitions: int) -> list[dict]:
    X, y, Xt, yt = data
    runs = []
    for tol in task.ours:
        times = []
        for _ in range(repetitions):
            clf = learner(task, gamma, tol)
            start = time.process_time()
            clf.fit(X, y)
            times.append(time.process_time() - start)
        model = clf.to_model()
        runs.append(
            {
                "cpu": min(times),
                "objective": clf.objective_,
                "bound": clf.objective_ * (1 - clf.gap_),
                "nonzeros": model.n_conjunctions + int(model.intercept[0] != 0),
                "accuracy": 100 * float(np.mean(clf.predict(Xt) == yt)),
            }
        )
    return runs


def liblinear_runs(task: SparseTask, gamma: float, data: tuple, limit: float) -> tuple[list[dict], float]:
    from liblinear.liblinearutil import problem, train

    X, y, Xt, yt = data
    start = time.process_time()
    mapped = expand(sparse.vstack([X, Xt]).tocsr(), gamma)
    Phi, test = mapped[: len(y)], mapped[len(y) :]
    expansion = time.process_time() - start
    prob = problem(y, Phi)
    runs: list[dict] = []
    for eps in task.theirs:
        start = time.process_time()
        model = train(prob, f"-s {task.solver} -c {task.C} -e {eps} -q")
        cpu = time.process_time() - start
        w = np.ctypeslib.as_array(model.w, shape=(Phi.shape[1],)).copy()
        w = w if model.get_labels()[0] == 1 else -w
        runs.append(
            {
                "cpu": cpu,
                "objective": objective(task, w, Phi, y),
                "nonzeros": int((w != 0).sum()),
                "accuracy": 100 * float(np.mean(np.sign(test @ w) == yt)),
            }
        )
        if cpu > limit:
            break
    return runs, expansion


def add(
    report: Report, task: str, contender: str, runs: list[dict], optimum: float, version: str = ""
) -> None:
    for gap in GAPS:
        reached = [run["cpu"] for run in runs if run["objective"] <= optimum * (1 + gap)]
        report.add(task, contender, f"to {gap:g}", "CPU s", min(reached, default=None), version=version)
    best = min(runs, key=lambda run: run["objective"])
    report.add(task, contender, "best gap", "", max(best["objective"] / optimum - 1, 0.0))
    report.add(task, contender, "non-zeros", "number", best["nonzeros"])
    report.add(task, contender, "accuracy", "%", best["accuracy"])


def measure(report: Report, tasks: Sequence[str]) -> None:
    for name in tasks:
        task = SPARSE_TASKS[name]
        if report.quick:
            task = replace(task, theirs=task.theirs[:7])  # tighter ones take minutes
        base = BASES[task.dataset]
        try:
            datasets.path(base.dataset)
        except FileNotFoundError as error:
            report.leave_out(name, error)
            continue
        data = tuple(part[: task.rows or None] for part in load(base))
        optimum = learner(task, base.gamma, task.certain).fit(data[0], data[1]).objective_
        add(report, name, "unkernel", our_runs(task, base.gamma, data, 1 if report.quick else 3), optimum)
        try:
            theirs, expansion = liblinear_runs(task, base.gamma, data, limit=120.0)
        except ImportError as error:
            report.leave_out(f"{name}, LIBLINEAR", error)
            continue
        add(report, name, "LIBLINEAR", theirs, optimum, find_version("liblinear-official"))
        report.add(name, "LIBLINEAR", "expansion", "CPU s", expansion)


if __name__ == "__main__":
    main(measure, list(SPARSE_TASKS), quick=["a9a-svm"])
