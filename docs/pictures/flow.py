"""Draw how data become a model, and a model becomes answers.

python docs/pictures/flow.py             # needs matplotlib; writes docs/_static/pictures/flow.svg
"""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from drawing import FAINT, OURS, PALE, TEXT, WIDTH, save


@dataclass(frozen=True)
class Box:
    """A step: where it stands, what it is called, and what belongs to it."""

    x: float
    y: float
    width: float
    height: float
    title: str
    words: str
    filled: bool = True


DATA = Box(
    0.0,
    8.6,
    4.6,
    2.5,
    "Data",
    "records: CSV, frames, dicts\nsparse rows, trees\nplain text, treebanks",
    False,
)
OTHER_MODELS = Box(
    5.4,
    5.5,
    4.6,
    2.5,
    "Other models",
    "scikit-learn: SVMs, pipelines\nLIBSVM, LIBLINEAR,\nSVMlight, TinySVM, ...",
    False,
)
TRAIN = Box(
    0.0, 5.5, 4.6, 2.5, "Train", "PolySVC, RankSVM, TreeSVC,\nPolyLogisticRegression, ...\nparsers, chunkers"
)
COMPILE = Box(1.0, 3.4, 8.0, 1.5, "Compile", "exact engines, measured on your rows")
FILE = Box(1.0, 1.8, 8.0, 1.2, "One .uk file", "encoder, model, names; memory-mapped, no pickle")
ANSWER = Box(0.0, -0.9, 3.2, 2.0, "Answer", "predict_one,\nexplain_one")
SERVE = Box(3.4, -0.9, 3.2, 2.0, "Serve", "HTTP, shell,\nMLflow, KServe")
REPORT = Box(6.8, -0.9, 3.2, 2.0, "Report", "measures,\ncurves, mistakes")
BOXES = (DATA, OTHER_MODELS, TRAIN, COMPILE, FILE, ANSWER, SERVE, REPORT)
ARROWS = (
    (DATA, TRAIN), (TRAIN, COMPILE), (OTHER_MODELS, COMPILE), (COMPILE, FILE),
    (FILE, ANSWER), (FILE, SERVE), (FILE, REPORT),
)  # fmt: skip


def draw_box(axes: Axes, box: Box) -> None:
    shape = FancyBboxPatch(
        (box.x, box.y), box.width, box.height, boxstyle="round,pad=0,rounding_size=0.15", linewidth=1.5,
        edgecolor=OURS if box.filled else FAINT, facecolor=PALE if box.filled else "none",
    )  # fmt: skip
    axes.add_patch(shape)
    center = box.x + box.width / 2
    axes.text(
        center, box.y + box.height - 0.18, box.title, ha="center", va="top", weight="bold", fontsize=10.5
    )
    axes.text(
        center, box.y + box.height - 0.72, box.words, ha="center", va="top", fontsize=8.5, color=TEXT,
        linespacing=1.45,
    )  # fmt: skip


def draw_arrow(axes: Axes, begin: Box, end: Box) -> None:
    """From the foot of one box to the top of another, in the middle of the width that both have."""
    middle = (max(begin.x, end.x) + min(begin.x + begin.width, end.x + end.width)) / 2
    start, stop = (middle, begin.y), (middle, end.y + end.height)
    axes.add_patch(
        FancyArrowPatch(
            start, stop, arrowstyle="-|>", mutation_scale=11, color=FAINT, linewidth=1.5, shrinkA=0, shrinkB=0
        )
    )


def draw() -> Figure:
    figure = Figure(figsize=(WIDTH, 5.9), layout="constrained")
    axes = figure.add_subplot()
    for box in BOXES:
        draw_box(axes, box)
    for begin, end in ARROWS:
        draw_arrow(axes, begin, end)
    axes.set(xlim=(-0.1, 10.1), ylim=(-1.0, 11.2), aspect="equal")
    axes.axis("off")
    return figure


if __name__ == "__main__":
    save(draw(), "flow")
