"""Plot the results of a search for engines with matplotlib: time against size, and time against trie size."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from unkernel.data.atomic_write import replace_file
from unkernel.data.files import name_of
from unkernel.engines import Candidate
from unkernel.engines.search.candidates import describe
from unkernel.measures.number_format import format_bytes

_FORMATS = (".png", ".svg", ".pdf")
_INCHES = (8.0, 5.5)
_DOTS_PER_INCH = 150
_TIME = "µs per row, one thread"
# Ticks of logarithmic axes, as pairs (minimum ratio, multipliers). If the largest value divided by the
# smallest is at least the minimum ratio, ticks are placed at these multiples of powers of ten.
_TICKS = ((1000.0, (1.0,)), (30.0, (1.0, 2.0, 5.0)), (1.3, (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)))
_MIN_LOG_RATIO = _TICKS[-1][0]
_LABEL_OFFSETS = ((0, 11), (9, 8), (11, 0), (9, -8), (0, -11), (-9, -8), (-11, 0), (-9, 8))  # in points


def check_format(path: Path) -> None:
    """Raise a ValueError if a file does not have the suffix of a plot."""
    if path.suffix.lower() not in _FORMATS:
        raise ValueError(f"{path}: a plot is a file that ends in .png, .svg or .pdf")


def check_matplotlib(user: str = "--plot") -> None:
    """Raise a ValueError if matplotlib is missing; to be called before a long search begins."""
    import_figure_class(user)


def import_figure_class(user: str = "--plot") -> Any:
    """Import matplotlib's figure class. pyplot is not used, because it has global state.

    If matplotlib is missing, the message of the ValueError begins with `user`.
    """
    try:
        return importlib.import_module("matplotlib.figure").Figure
    except ImportError:
        raise ValueError(f"{user} needs matplotlib: pip install 'unkernel[plot]'") from None


def select_measured(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates that were built and measured."""
    return [candidate for candidate in candidates if candidate.nbytes > 0 and candidate.microseconds > 0]


def group_trie_sizes(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Return lists of candidates that differ only in the size of the trie, each sorted by this size."""
    lines: dict[Any, dict[int, Candidate]] = {}
    for candidate in candidates:
        if not candidate.fused and not candidate.grouped:
            layout = candidate.engine, candidate.rare, candidate.head_bytes
            lines.setdefault(layout, {})[candidate.trie_nodes] = candidate
    lines_with_tries = [line for line in lines.values() if any(line) and len(line) > 1]
    return [[line[nodes] for nodes in sorted(line)] for line in lines_with_tries]


def find_frontier(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates for which no other candidate is both faster and smaller."""
    best: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda candidate: (candidate.nbytes, candidate.microseconds)):
        if not best or candidate.microseconds < best[-1].microseconds:
            best.append(candidate)
    return best


def draw(path: Path, candidates: Sequence[Candidate], title: str) -> None:
    """Plot time against size into a file, which is written completely or not at all."""
    candidates_to_draw = select_measured(candidates)
    lines = group_trie_sizes(candidates_to_draw)
    panels = 2 if lines else 1
    figure = new_figure(panels)
    axes = figure.add_subplot(1, panels, 1)
    _draw_all(axes, candidates_to_draw, lines)
    axes.set_title(name_of(title), parse_math=False)
    if lines:
        _draw_tries(figure.add_subplot(1, panels, 2), candidates_to_draw, lines)
    save_figure(figure, path)


def new_figure(panels: int) -> Any:
    """Return an empty figure with room for several panels side by side."""
    return import_figure_class()(figsize=(panels * _INCHES[0], _INCHES[1]), layout="constrained")


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure, completely or not at all; the suffix of the file determines the format."""
    with replace_file(path) as file:
        figure.savefig(file, format=path.suffix.lower()[1:], dpi=_DOTS_PER_INCH)


def _draw_all(axes: Any, candidates: Sequence[Candidate], lines: Sequence[Sequence[Candidate]]) -> None:
    """Plot microseconds against bytes on logarithmic axes, with a legend below the plot."""
    for engine in dict.fromkeys(candidate.engine for candidate in candidates):
        engine_candidates = [candidate for candidate in candidates if candidate.engine == engine]
        axes.scatter(
            [c.nbytes for c in engine_candidates], [c.microseconds for c in engine_candidates], label=engine
        )
    for line in lines:
        nbytes, times = [c.nbytes for c in line], [c.microseconds for c in line]
        axes.plot(nbytes, times, "--", color="grey", zorder=0, label=f"{line[0].engine}, with tries")
    for candidate in (candidate for candidate in candidates if candidate.chosen):
        point = (candidate.nbytes, candidate.microseconds)
        axes.scatter(*point, s=180, facecolors="none", edgecolors="black", label="chosen")
    axes.set(xlabel="size of the tables", ylabel=_TIME)
    axes.margins(x=0.12, y=0.12)  # leaves space for the numbers
    set_log_scale(axes, "x", [c.nbytes for c in candidates], format_bytes)
    set_log_scale(axes, "y", [c.microseconds for c in candidates], "{:g}".format)
    axes.grid(True, which="both", alpha=0.2)
    _number_frontier(axes, candidates)
    _add_legend_below(axes)


def set_log_scale(
    axes: Any, axis_name: str, values: Sequence[float], format_value: Callable[[float], str]
) -> None:
    """Make an axis logarithmic, with ticks at round numbers, written without powers of ten.

    If the values are nearly equal, the axis remains linear, because its range may contain no round number.
    """
    ticks, axis = importlib.import_module("matplotlib.ticker"), getattr(axes, f"{axis_name}axis")
    spread = max(values) / min(values)
    if spread >= _MIN_LOG_RATIO:
        axes.set(**{f"{axis_name}scale": "log"})
        round_numbers = next(numbers for ratio, numbers in _TICKS if spread >= ratio)
        axis.set_major_locator(ticks.LogLocator(subs=round_numbers))
        axis.set_minor_formatter(ticks.NullFormatter())
    axis.set_major_formatter(lambda value, _: format_value(value))


def _number_frontier(axes: Any, candidates: Sequence[Candidate]) -> None:
    """Write a number beside each candidate of the frontier, and add the numbers to the legend.

    Of the possible offsets, a number gets the one that is farthest from all points and other numbers.
    """
    axes.figure.draw_without_rendering()  # computes the positions of the points
    positions = axes.transData.transform([(c.nbytes, c.microseconds) for c in candidates])
    occupied = [tuple(position) for position in positions.tolist()]
    pixels = axes.figure.dpi / 72  # pixels per point
    for number, candidate in enumerate(find_frontier(candidates), 1):
        point = (candidate.nbytes, candidate.microseconds)
        x, y = axes.transData.transform(point).tolist()
        offset_at = {(x + pixels * offset[0], y + pixels * offset[1]): offset for offset in _LABEL_OFFSETS}
        best_position = max(
            offset_at, key=lambda position: min(math.dist(position, other) for other in occupied)
        )
        occupied.append(best_position)
        axes.annotate(
            str(number),
            point,
            xytext=offset_at[best_position],
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=8,
        )
        marker = {"linestyle": "", "marker": f"${number}$", "color": "black", "markeredgewidth": 0}
        axes.plot([], [], label=describe(candidate), **marker)


def _add_legend_below(axes: Any) -> None:
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, fontsize=8, frameon=False)


def _draw_tries(axes: Any, candidates: Sequence[Candidate], lines: Sequence[Sequence[Candidate]]) -> None:
    """Plot microseconds against trie nodes, with a line for the fastest candidate without a trie."""
    for line in lines:
        with_tries = [candidate for candidate in line if candidate.trie_nodes]
        nodes, times = [c.trie_nodes for c in with_tries], [c.microseconds for c in with_tries]
        axes.plot(nodes, times, marker="o", label=f"{line[0].engine}, with a trie")
    fastest = min((c for c in candidates if not c.trie_nodes), key=lambda c: c.microseconds, default=None)
    if fastest is not None:
        axes.axhline(
            fastest.microseconds, linestyle=":", color="black", label=f"without: {describe(fastest)}"
        )
    axes.set(xlabel="nodes of the trie", ylabel=_TIME)
    set_log_scale(axes, "x", [c.trie_nodes for line in lines for c in line if c.trie_nodes], "{:,.0f}".format)
    axes.set_ylim(bottom=0.0)
    axes.grid(True, which="both", alpha=0.2)
    _add_legend_below(axes)
