"""Embed matplotlib figures in a page as SVG, with text in the colour of the page."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import warnings
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from unkernel.report.markup import Html, clean_text, escape_html
from unkernel.report.search_plot import import_figure_class

INCHES = (4.6, 3.6)
SQUARE = (3.9, 3.6)
COLOURS = ("#2f7fc1", "#d9772b", "#2f9a68", "#8f66cf", "#c4506a", "#8a8a2d", "#3a9dab", "#8c6d5a")
GREY = "#8a8f98"
_TEXT = "#010203"  # a placeholder; `render_svg` replaces it by the text colour of the page
_SETTINGS = {
    "svg.fonttype": "none",  # text is not converted to paths, so files are small and text can be searched
    "svg.hashsalt": "unkernel",  # equal figures have equal ids
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.edgecolor": GREY,
    "axes.labelcolor": _TEXT,
    "axes.titlecolor": _TEXT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": GREY,
    "grid.alpha": 0.25,
    "text.color": _TEXT,
    "text.parse_math": False,  # names may contain dollars
    "xtick.color": _TEXT,
    "ytick.color": _TEXT,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
}
# Ids of elements, and references to them.
_IDS = re.compile(r'((?: id="|xlink:href="#|url\(#))([^")]+)')


@contextlib.contextmanager
def open_axes(inches: tuple[float, float] = INCHES) -> Iterator[Any]:
    """Yield empty axes in the style of the page."""
    make_figure = import_figure_class("a report")
    with importlib.import_module("matplotlib").rc_context(_SETTINGS), warnings.catch_warnings():
        # Ignore letters that matplotlib's font lacks, because the font of the page has them.
        warnings.simplefilter("ignore", UserWarning)
        figure = make_figure(figsize=inches, layout="constrained")
        figure.patch.set_alpha(0.0)
        axes = figure.add_subplot()
        axes.patch.set_alpha(0.0)
        yield axes


def render_svg(axes: Any, description: str) -> Html:
    """Return a figure as SVG; screen readers read `description` aloud."""
    file = io.StringIO()
    metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    axes.figure.savefig(file, format="svg", metadata=metadata, transparent=True)
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :].replace(_TEXT, "currentColor")
    prefix = f"p{zlib.crc32(svg.encode()):08x}-"  # makes ids unique in the page
    svg = _IDS.sub(lambda match: f"{match[1]}{prefix}{match[2]}", svg)
    box = re.search(r'viewBox="[^"]*"', svg)
    assert box is not None
    content = svg[svg.index(">") + 1 :]
    label = escape_html(description)
    start_tag = f'<svg xmlns:xlink="http://www.w3.org/1999/xlink" {box[0]} role="img" aria-label="{label}">'
    return Html(start_tag + content)


def draw_shares(
    axes: Any, xs: Sequence[float], shares: Sequence[tuple[float, float, float]], colour: str, name: str
) -> None:
    """Draw a line of shares with their confidence intervals; `shares` has (share, low, high) at each x."""
    axes.errorbar(
        xs,
        [share for share, _, _ in shares],
        yerr=[[share - low for share, low, _ in shares], [high - share for share, _, high in shares]],
        marker="o",
        markersize=4,
        capsize=2,
        color=colour,
        label=make_line_label(name),
    )


def add_legend(axes: Any, **settings: Any) -> None:
    """Add a legend if any line has a label."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(**settings)


def make_logarithmic(axes: Any) -> None:
    """Make the vertical axis logarithmic, with plain numbers instead of powers of ten."""
    axes.set_yscale("log", nonpositive="mask")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda *_: "")


def make_line_label(name: Any) -> str:
    """Return a name as the label of a line. Matplotlib ignores labels that begin with an underscore."""
    return "\N{ZERO WIDTH SPACE}" * str(name).startswith("_") + clean_text(name)
