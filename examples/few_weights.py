"""Sparse models: accuracy against the number of weights that are not zero, along a path of C.

    python examples/few_weights.py

With an l1 penalty most weights are zero, and only the conjunctions that may matter are ever stored. The
optimum is still that over all conjunctions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from example_data import Rows, binary_rows
from example_output import print_note, print_table, timed
from unkernel import PolyLogisticRegression, PolySVC

PATH_OF_C = (0.02, 0.05, 0.2, 1.0)
KERNEL: dict[str, Any] = {"degree": 2, "gamma": 0.1, "random_state": 0}


@dataclass(frozen=True)
class SparseFit:
    """A model, and how many of its weights are not zero."""

    name: str
    C: float
    training_seconds: float
    conjunctions: int
    accuracy: float


def sparse_fits(rows: Rows) -> Iterator[SparseFit]:
    """An SVM that keeps all conjunctions, then two learners with an l1 penalty, the smallest models first."""
    learners: dict[str, tuple[Any, Sequence[float]]] = {
        "PolySVC": (PolySVC(**KERNEL), (1.0,)),
        "PolySVC, l1": (
            PolySVC(penalty="l1", loss="squared_hinge", warm_start=True, **KERNEL),
            PATH_OF_C,
        ),
        "PolyLogisticRegression, l1": (
            PolyLogisticRegression(penalty="l1", warm_start=True, **KERNEL),
            PATH_OF_C,
        ),
    }
    for name, (learner, costs) in learners.items():
        for C in costs:
            _, seconds = timed(learner.set_params(C=C).fit, rows.train, rows.train_labels)
            accuracy = float((learner.predict(rows.test) == rows.test_labels).mean())
            yield SparseFit(name, C, seconds, learner.to_model().n_conjunctions, accuracy)


def show(console: Console, rows: Rows | None = None) -> None:
    """A table of all fits."""
    rows = binary_rows() if rows is None else rows
    lines = []
    last = ""
    for fit in sparse_fits(rows):
        cells = (
            "" if fit.name == last else fit.name,
            f"{fit.C:g}",
            f"{fit.training_seconds:.2f} s",
            f"{fit.conjunctions:,}",
            f"{fit.accuracy:.1%}",
        )
        lines.append((True, cells))
        last = fit.name
    print_table(console, f"{rows.shape}", ("", "C", "training", "conjunctions", "correct"), lines)
    print_note(
        console,
        "With an l1 penalty most weights are zero: a model of a few hundred conjunctions may be as good as "
        "one of tens of thousands. Each fit starts from the one above it.",
    )


if __name__ == "__main__":
    show(Console())
