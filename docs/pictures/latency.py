"""Draw how long one answer takes: scikit-learn, ONNX Runtime, LIBSVM, pecco, and unkernel.

    python docs/pictures/latency.py          # needs matplotlib; writes docs/_static/pictures/latency.svg

The figures were saved by benchmarks/records_onnx.py and benchmarks/engines.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from drawing import (
    GRID,
    OURS,
    THEIRS,
    WIDTH,
    command_of,
    machine_of,
    microseconds,
    put_small_print,
    put_title,
    results,
    save,
    value_of,
)

RECORDS, ENGINES = results("records_onnx"), results("engines")
SIDES = (0.1, 200_000)  # microseconds
TICKS = (0.1, 1, 10, 100, 1000, 10_000)  # microseconds
TITLE_BEGINS = -0.32  # above the names, as a share of the width


@dataclass(frozen=True)
class Panel:
    """One question, and how long each took to answer it; ours is the last."""

    title: str
    microseconds: dict[str, float]


def record_panel(title: str, task: str) -> Panel:
    contenders = ("scikit-learn", "ONNX Runtime", "unkernel")
    times = {name: value_of(RECORDS, task, name, "label of a record") for name in contenders}
    return Panel(title, times)


def kernel_panel(degree: int) -> Panel:
    """One call per row from Python, then the time per row of many in one call."""
    task = f"a9a-10k-d{degree}"
    pecco = [
        figure for figure in ENGINES.figures if figure.task == task and figure.contender.startswith("pecco")
    ]
    times = {
        "SVC.predict": value_of(ENGINES, f"{task}, one row", "SVC, predict", "time"),
        "unkernel": value_of(ENGINES, f"{task}, one row", "unkernel, SVC compiled, score_one", "time"),
        "LIBSVM, batch": value_of(ENGINES, task, "LIBSVM", "scores"),
        "pecco, batch": min(one.value for one in pecco if one.value is not None),
        "unkernel, batch": value_of(ENGINES, task, "unkernel, auto", "scores"),
    }
    return Panel(f"Score a row of a9a, polynomial kernel of degree {degree}", times)


def panels() -> list[Panel]:
    return [
        record_panel(
            "Classify a record of Adult (14 columns), linear SVM",
            "Adult, OneHotEncoder + KBinsDiscretizer + LinearSVC",
        ),
        record_panel(
            "Find one of 150 intents of a sentence, tf-idf, linear SVM",
            "CLINC150, TfidfVectorizer(1-2) + LinearSVC",
        ),
        kernel_panel(2),
        kernel_panel(3),
    ]


def draw_panel(axes: Axes, panel: Panel) -> None:
    """One line per contender, a dot at its time, and the time in words."""
    names = list(panel.microseconds)
    for place, (name, taken) in enumerate(panel.microseconds.items()):
        ours = name.startswith("unkernel")
        color = OURS if ours else THEIRS
        axes.plot([SIDES[0], taken], [place, place], color=color, linewidth=5, solid_capstyle="butt")
        axes.text(
            taken * 1.25,
            place,
            microseconds(taken),
            va="center",
            fontsize=9,
            weight="bold" if ours else "normal",
        )
    axes.set_yticks(range(len(names)), names)
    for label in axes.get_yticklabels():
        label.set(weight="bold" if label.get_text().startswith("unkernel") else "normal")
    axes.set_title(panel.title, loc="left", x=TITLE_BEGINS, fontsize=9, weight="bold")
    axes.set(xscale="log", xlim=SIDES, ylim=(len(names) - 0.4, -0.6))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(TICKS, [microseconds(tick) for tick in TICKS])
    axes.grid(True, axis="x", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize=9)
    axes.spines[:].set_visible(False)


def draw(shown: Sequence[Panel]) -> Figure:
    heights = [len(panel.microseconds) + 1.2 for panel in shown]
    figure = Figure(figsize=(WIDTH, 0.225 * sum(heights) + 1.8), layout="constrained")
    put_title(figure, "Time of one prediction (logarithmic scale)")
    every = figure.subplots(len(shown), sharex=True, height_ratios=heights)
    for axes, panel in zip(every, shown, strict=True):
        draw_panel(axes, panel)
    put_small_print(figure, small_print())
    return figure


def small_print() -> str:
    return (
        "CPU time, one thread, best of several runs that took turns.\n"
        "batch: many rows in one call; pecco in its fastest exact mode.\n"
        f"{command_of(RECORDS)} ({RECORDS.state.date})\n"
        f"{command_of(ENGINES)} ({ENGINES.state.date})\n"
        f"{machine_of(RECORDS.state)}"
    )


if __name__ == "__main__":
    save(draw(panels()), "latency")
