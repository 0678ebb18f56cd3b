"""Where not to use unkernel: few dense rows, here the digits of scikit-learn.

    python examples/dense_rows.py

With so few rows there are few support vectors to compare with, and a dense row of 64 pixels has thousands of
conjunctions: a kernel SVM trains faster, and is as good.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.console import Console
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from example_data import Rows
from example_output import best_seconds, print_note, print_table, timed
from unkernel import PolySVC

KERNEL: dict[str, Any] = {"gamma": 1.0, "coef0": 1.0, "C": 1.0}  # (<x, z> + 1)^degree

USE_INSTEAD = """\
Use something else where
- rows are few, as here, or dense with thousands of values each: SVC;
- single features are enough: LinearSVC, or our CuttingPlaneSVC for many rows;
- thresholds on values decide: gradient boosted trees;
- the kernel must be RBF: SVC; compile then gains a few times, not hundreds."""


@dataclass(frozen=True)
class Measured:
    """How one classifier did."""

    name: str
    ours: bool
    accuracy: float
    training_seconds: float
    rows_per_second: float


def digits() -> Rows:
    """Images of 8 x 8 pixels, from scikit-learn."""
    X, y = load_digits(return_X_y=True)
    train, test, labels, test_labels = train_test_split(
        X / 16.0, y, test_size=0.3, random_state=0, stratify=y
    )
    return Rows(train, labels, test, test_labels)


def fits(rows: Rows, degrees: tuple[int, ...] = (2, 3)) -> list[Measured]:
    """PolySVC and SVC of each degree."""
    found = []
    for degree in degrees:
        ours, theirs = PolySVC(degree, random_state=0, **KERNEL), SVC(kernel="poly", degree=degree, **KERNEL)
        for learner in (ours, theirs):
            _, seconds = timed(learner.fit, rows.train, rows.train_labels)
            answers = learner.predict(rows.test)
            found.append(
                Measured(
                    f"{type(learner).__name__}, degree {degree}",
                    learner is ours,
                    float((answers == rows.test_labels).mean()),
                    seconds,
                    rows.test.shape[0] / best_seconds(learner.predict, rows.test),
                )
            )
    return found


def show(console: Console, rows: Rows | None = None, degrees: tuple[int, ...] = (2, 3)) -> None:
    """A table, and what to use instead."""
    rows = digits() if rows is None else rows
    print_table(
        console,
        f"digits: {rows.shape}, dense; 10 classes",
        ("", "correct", "training", "rows/s"),
        (
            (
                each.ours,
                (
                    each.name,
                    f"{each.accuracy:.1%}",
                    f"{each.training_seconds:.2f} s",
                    f"{each.rows_per_second:,.0f}",
                ),
            )
            for each in fits(rows, degrees)
        ),
    )
    print_note(
        console,
        "The same kernel and C; PolySVC trains one class against the rest, SVC each pair of classes. With "
        "few rows, comparing them is cheaper than learning a weight for each of their many conjunctions.",
    )
    console.print(USE_INSTEAD, highlight=False, markup=False)


if __name__ == "__main__":
    show(Console())
