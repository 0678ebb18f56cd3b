"""The contenders of the poly benchmark: each trains at given tolerances, and reports time and objective.

``poly.py`` calls ``run`` in a process of its own for each contender.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from harness import timed
from harness.processes import peak_megabytes
from poly_tasks import TASKS, Task, expand, load, primal

warnings.simplefilter("ignore", ConvergenceWarning)


def latency_microseconds(predict, X, rows=200) -> float:
    """Return the median time of predicting a single row."""
    singles = [X[i : i + 1] for i in range(rows)]
    predict(singles[0])
    times = []
    for row in singles:
        start = time.perf_counter()
        predict(row)
        times.append(time.perf_counter() - start)
    return 1e6 * float(np.median(times))


def judge(report, predict, X, y) -> dict:
    """Add the accuracy and the times of predictions to a report."""
    predict(X[:1000])
    predicted, _, seconds = timed(lambda: predict(X))
    report["accuracy"] = 100 * float(np.mean(predicted == y))
    report["batch_us"] = 1e6 * seconds / X.shape[0]
    report["single_us"] = latency_microseconds(predict, X)
    return report


def unkernel_runs(task: Task, tolerances: Sequence[float], jobs: int) -> dict:
    from unkernel import PolySVC

    X, y, Xt, yt = load(task)
    report = {"before_mb": peak_megabytes(), "runs": []}
    for tol in tolerances:
        clf = PolySVC(2, C=task.C, gamma=task.gamma, tol=tol, max_iter=100_000, n_jobs=jobs, random_state=0)
        _, cpu, wall = timed(lambda clf=clf: clf.fit(X, y))
        report.setdefault("peak_mb", peak_megabytes())
        report["runs"].append(
            {
                "tol": tol,
                "cpu": cpu,
                "wall": wall,
                "objective": clf.objective_,
                "bound": clf.objective_ * (1 - clf.gap_),
            }
        )
    return judge(report, clf.predict, Xt, yt)


def liblinear_runs(task: Task, tolerances: Sequence[float]) -> dict:
    from liblinear.liblinearutil import problem, train

    X, y, _, _ = load(task)
    report = {"before_mb": peak_megabytes(), "runs": []}
    Phi, expansion, _ = timed(lambda: expand(X, task.gamma))
    prob, conversion, _ = timed(lambda: problem(y, Phi))
    for tol in tolerances:
        model, cpu, wall = timed(lambda tol=tol: train(prob, f"-s 3 -c {task.C} -e {tol} -q"))
        report.setdefault("peak_mb", peak_megabytes())
        w = np.ctypeslib.as_array(model.w, shape=(Phi.shape[1],)).copy()
        w = w if model.get_labels()[0] == 1 else -w
        report["runs"].append({"tol": tol, "cpu": cpu, "wall": wall, "objective": primal(w, Phi, y, task.C)})
    report["expansion_cpu"] = expansion + conversion
    return report


def pipeline_runs(task: Task, tolerances: Sequence[float]) -> dict:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures
    from sklearn.svm import LinearSVC

    X, y, Xt, yt = load(task)
    report = {"before_mb": peak_megabytes(), "runs": []}
    for tol in tolerances:
        clf = make_pipeline(
            PolynomialFeatures(2),
            LinearSVC(C=task.C, loss="hinge", fit_intercept=False, tol=tol, random_state=0),
        )
        _, cpu, wall = timed(lambda clf=clf: clf.fit(X, y))
        report.setdefault("peak_mb", peak_megabytes())
        report["runs"].append({"tol": tol, "cpu": cpu, "wall": wall})
    return judge(report, clf.predict, Xt, yt)


def svc_runs(task: Task, tolerances: Sequence[float]) -> dict:
    from sklearn.svm import SVC

    X, y, Xt, yt = load(task)
    report = {"before_mb": peak_megabytes(), "runs": []}
    clf = SVC(
        kernel="poly", degree=2, C=task.C, gamma=task.gamma, coef0=1.0, tol=tolerances[0], cache_size=1000
    )
    _, cpu, wall = timed(lambda: clf.fit(X, y))
    report["peak_mb"] = peak_megabytes()
    report["runs"].append({"tol": tolerances[0], "cpu": cpu, "wall": wall})
    return judge(report, clf.predict, Xt[:2000], yt[:2000])


def libsvm_runs(task: Task, tolerances: Sequence[float]) -> dict:
    from libsvm.svmutil import svm_problem, svm_train

    X, y, _, _ = load(task)
    report = {"before_mb": peak_megabytes(), "runs": []}
    prob = svm_problem(y, X)
    options = f"-t 1 -d 2 -g {task.gamma} -r 1 -c {task.C} -e {tolerances[0]} -m 1000 -q"
    _, cpu, wall = timed(lambda: svm_train(prob, options))
    report["peak_mb"] = peak_megabytes()
    report["runs"].append({"tol": tolerances[0], "cpu": cpu, "wall": wall})
    return report


def vowpal_runs(task: Task, tolerances: Sequence[float]) -> dict:
    from vowpalwabbit.pyvw import Workspace

    X, y, Xt, yt = load(task)
    report = {"before_mb": peak_megabytes(), "runs": []}

    def lines(rows, labels):
        for i, label in enumerate(labels):
            k = slice(rows.indptr[i], rows.indptr[i + 1])
            features = " ".join(f"{j}:{v:.6g}" for j, v in zip(rows.indices[k], rows.data[k], strict=True))
            yield f"{int(label)} | {features}"

    text, test_text = list(lines(X, y)), list(lines(Xt, yt))
    vw = Workspace("--quiet -q :: --loss_function hinge --binary -b 24")

    def learn():
        for line in text:
            vw.learn(line)

    _, cpu, wall = timed(learn)
    report["peak_mb"] = peak_megabytes()
    report["runs"].append({"tol": 0.0, "cpu": cpu, "wall": wall})
    predicted, _, seconds = timed(lambda: np.array([vw.predict(line) for line in test_text]))
    report["accuracy"] = 100 * float(np.mean(np.sign(predicted) == yt))
    report["batch_us"] = 1e6 * seconds / len(yt)
    return report


CONTENDERS = {
    "unkernel": lambda task, tols: unkernel_runs(task, tols, 1),
    "unkernel, 2 threads": lambda task, tols: unkernel_runs(task, tols, 2),
    "LIBLINEAR": liblinear_runs,
    "PolynomialFeatures + LinearSVC": pipeline_runs,
    "SVC": svc_runs,
    "LIBSVM": libsvm_runs,
    "Vowpal Wabbit": vowpal_runs,
}


def run(name: str, task: str, tolerances: Sequence[float]) -> dict:
    """Return the reports of a contender for a task, one per tolerance."""
    return CONTENDERS[name](TASKS[task], tolerances)
