"""Choices of PolySVC: storages beside scikit-learn's SVC, and methods that finish training beside each other.

There are three kinds of tasks:

- few rows with many conjunctions each (digits, wide dense data): training beside ``sklearn.svm.SVC``, which
  trains one class against another, at the default tolerances of both;
- w8a and a hard small problem: seconds, memory and the certified gap with default settings;
- ``choice-...``: thirty problems, trained to a gap of 1e-3 with "auto", and with each method alone (sweeps,
  kernel space and second order). "auto / best" is the time of "auto", divided by the shortest time of all.

Each training runs in a process of its own.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/poly_choices.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from harness import Report, Times, main
from harness.processes import LeftOutError, peak_megabytes, run_in_process
from unkernel import PolySVC, datasets

SECONDS = 300
ROWS = 4000
SMALL = {"digits-d2": 2, "digits-d3": 3, "wide-300x1000-d3": 3, "wide-500x20000-d2": 2}
LARGE: dict[str, dict[str, Any]] = {
    "w8a-d3-narrow": {"degree": 3, "C": 0.01, "gamma": 0.1},
    "w8a-d3": {"degree": 3, "C": 0.01, "gamma": 1.0},
    "w8a-d2": {"degree": 2, "C": 8.0, "gamma": 1 / 32},
    "hard-50000x22-d2": {"degree": 2, "C": 0.125, "gamma": 32.0},
}
FINISHES = ("auto", "sweeps", "kernel_space", "second_order")
CHOICES = {
    f"choice-{data}-d{degree}-C{C:g}-g{gamma:g}": (data, {"degree": degree, "C": C, "gamma": gamma})
    for data, degree, costs, gammas in (
        ("w8a", 2, (1e-3, 1.0, 1e3), (0.03125, 1.0)),
        ("w8a", 3, (1e-3, 1.0), (0.1, 1.0)),
        ("a9a", 2, (1e-3, 1.0, 1e3), (0.03125, 1.0)),
        ("a9a", 3, (1e-3, 1.0), (0.03125,)),
        ("covtype68k", 2, (1e-3, 1.0), (1.0, 8.0)),
        ("mnist38", 2, (1e-3, 1.0), (0.03125,)),
        ("mnist38", 3, (1e-3, 1.0), (0.03125,)),
        ("dna_mlbench", 3, (1e-3, 1e3), (0.1,)),
        ("mushrooms", 2, (1e-3, 1e3), (1.0,)),
    )
    for C in costs
    for gamma in gammas
}


def small_rows(name: str) -> tuple[Any, Any]:
    from sklearn.datasets import load_digits

    if name.startswith("digits"):
        X, y = load_digits(return_X_y=True)
        return X[:1257], y[:1257]
    rows, features = (int(number) for number in name.split("-")[1].split("x"))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, features))
    return X, X[:, :5].sum(axis=1) + 0.5 * rng.normal(size=rows) > 0


def large_rows(name: str) -> tuple[Any, Any]:
    if name.startswith("w8a"):
        data = datasets.load("w8a")
        return data.X, data.y
    rng = np.random.default_rng(0)
    X = 0.3 * rng.normal(size=(50_000, 22))
    score = np.tanh(X @ rng.normal(size=(22, 6))).prod(axis=1) + 0.5 * np.tanh(X @ rng.normal(size=22))
    return X, score + 0.05 * rng.normal(size=len(X)) > np.quantile(score, 0.9)


def choice_rows(data: str) -> tuple[Any, Any]:
    loaded = datasets.load(data)
    keep = np.random.default_rng(0).permutation(loaded.X.shape[0])[:ROWS]
    X = loaded.X[keep] / (255.0 if data == "mnist38" else 1.0)
    return X, loaded.y[keep] == loaded.y[keep].max()


def measure_cpu(train: Any) -> float:
    begin = time.process_time()
    train()
    return time.process_time() - begin


def train_small(name: str, contender: str) -> float:
    """Return the best CPU seconds of three fits."""
    from sklearn.svm import SVC

    X, y = small_rows(name)
    clf: Any = PolySVC(SMALL[name], random_state=0)
    if contender == "SVC":
        clf = SVC(kernel="poly", degree=SMALL[name], coef0=1.0)
    return min(measure_cpu(lambda: clf.fit(X, y)) for _ in range(3))


def train_large(name: str) -> dict[str, float]:
    warnings.simplefilter("ignore")
    X, y = large_rows(name)
    megabytes_before = peak_megabytes()
    clf = PolySVC(**LARGE[name], random_state=0)
    seconds = measure_cpu(lambda: clf.fit(X, y))
    return {
        "CPU s": seconds,
        "MB": peak_megabytes() - megabytes_before,
        "gap": clf.gap_,
        "epochs": clf.n_iter_,
    }


def train_choice(name: str, finish: str) -> float:
    data, options = CHOICES[name]
    X, y = choice_rows(data)
    learner = type("Only", (PolySVC,), {"_finish": finish})
    clf = learner(**options, max_iter=1_000_000, random_state=0)
    return min(measure_cpu(lambda: clf.fit(X, y)) for _ in range(2))


def measure_choice(report: Report, name: str) -> None:
    seconds: dict[str, float] = {}
    for finish in FINISHES:
        try:
            seconds[finish] = run_in_process(
                "poly_choices", f"train_choice({name!r}, {finish!r})", seconds=SECONDS
            )
        except LeftOutError as reason:
            report.add(name, f"unkernel, {finish}", "training", "CPU s", None, note=str(reason))
            continue
        report.add(name, f"unkernel, {finish}", "training", "CPU s", seconds[finish])
    if "auto" in seconds:
        best = min(seconds.values())
        report.add(name, "unkernel, auto", "auto / best", "ratio", seconds["auto"] / best)


def measure_small(report: Report, name: str) -> None:
    times_of: dict[str, Times] = {"unkernel": Times(), "SVC": Times()}
    for _ in range(3):
        for contender, times in times_of.items():
            call = f"train_small({name!r}, {contender!r})"
            times.values.append(run_in_process("poly_choices", call, seconds=SECONDS))
    for contender, times in times_of.items():
        report.add(name, contender, "training", "CPU s", times)


def measure(report: Report, tasks: Sequence[str]) -> None:
    for name in tasks:
        try:
            if name in SMALL:
                measure_small(report, name)
            elif name in LARGE:
                for figure, value in run_in_process("poly_choices", f"train_large({name!r})").items():
                    unit = figure if figure in ("CPU s", "MB") else "ratio" if figure == "gap" else "number"
                    title = {"CPU s": "training", "MB": "memory"}.get(figure, figure)
                    report.add(name, "unkernel", title, unit, value)
            else:
                measure_choice(report, name)
        except LeftOutError as reason:
            report.leave_out(name, reason)


if __name__ == "__main__":
    main(measure, [*SMALL, *LARGE, *CHOICES], quick=["digits-d3", "w8a-d3-narrow"])
