"""Draw training time against rows: scikit-learn's SVC, LIBLINEAR on expanded rows, and unkernel.

    python docs/pictures/training_time.py    # needs matplotlib; writes training_time.svg

The figures are those that benchmarks/poly_scaling.py has saved.
"""

from __future__ import annotations

from matplotlib.figure import Figure

from drawing import (
    GRID,
    OTHERS,
    OURS,
    THEIRS,
    command_of,
    machine_of,
    put_small_print,
    put_title,
    results,
    save,
)

SAVED = results("poly_scaling")
TASK = "a9a against rows"
LINES = {
    "SVC": ("scikit-learn, SVC", THEIRS),
    "LIBLINEAR, rows expanded": ("LIBLINEAR, pairs written out", OTHERS),
    "unkernel": ("unkernel, PolySVC", OURS),
}


def draw() -> Figure:
    figure = Figure(figsize=(8.4, 4.4), layout="constrained", facecolor="white")
    put_title(figure, "Training time of an SVM with all pairs of features")
    axes = figure.add_subplot()
    for contender, (name, color) in LINES.items():
        points = [
            (one.at, one.value)
            for one in SAVED.figures
            if (one.task, one.contender) == (TASK, contender) and one.at and one.value
        ]
        axes.plot(*zip(*points, strict=True), marker="o", color=color, linewidth=2.5)
        axes.annotate(
            name, points[-1], xytext=(9, -3), textcoords="offset points", color=color, weight="bold"
        )
    axes.set(xscale="log", yscale="log", xlabel="training rows of a9a", ylabel="CPU seconds")
    axes.set_xlim(right=200_000)
    axes.set_xticks([1000, 3000, 10_000, 30_000], ["1,000", "3,000", "10,000", "30,000"])
    axes.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
    axes.minorticks_off()
    axes.grid(True, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    put_small_print(figure, small_print())
    return figure


def small_print() -> str:
    return (
        "Polynomial kernel of degree 2, one thread, best of several runs that took turns; each stops by its "
        "own rule and default tolerance.\n"
        f"Measured by: {command_of(SAVED)}\n{machine_of(SAVED.state)}"
    )


if __name__ == "__main__":
    save(draw(), "training_time")
