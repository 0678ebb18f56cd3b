"""A drawing of what was tried: time against size and against tries. Needs matplotlib, which is optional."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unkernel.data.files import name_of
from unkernel.data.replacing import replaced
from unkernel.engines import Candidate
from unkernel.engines.candidates import details, words

_FORMATS = (".png", ".svg", ".pdf")
_INCHES = (8.0, 5.5)
_DOTS_PER_INCH = 150
_TIME = "µs per row, one thread"


def check_format(path: Path) -> None:
    if path.suffix.lower() not in _FORMATS:
        raise ValueError(f"{path}: a plot is a file that ends in .png, .svg or .pdf")


def check_matplotlib(user: str = "--plot") -> None:
    """Fail now, and not after an hour of work, if nothing can be drawn."""
    figure_type(user)


def figure_type(user: str = "--plot") -> Any:
    """Matplotlib's figure without pyplot: needs no screen and leaves no state behind.

    Without matplotlib, the message says that the `user` needs it.
    """
    try:
        return importlib.import_module("matplotlib.figure").Figure
    except ImportError:
        raise ValueError(f"{user} needs matplotlib: pip install 'unkernel[plot]'") from None


def drawable(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that were built and measured."""
    return [candidate for candidate in candidates if candidate.nbytes > 0 and candidate.microseconds > 0]


def trie_lines(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Those that differ in their tries alone, the smallest first: without one, if that was measured."""
    lines: dict[Any, dict[int, Candidate]] = {}
    for candidate in candidates:
        if not candidate.fused and not candidate.grouped:
            below = candidate.engine, candidate.rare, candidate.head_bytes
            lines.setdefault(below, {})[candidate.trie_nodes] = candidate
    with_tries = [line for line in lines.values() if any(line) and len(line) > 1]
    return [[line[nodes] for nodes in sorted(line)] for line in with_tries]


def frontier(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that no other one beats in both time and size."""
    best: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda c: (c.nbytes, c.microseconds)):
        if not best or candidate.microseconds < best[-1].microseconds:
            best.append(candidate)
    return best


def draw(path: Path, candidates: Sequence[Candidate], title: str) -> None:
    """Write what time and size cost each other; the file appears whole or not at all."""
    found = drawable(candidates)
    lines = trie_lines(found)
    panels = 2 if lines else 1
    figure = new_figure(panels)
    axes = figure.add_subplot(1, panels, 1)
    _draw_all(axes, found, lines)
    axes.set_title(name_of(title), parse_math=False)
    if lines:
        _draw_tries(figure.add_subplot(1, panels, 2), found, lines)
    save_figure(figure, path)


def new_figure(panels: int) -> Any:
    """An empty figure with room for some panels side by side."""
    return figure_type()(figsize=(panels * _INCHES[0], _INCHES[1]), layout="constrained")


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure in the format that the file's name asks for, whole or not at all."""
    with replaced(path) as file:
        figure.savefig(file, format=path.suffix.lower()[1:], dpi=_DOTS_PER_INCH)


def _draw_all(axes: Any, found: Sequence[Candidate], lines: Sequence[Sequence[Candidate]]) -> None:
    """Microseconds against bytes, both logarithmic."""
    for engine in dict.fromkeys(candidate.engine for candidate in found):
        of_engine = [candidate for candidate in found if candidate.engine == engine]
        axes.scatter([c.nbytes for c in of_engine], [c.microseconds for c in of_engine], label=engine)
    for line in lines:
        nbytes, times = [c.nbytes for c in line], [c.microseconds for c in line]
        axes.plot(nbytes, times, "--", color="grey", zorder=0, label=f"{line[0].engine}, with tries")
    for candidate in frontier(found):  # words on all others would hide each other
        at = (candidate.nbytes, candidate.microseconds)
        axes.annotate(
            details(candidate) or candidate.engine,
            at,
            xytext=(4, -12),
            textcoords="offset points",
            fontsize=7,
        )
    for candidate in (candidate for candidate in found if candidate.chosen):
        at = (candidate.nbytes, candidate.microseconds)
        axes.scatter(*at, s=180, facecolors="none", edgecolors="black", label="chosen")
    axes.set(xscale="log", yscale="log", xlabel="bytes", ylabel=_TIME)
    axes.margins(x=0.25, y=0.15)  # room for the words
    axes.grid(True, which="both", alpha=0.2)
    axes.legend()


def _draw_tries(axes: Any, found: Sequence[Candidate], lines: Sequence[Sequence[Candidate]]) -> None:
    """Microseconds against the nodes of tries, beside what is fastest without one."""
    for line in lines:
        with_tries = [candidate for candidate in line if candidate.trie_nodes]
        nodes, times = [c.trie_nodes for c in with_tries], [c.microseconds for c in with_tries]
        axes.plot(nodes, times, marker="o", label=f"{line[0].engine}, with a trie")
    fastest = min((c for c in found if not c.trie_nodes), key=lambda c: c.microseconds, default=None)
    if fastest is not None:
        axes.axhline(fastest.microseconds, linestyle=":", color="black", label=f"without: {words(fastest)}")
    axes.set(xscale="log", xlabel="nodes of the trie", ylabel=_TIME)
    axes.set_ylim(bottom=0.0)
    axes.grid(True, which="both", alpha=0.2)
    axes.legend(fontsize=8)
