"""A drawing of the engines that were tried: time against size. Needs matplotlib, which is optional."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unkernel.cli._tables import details
from unkernel.data.files import replaced
from unkernel.engines import Candidate

_FORMATS = (".png", ".svg", ".pdf")
_INCHES = (8.0, 5.5)
_DOTS_PER_INCH = 150


def refuse_format(path: Path) -> None:
    if path.suffix.lower() not in _FORMATS:
        raise ValueError(f"{path}: a plot is a file that ends in .png, .svg or .pdf")


def refuse_without_matplotlib() -> None:
    _figure_type()


def _figure_type() -> Any:
    """Matplotlib's figure without pyplot: needs no screen and leaves no state behind."""
    try:
        return importlib.import_module("matplotlib.figure").Figure
    except ImportError:
        raise ValueError("--plot needs matplotlib: pip install 'unkernel[plot]'") from None


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
    """Write a scatter plot, both axes logarithmic; the file appears whole or not at all."""
    figure = _figure_type()(figsize=_INCHES, layout="constrained")
    axes = figure.add_subplot()
    found = drawable(candidates)
    for engine in dict.fromkeys(candidate.engine for candidate in found):
        of_engine = [candidate for candidate in found if candidate.engine == engine]
        axes.scatter([c.nbytes for c in of_engine], [c.microseconds for c in of_engine], label=engine)
    for line in trie_lines(found):
        style = {"linestyle": "--", "color": "grey", "linewidth": 1, "zorder": 0}
        nbytes, times = [c.nbytes for c in line], [c.microseconds for c in line]
        axes.plot(nbytes, times, label=f"{line[0].engine}, by nodes of the trie", **style)
    best = frontier(found)
    for candidate in found:
        at = (candidate.nbytes, candidate.microseconds)
        if candidate.trie_nodes:
            words, place = f"{candidate.trie_nodes:,} nodes", (0, 8)
        else:  # words on all others would hide each other
            words, place = details(candidate) or candidate.engine, (4, -12)
        if candidate.trie_nodes or candidate in best:
            axes.annotate(words, at, xytext=place, textcoords="offset points", fontsize=7, rotation=20)
        if candidate.chosen:
            axes.scatter(*at, s=180, facecolors="none", edgecolors="black", label="chosen")
    axes.set(xscale="log", yscale="log", xlabel="bytes", ylabel="µs per row, one thread")
    axes.set_title(title, parse_math=False)
    axes.margins(x=0.25, y=0.15)  # room for the words
    axes.grid(True, which="both", alpha=0.2)
    axes.legend()
    with replaced(path) as file:
        figure.savefig(file, format=path.suffix.lower()[1:], dpi=_DOTS_PER_INCH)
