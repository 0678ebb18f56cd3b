"""Training degree-2 SVMs: CPU time to a given objective, memory, accuracy, latency; beside the peers.

Every contender runs in a process of its own, at a ladder of tolerances; its time "to a gap of g" is
that of the quickest run whose primal objective is within a factor 1 + g of the reference optimum
(a long run of ours, certified from below). LIBLINEAR gets the matrix already expanded: its time is
that of ``train`` alone, and what the expansion took is given apart. Ours is that of ``fit``, from
the raw rows to the finished model. Memory is what training added to the process with its data loaded.
A peer that is not installed is left out, and said to be.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/poly.py [--markdown] [task ...]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from poly_tasks import TASKS
from unkernel import datasets

DEFAULT_TASKS = ("a9a", "mnist38", "mnist38-wide", "covtype68k", "covtype68k-mild", "arc_eager_ewt")
GAPS = (1e-2, 1e-3)
OURS = ("3e-2", "1e-2", "5e-3", "3e-3", "2e-3", "1e-3")
LIBLINEAR = ("3", "1", "0.5", "0.3", "0.2", "0.1", "0.05", "0.02", "0.01", "0.003", "0.001")
# What has no common objective runs once, at its default tolerance; kernel solvers only where they end.
OTHERS = {
    "PolynomialFeatures+LinearSVC": ("1e-4",),
    "SVC": ("1e-3",),
    "libsvm": ("1e-3",),
    "vowpalwabbit": ("0",),
}
TOO_SLOW = {
    ("SVC", "covtype68k"), ("SVC", "covtype68k-mild"), ("SVC", "arc_eager_ewt"),
    ("libsvm", "covtype68k"), ("libsvm", "covtype68k-mild"), ("libsvm", "arc_eager_ewt"),
    ("PolynomialFeatures+LinearSVC", "mnist38"), ("PolynomialFeatures+LinearSVC", "mnist38-wide"),
}  # fmt: skip
TIME_LIMIT = 900


def run(contender: str, task: str, tolerances: tuple[str, ...]) -> dict | None:
    program = "import poly_contenders; poly_contenders.main()"
    command = [sys.executable, "-c", program, contender, task, *tolerances]
    environment_folder = Path(__file__).parent
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
            check=False,
            env=environment(environment_folder),
        )
    except subprocess.TimeoutExpired:
        print(f"  {contender}: gave up after {TIME_LIMIT} s", flush=True)
        return None
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no message"
        print(f"  {contender}: left out ({reason})", flush=True)
        return None
    return dict(json.loads(done.stdout.splitlines()[-1]))


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(folder), "UNKERNEL_DATA": str(datasets.folder() or "")}


def quickest(report: dict, optimum: float, gap: float, clock: str) -> float | None:
    times = [r[clock] for r in report["runs"] if r["objective"] <= optimum * (1 + gap)]
    return min(times, default=None)


def best_of(reports: list[dict]) -> dict:
    """The same ladder, run several times: each rung's least time."""
    best = reports[0]
    for other in reports[1:]:
        for mine, theirs in zip(best["runs"], other["runs"], strict=True):
            for clock in ("cpu", "wall"):
                mine[clock] = min(mine[clock], theirs[clock])
    return best


def compare(task: str, repetitions: int) -> list[list[str]]:
    long_run = run("unkernel", task, ("1e-5",))
    if long_run is None:
        return []
    bound = long_run["runs"][0]["bound"]
    optimum = long_run["runs"][0]["objective"]
    print(f"{task}: optimum between {bound:.6g} and {optimum:.6g}", flush=True)
    ladders = {"unkernel": OURS, "unkernel-2": OURS, "liblinear": LIBLINEAR}
    reports: dict[str, list[dict]] = {}
    for _ in range(repetitions):  # taking turns, as the machine's speed drifts
        for contender, ladder in ladders.items():
            report = run(contender, task, ladder)
            if report is not None:
                reports.setdefault(contender, []).append(report)
    merged = {name: best_of(several) for name, several in reports.items()}
    for contender, ladder in OTHERS.items():
        if (contender, task) not in TOO_SLOW and (report := run(contender, task, ladder)) is not None:
            merged[contender] = report
    return [row(task, name, report, optimum) for name, report in merged.items()]


def row(task: str, name: str, report: dict, optimum: float) -> list[str]:
    with_objective = "objective" in report["runs"][0]
    cells = [task, name]
    for gap in GAPS:
        for clock in ("cpu", "wall"):
            value = quickest(report, optimum, gap, clock) if with_objective else report["runs"][0][clock]
            cells.append("not reached" if value is None else f"{value:.2f}")
    cells.append(f"{report['peak_mb'] - report['before_mb']:.0f}")
    cells.append(f"{report['accuracy']:.2f}" if "accuracy" in report else "")
    cells.append(f"{report['batch_us']:.2f}" if "batch_us" in report else "")
    cells.append(f"{report['single_us']:.0f}" if "single_us" in report else "")
    cells.append(f"{report['expansion_cpu']:.1f}" if "expansion_cpu" in report else "")
    return cells


HEADINGS = ["task", "contender", "CPU s to 1e-2", "wall", "CPU s to 1e-3", "wall", "training MB", "accuracy",
            "batch µs/row", "one row µs", "expansion CPU s"]  # fmt: skip


def main() -> None:
    arguments = sys.argv[1:]
    tasks = [a for a in arguments if not a.startswith("--")] or list(DEFAULT_TASKS)
    repetitions = next((int(a.split("=")[1]) for a in arguments if a.startswith("--repeat=")), 2)
    rows = []
    for task in tasks:
        try:
            datasets.path(TASKS[task].dataset)
        except FileNotFoundError as error:
            print(f"{task}: skipped: {error}")
            continue
        rows += compare(task, repetitions)
    print("| " + " | ".join(HEADINGS) + " |")
    print("|" + "---|" * len(HEADINGS))
    for cells in rows:
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
