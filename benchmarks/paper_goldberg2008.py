"""Goldberg & Elhadad (2008): splitSVM, rare features by an index and common ones expanded.

    python benchmarks/paper_goldberg2008.py [--quick] [--save] ["table 1" ...]

The decisions are made by an arc-eager parser on the English Web Treebank (in the paper, on the Wall Street
Journal). LIBSVM has trained a machine of degree 2 on 40,000 of them (benchmarks/engines.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from _plots import Axes
from engines import load_task
from harness import Report, Times, cpu_seconds
from harness.state import find_version
from papers import Paper
from unkernel import compile

TASK = "arc_eager-d2"
FEW_ROWS = 300  # for LIBSVM
SHARES = (0.0, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)


def microseconds(report: Report, fast: Any, rows: Any) -> Times:
    rounds = 2 if report.quick else 5
    times = Times([cpu_seconds(lambda: fast.score_csr(rows, 1)) for _ in range(rounds)])
    return times.scaled(1e6 / rows.shape[0])


def table_1(report: Report) -> None:
    """LIBSVM, and the same machine split at 0.5 % of the support vectors: memory, and time of a decision.

    The paper measures a whole parser, with hundreds of classifiers, on 3,762 sentences. Its times are per
    sentence, so only ratios can be compared. LIBSVM's memory is computed: its structures take 16 bytes per
    value of a support vector.
    """
    task = load_task(TASK)
    vectors = task.model.vectors
    report.add("table 1, decisions", "unkernel, split", "memory", "MB", split(task).nbytes / 1e6)
    report.add(
        "table 1, decisions",
        "unkernel, split",
        "time",
        "CPU µs",
        microseconds(report, split(task), task.rows),
    )
    fast = compile(task.model, sample=task.rows[:2000])
    report.add("table 1, decisions", f"unkernel, auto ({fast.engine})", "memory", "MB", fast.nbytes / 1e6)
    report.add(
        "table 1, decisions", f"unkernel, auto ({fast.engine})", "time", "CPU µs",
        microseconds(report, fast, task.rows),
    )  # fmt: skip
    version = find_version("libsvm-official")
    report.add("table 1, decisions", "LIBSVM", "memory", "MB", 16e-6 * vectors.nnz, version=version)
    report.add("table 1, decisions", "LIBSVM", "time", "CPU µs", libsvm_microseconds(task), version=version)
    for contender, megabytes, sentences in (("paper, splitSVM", 750, 53), ("paper, LIBSVM", 240, 1.73)):
        report.add("table 1, sentences of the paper", contender, "memory", "MB", megabytes)
        report.add("table 1, sentences of the paper", contender, "time", "ms", 1e3 / sentences)


def split(task: Any, rare: float = 0.005) -> Any:
    return compile(task.model, "split", rare=rare, measure=False)


def libsvm_microseconds(task: Any) -> float:
    from libsvm.svmutil import svm_load_model, svm_predict

    from engines import CACHE

    model, rows = svm_load_model(str(CACHE / f"{TASK}.libsvm")), task.rows[:FEW_ROWS]
    spent = cpu_seconds(lambda: svm_predict(np.zeros(FEW_ROWS), rows, model, "-q"))
    return 1e6 * spent / FEW_ROWS


def section_3(report: Report) -> None:
    """Section 3 of the paper: the border between rare and common features trades memory for time.

    A feature is rare if it occurs in less than this share of the support vectors. The scores are the same at
    every border. The paper has no such figure.
    """
    task = load_task(TASK)
    for share in SHARES[::3] if report.quick else SHARES:
        fast = split(task, share)
        times = microseconds(report, fast, task.rows)
        note = f"{fast.nbytes / 1e6:.1f} MB"
        report.add(
            "section 3",
            "split",
            "time",
            "µs",
            times,
            at=fast.nbytes / 1e6,
            note=f"rare below {share:g}; {note}",
        )


WORK: dict[str, Callable[[Report], None]] = {"table 1": table_1, "section 3": section_3}
PAPER = Paper(
    WORK,
    axes={"section 3": Axes("tables, MB", "µs per decision, one thread", x_scale="linear")},
    missing={"MaltParser itself": "its models of the Wall Street Journal cannot be had here"},
)

if __name__ == "__main__":
    PAPER.run()
