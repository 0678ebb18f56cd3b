"""Draw curves of the benchmarks into files; nothing is drawn without matplotlib (the extra ``plot``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.report import Saved

INCHES = (7.0, 4.5)


@dataclass
class Curve:
    """The points of one contender's curve, in the order in which a line joins them."""

    name: str
    points: list[tuple[float, float]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)  # the label of each point, or ""

    def add(self, x: float, y: float, words: str = "") -> None:
        self.points.append((x, y))
        self.words.append(words)


@dataclass(frozen=True)
class Axes:
    """The labels and scales of both axes; sizes and times have logarithmic scales, accuracies do not."""

    x: str
    y: str
    x_scale: str = "log"
    y_scale: str = "log"


def collect_curves(files: Iterable[Saved]) -> Iterator[tuple[str, Axes, list[Curve]]]:
    """Yield a title, axes and curves for each figure of each task whose figures are points of curves.

    The name of the task gives the horizontal axis: "a9a against C" has C there.
    """
    for file in files:
        pictures: dict[tuple[str, str, str], dict[str, Curve]] = {}
        for figure in file.figures:
            if figure.at is not None and figure.value is not None:
                curves = pictures.setdefault((figure.task, figure.figure, figure.unit), {})
                curves.setdefault(figure.contender, Curve(figure.contender)).add(figure.at, figure.value)
        for (task, figure_name, unit), curves in pictures.items():
            scale = "linear" if unit == "%" else "log"
            axes = Axes(task.partition(" against ")[2], f"{figure_name}, {unit}", y_scale=scale)
            yield f"{file.benchmark}, {task}, {figure_name}", axes, list(curves.values())


def label_plainly(axis: Any) -> None:
    """Label a logarithmic axis with numbers such as 0.1 and 20 instead of powers of ten."""
    from matplotlib.ticker import LogFormatter

    class Plain(LogFormatter):
        def __call__(self, value: float, place: int | None = None) -> str:
            return f"{value:g}" if super().__call__(value, place) else ""

    axis.set_major_formatter(Plain())
    axis.set_minor_formatter(Plain(minor_thresholds=(1.5, 0.5)))


def draw(path: Path, title: str, axes: Axes, curves: list[Curve]) -> None:
    """Draw the curves that have points into a file; print its path, or the reason why nothing was drawn."""
    try:
        from matplotlib import rcParams
        from matplotlib.figure import Figure
    except ImportError as error:
        print(f"  {path}: not drawn ({error})")
        return
    figure = Figure(figsize=INCHES, layout="constrained")
    plot = figure.add_subplot()
    for curve in (non_empty for non_empty in curves if non_empty.points):
        plot.plot(*zip(*curve.points, strict=True), marker="o", markersize=4, label=curve.name)
        for point, words in zip(curve.points, curve.words, strict=True):
            plot.annotate(words, point, xytext=(5, 4), textcoords="offset points", fontsize=7)
    plot.set(xscale=axes.x_scale, yscale=axes.y_scale, xlabel=axes.x, ylabel=axes.y)
    plot.set_title(title, parse_math=False)
    for axis, scale in ((plot.xaxis, axes.x_scale), (plot.yaxis, axes.y_scale)):
        if scale == "log":
            label_plainly(axis)
    plot.grid(True, which="both", alpha=0.2)
    figure.legend(loc="outside upper center", ncols=2, frameon=False)  # where it hides no curve
    path.parent.mkdir(parents=True, exist_ok=True)
    rcParams["svg.hashsalt"] = path.stem  # the same figures make the same file
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    print(f"  {path}")
