"""Sparse binary rows and pairs of features that matter: a kernel SVM, and three faster ways to the same.

    python examples/sparse_rows.py

``SVC`` compares every row with thousands of support vectors. ``PolySVC`` trains the same kind of classifier
in the feature space of the kernel, one weight per conjunction. ``compile`` turns an ``SVC`` that you already
have into an exact, fast classifier. Writes a picture, sparse_rows.svg.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import SVC, LinearSVC

from example_chart import COMPILED, OURS, THEIRS, Chart, Dot, Line
from example_data import Rows, binary_rows
from example_output import best_seconds, print_note, print_table, timed
from unkernel import PolySVC, compile

KERNEL: dict[str, Any] = {"degree": 2, "gamma": 0.1, "coef0": 1.0, "C": 1.0}  # (0.1 <x, z> + 1)^2
SIZES = (1000, 2000, 4000, 8000, 16_000, 32_000)
LARGEST_FOR_SVC = 4000  # its training time grows with the square of the rows
_SINGLE_ROWS = 100


@dataclass(frozen=True)
class Measured:
    """How one classifier did; `training_seconds` of a compiled one is the time to compile it."""

    name: str
    ours: bool
    accuracy: float
    training_seconds: float
    one_row_seconds: float
    rows_per_second: float


def fits(rows: Rows) -> list[Measured]:
    """SVC, the same SVC compiled, PolySVC, and products of features written out for a linear SVM."""
    svc, svc_seconds = timed(SVC(kernel="poly", **KERNEL).fit, rows.train, rows.train_labels)
    fast, compile_seconds = timed(lambda: compile(svc, sample=rows.train[:1000]))
    assert (fast.predict(rows.test) == svc.predict(rows.test)).all()  # exact, not approximate
    poly, poly_seconds = timed(PolySVC(**KERNEL, random_state=0).fit, rows.train, rows.train_labels)
    products = make_pipeline(
        PolynomialFeatures(2, interaction_only=True), LinearSVC(C=0.1, max_iter=10_000, random_state=0)
    )
    _, products_seconds = timed(products.fit, rows.train, rows.train_labels)
    return [
        measure("SVC", svc, svc_seconds, rows),
        measure("compile(that SVC)", fast, compile_seconds, rows),
        measure("PolySVC", compile(poly), poly_seconds, rows),
        measure("PolynomialFeatures + LinearSVC", products, products_seconds, rows),
    ]


def measure(name: str, classifier: Any, training_seconds: float, rows: Rows) -> Measured:
    """Accuracy, the time of one row on its own, and rows per second when all come at once."""
    singles = [rows.test[place : place + 1] for place in range(_SINGLE_ROWS)]
    ours = hasattr(classifier, "score_one")
    if ours:
        ids = [row.indices for row in singles]
        one_row = best_seconds(lambda: [classifier.score_one(row) for row in ids])
    else:
        one_row = best_seconds(lambda: [classifier.predict(row) for row in singles], repetitions=1)
    answers, all_rows = timed(classifier.predict, rows.test)
    if ours:  # so fast that one call says little
        all_rows = best_seconds(classifier.predict, rows.test, repetitions=5)
    accuracy = float((answers == rows.test_labels).mean())
    return Measured(
        name,
        ours,
        accuracy,
        training_seconds,
        one_row / len(singles),
        rows.test.shape[0] / all_rows,
    )


def growth(rows: Rows, sizes: Sequence[int], svc_below: int) -> dict[str, dict[int, float]]:
    """Training seconds by the number of rows; those of SVC only below a number of rows."""
    found: dict[str, dict[int, float]] = {"PolySVC": {}, "SVC": {}}
    for size in sizes:
        part = rows.first(size)
        found["PolySVC"][size] = timed(PolySVC(**KERNEL).fit, part.train, part.train_labels)[1]
        if size < svc_below:
            found["SVC"][size] = timed(SVC(kernel="poly", **KERNEL).fit, part.train, part.train_labels)[1]
    return found


def draw(path: Path, seconds: dict[str, dict[int, float]], measured: Sequence[Measured]) -> None:
    """Training time against rows, and answers per second."""
    chart = Chart("Sparse rows, polynomial kernel of degree 2, one core")
    colors = {"PolySVC": OURS, "SVC": THEIRS, "compile(that SVC)": COMPILED}
    chart.add_lines(
        "Training: seconds against rows",
        "training rows, logarithmic",
        "CPU seconds, logarithmic",
        [
            Line(name, colors[name], list(times), list(times.values()))
            for name, times in seconds.items()
            if times
        ],
    )
    chart.add_dots(
        "Answering: rows per second",
        "rows per second, logarithmic",
        [Dot(each.name, colors.get(each.name, THEIRS), each.rows_per_second) for each in measured],
    )
    chart.save(path)


def show(
    console: Console, picture: Path, *, sizes: Sequence[int] = SIZES, largest_for_svc: int = LARGEST_FOR_SVC
) -> Rows:
    """Two tables and the picture; returns the rows of the first table."""
    rows = binary_rows(train=max(sizes))
    part = rows.first(largest_for_svc)
    measured = fits(part)
    seconds = growth(rows, sizes, largest_for_svc)
    seconds["SVC"][largest_for_svc] = measured[0].training_seconds
    print_table(
        console,
        f"{part.shape}, binary; kernel of degree 2",
        ("", "correct", "training", "one row", "rows/s"),
        (
            (
                each.ours,
                (
                    each.name,
                    f"{each.accuracy:.1%}",
                    f"{each.training_seconds:.2f} s",
                    f"{1e6 * each.one_row_seconds:,.1f} µs",
                    f"{each.rows_per_second:,.0f}",
                ),
            )
            for each in measured
        ),
    )
    console.print()
    print_table(
        console,
        "training seconds by the number of rows",
        ("", *(f"{size:,}" for size in sizes)),
        (
            (name == "PolySVC", (name, *(f"{times[size]:.2f}" if size in times else "-" for size in sizes)))
            for name, times in seconds.items()
        ),
    )
    draw(picture, seconds, measured)
    print_note(
        console,
        "CPU times of this run, one core. 'one row' is score_one for ours and predict for scikit-learn. "
        "compile gives the SVC's own answers, on all test rows; its 'training' is the compilation. '-' is "
        "left out: the time of SVC grows with the square of the rows.",
    )
    return part


if __name__ == "__main__":
    picture = Path("sparse_rows.svg")
    show(Console(), picture)
    print(f"picture: {picture}")
