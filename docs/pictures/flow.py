"""Draw how data become a model, and a model becomes answers.

python docs/pictures/flow.py             # needs matplotlib; writes docs/_static/pictures/flow.svg
"""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from drawing import FAINT, OURS, TEXT, put_small_print, put_title, save

PALE = "#e8f1f8"


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

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


DATA = Box(
    0.0,
    2.4,
    2.5,
    2.6,
    "Data",
    "records: CSV, frames, dicts\nsparse rows: svmlight\nsentences: CoNLL-U\ntrees, plain text",
    False,
)
OTHER_MODELS = Box(
    0.0,
    0.2,
    5.5,
    1.7,
    "Models of others",
    "scikit-learn: SVMs, linear models, pipelines\nLIBSVM, LIBLINEAR, SVMlight, TinySVM, ...",
    False,
)
TRAIN = Box(
    3.1,
    2.4,
    2.4,
    2.6,
    "Train",
    "PolySVC, CuttingPlaneSVC\nPolyLogisticRegression\nRankSVM, TreeSVC\nparsers, chunkers",
)
COMPILE = Box(6.1, 1.5, 1.9, 2.2, "Compile", "exact engines,\nmeasured on\nyour rows")
FILE = Box(8.6, 1.5, 1.9, 2.2, "One .uk file", "encoder, model,\nnames; no pickle,\nmemory-mapped")
ANSWER = Box(11.1, 3.5, 2.4, 1.5, "Answer", "predict_one, in µs\nexplain_one")
SERVE = Box(11.1, 1.85, 2.4, 1.5, "Serve", "HTTP, command line\nMLflow, KServe")
REPORT = Box(11.1, 0.2, 2.4, 1.5, "Report", "measures, curves,\nmistakes explained")
BOXES = (DATA, OTHER_MODELS, TRAIN, COMPILE, FILE, ANSWER, SERVE, REPORT)
ARROWS = (
    (DATA, TRAIN), (TRAIN, COMPILE), (OTHER_MODELS, COMPILE), (COMPILE, FILE),
    (FILE, ANSWER), (FILE, SERVE), (FILE, REPORT),
)  # fmt: skip


def draw_box(axes: Axes, box: Box) -> None:
    shape = FancyBboxPatch(
        (box.x, box.y), box.width, box.height, boxstyle="round,pad=0,rounding_size=0.15", linewidth=1.5,
        edgecolor=OURS if box.filled else FAINT, facecolor=PALE if box.filled else "white",
    )  # fmt: skip
    axes.add_patch(shape)
    center = box.x + box.width / 2
    axes.text(
        center, box.y + box.height - 0.18, box.title, ha="center", va="top", weight="bold", fontsize=10.5
    )
    axes.text(
        center, box.y + box.height - 0.65, box.words, ha="center", va="top", fontsize=7.5, color=TEXT,
        linespacing=1.45,
    )  # fmt: skip


def draw_arrow(axes: Axes, begin: Box, end: Box) -> None:
    """From the right side of one box to the left side of another, at the height that both have."""
    low, high = max(begin.y, end.y), min(begin.y + begin.height, end.y + end.height)
    between = (low + high) / 2 if low < high else None
    start = (begin.x + begin.width, begin.middle if between is None else between)
    stop = (end.x, end.middle if between is None else between)
    axes.add_patch(
        FancyArrowPatch(start, stop, arrowstyle="-|>", mutation_scale=14, color=FAINT, linewidth=1.5)
    )


def draw() -> Figure:
    figure = Figure(figsize=(9.6, 4.3), layout="constrained", facecolor="white")
    put_title(figure, "From data, or from a model that you have, to answers")
    axes = figure.add_subplot()
    for box in BOXES:
        draw_box(axes, box)
    for begin, end in ARROWS:
        draw_arrow(axes, begin, end)
    axes.set(xlim=(-0.1, 13.6), ylim=(0.0, 5.2), aspect="equal")
    axes.axis("off")
    put_small_print(figure, "Drawn by: python docs/pictures/flow.py")
    return figure


if __name__ == "__main__":
    save(draw(), "flow")
