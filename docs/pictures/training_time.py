"""Draw training time against rows: scikit-learn's SVC, LIBLINEAR on expanded rows, and unkernel.

    python docs/pictures/training_time.py    # needs matplotlib; writes training_time.svg

The figures were saved by benchmarks/poly_scaling.py.
"""

from __future__ import annotations

from matplotlib.figure import Figure

from drawing import (
    GRID,
    OTHERS,
    OURS,
    THEIRS,
    WIDTH,
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
    figure = Figure(figsize=(WIDTH, 3.9), layout="constrained")
    put_title(figure, "Training time, all pairs of features")
    axes = figure.add_subplot()
    for contender, (name, color) in LINES.items():
        points = [
            (figure.at, figure.value)
            for figure in SAVED.figures
            if (figure.task, figure.contender) == (TASK, contender) and figure.at and figure.value
        ]
        axes.plot(*zip(*points, strict=True), marker="o", color=color, linewidth=2.5, label=name)
    axes.legend(loc="lower right", frameon=False, labelcolor="linecolor", prop={"weight": "bold", "size": 9})
    axes.set(xscale="log", yscale="log", xlabel="training rows of a9a", ylabel="CPU seconds")
    axes.set(xlim=(900, 35_000), ylim=(0.002, 10))
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
        "Degree 2, one thread, best of several runs that took turns;\n"
        "each stops by its own rule and default tolerance.\n"
        f"{command_of(SAVED)}\n{machine_of(SAVED.state)}"
    )


if __name__ == "__main__":
    save(draw(), "training_time")
