"""Training degree-2 SVMs: CPU time to a given objective, memory, accuracy, latency; beside the peers.

Tasks are binary problems with the kernel (gamma x'z + 1)^2 and hinge loss; poly_tasks.py has C and gamma.
Every contender runs in a process of its own, at a ladder of tolerances. Its time "to g" is the time of the
quickest run whose primal objective is within a factor 1 + g of the optimum, which a long run of ours
certifies from below. LIBLINEAR gets the expanded matrix: its time is for `train` alone, and the time of
the expansion is given separately. Our time is for `fit`, from the raw rows to the finished model.
Contenders with another objective run once, at their default tolerance; their time is called "alone". Memory
is what training adds to the process after its data are loaded. Predictions are made by `predict`; SVC
predicts only the first 2,000 rows.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/poly.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness import Report, Times, main
from harness.processes import LeftOutError, run_in_process
from poly_tasks import TASKS
from unkernel import datasets

GAPS = (1e-2, 1e-3)
OURS = (3e-2, 1e-2, 5e-3, 3e-3, 2e-3, 1e-3)
LADDERS = {
    "unkernel": OURS,
    "unkernel, 2 threads": OURS,
    "LIBLINEAR": (3, 1, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.003, 0.001),
}
# The tolerance of contenders with another objective.
OTHERS = {"PolynomialFeatures + LinearSVC": 1e-4, "SVC": 1e-3, "LIBSVM": 1e-3, "Vowpal Wabbit": 0}
KERNEL_SOLVERS = ("SVC", "LIBSVM")
TOO_SLOW = {
    **{(name, task): "it takes hours" for name in KERNEL_SOLVERS for task in TASKS if "covtype" in task},
    **{(name, task): "it takes hours" for name in KERNEL_SOLVERS for task in TASKS if "arc_eager" in task},
    **{
        ("PolynomialFeatures + LinearSVC", task): "the matrix takes 5 GB"
        for task in TASKS
        if "mnist" in task or "whole" in task
    },
    ("LIBLINEAR", "arc_eager_ewt-whole"): "the matrix takes 3 GB",
}
FIGURES = {
    "accuracy": ("accuracy", "%"),
    "batch_us": ("batch", "µs per row"),
    "single_us": ("one row", "µs"),
    "expansion_cpu": ("expansion", "CPU s"),
}
SECONDS = 900


def run_contender(contender: str, task: str, tolerances: Sequence[float]) -> dict[str, Any]:
    call = f"run({contender!r}, {task!r}, {tuple(tolerances)!r})"
    return dict(run_in_process("poly_contenders", call, seconds=SECONDS))


def run_in_turns(report: Report, task: str, rounds: int) -> dict[str, list[dict[str, Any]]]:
    """Return the reports of contenders that have unkernel's objective, round by round."""
    result: dict[str, list[dict[str, Any]]] = {}
    left_out: set[str] = set()
    for _ in range(rounds):
        for contender, ladder in LADDERS.items():
            if contender in left_out:
                continue
            try:
                if (contender, task) in TOO_SLOW:
                    raise LeftOutError(TOO_SLOW[contender, task])
                result.setdefault(contender, []).append(run_contender(contender, task, ladder))
            except LeftOutError as reason:
                left_out.add(contender)
                report.leave_out(f"{task}, {contender}", reason)
    return result


def quickest(runs: list[dict[str, Any]], optimum: float, gap: float) -> float | None:
    return min((run["cpu"] for run in runs if run["objective"] <= optimum * (1 + gap)), default=None)


def add_ladder(
    report: Report, task: str, contender: str, rounds: list[dict[str, Any]], optimum: float
) -> None:
    for gap in GAPS:
        times = [quickest(report_of_round["runs"], optimum, gap) for report_of_round in rounds]
        reached = Times([spent for spent in times if spent is not None])
        value = reached if reached.values else None
        report.add(task, contender, f"to {gap:g}", "CPU s", value)


def add_rest(report: Report, task: str, contender: str, figures: dict[str, Any]) -> None:
    """Add the memory and the other figures of a report."""
    report.add(task, contender, "training", "MB", figures["peak_mb"] - figures["before_mb"])
    for key, (figure, unit) in FIGURES.items():
        if key in figures:
            report.add(task, contender, figure, unit, figures[key])


def measure_task(report: Report, task: str) -> None:
    optimum = run_contender("unkernel", task, (1e-5,))["runs"][0]["objective"]
    for contender, rounds in run_in_turns(report, task, 1 if report.quick else 3).items():
        add_ladder(report, task, contender, rounds, optimum)
        add_rest(report, task, contender, rounds[0])
    for contender, tolerance in OTHERS.items():
        try:
            if report.quick and contender != "Vowpal Wabbit":
                raise LeftOutError("it takes long")
            if (contender, task) in TOO_SLOW:
                raise LeftOutError(TOO_SLOW[contender, task])
            result = run_contender(contender, task, (tolerance,))
        except LeftOutError as reason:
            report.leave_out(f"{task}, {contender}", reason)
            continue
        report.add(task, contender, "alone", "CPU s", result["runs"][0]["cpu"])
        add_rest(report, task, contender, result)


def measure(report: Report, tasks: Sequence[str]) -> None:
    for task in tasks:
        try:
            datasets.path(TASKS[task].dataset)
            measure_task(report, task)
        except (FileNotFoundError, LeftOutError) as reason:
            report.leave_out(task, reason)


if __name__ == "__main__":
    main(measure, list(TASKS), quick=["a9a", "covtype68k-mild"])
