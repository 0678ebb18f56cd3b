"""Charts as SVG files, without any library: lines and dots on logarithmic scales."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

OURS, THEIRS, COMPILED = "#0072b2", "#8a8a8a", "#009e73"
_TEXT, _GRID = "#333333", "#dddddd"
_HEIGHT, _PANEL_WIDTH = 360, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 30, 60, 55
_CHARACTER = 7.0  # the width of a character, about


@dataclass(frozen=True)
class Line:
    """Points of one curve."""

    name: str
    color: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True)
class Dot:
    """One value with a name."""

    name: str
    color: str
    value: float


@dataclass
class Chart:
    """Panels side by side; :meth:`save` writes the file."""

    title: str
    panels: list[str] = field(default_factory=list)

    def add_lines(self, title: str, x_label: str, y_label: str, lines: Sequence[Line]) -> None:
        """Curves over logarithmic axes, each with its name at its last point."""
        x = _Scale([value for line in lines for value in line.x], _LEFT, _PANEL_WIDTH - _RIGHT)
        y = _Scale([value for line in lines for value in line.y], _HEIGHT - _BOTTOM, _TOP)
        shapes = [_text(_LEFT - 50, _TOP - 20, title, weight="bold")]
        for tick in y.ticks():
            shapes.append(_rule(_LEFT, y(tick), _PANEL_WIDTH - _RIGHT, y(tick)))
            shapes.append(_text(_LEFT - 8, y(tick) + 4, f"{tick:g}", anchor="end"))
        for tick in sorted({value for line in lines for value in line.x}):
            shapes.append(_text(x(tick), _HEIGHT - _BOTTOM + 18, _short(tick), anchor="middle"))
        for line in lines:
            shapes += _curve(line, x, y)
        middle = (_LEFT + _PANEL_WIDTH - _RIGHT) / 2
        shapes.append(_text(middle, _HEIGHT - 15, x_label, anchor="middle"))
        shapes.append(_text(16, (_TOP + _HEIGHT - _BOTTOM) / 2, y_label, anchor="middle", turned=True))
        self.panels.append("\n".join(shapes))

    def add_dots(self, title: str, label: str, dots: Sequence[Dot]) -> None:
        """One dot for each value along a logarithmic axis, with name and value."""
        foot, end = 20, _PANEL_WIDTH - 60
        scale = _Scale([dot.value for dot in dots], foot, end, whole_decades=True)
        step = (_HEIGHT - _TOP - _BOTTOM) / len(dots)
        shapes = [_text(foot, _TOP - 20, title, weight="bold")]
        for tick in scale.ticks():
            shapes.append(_rule(scale(tick), _TOP, scale(tick), _HEIGHT - _BOTTOM))
            shapes.append(_text(scale(tick), _HEIGHT - _BOTTOM + 18, _short(tick), anchor="middle"))
        for place, dot in enumerate(dots):
            middle = _TOP + (place + 0.5) * step
            words = f"{dot.name}: {dot.value:,.0f}"
            width = _CHARACTER * len(words)
            begin = min(max(scale(dot.value) - width / 2, foot), _PANEL_WIDTH - width)
            shapes.append(_circle(scale(dot.value), middle + 8, 7, dot.color))
            shapes.append(_text(begin, middle - 8, words))
        shapes.append(_text((foot + end) / 2, _HEIGHT - 15, label, anchor="middle"))
        self.panels.append("\n".join(shapes))

    def save(self, path: Path) -> None:
        """Write the SVG file."""
        width = _PANEL_WIDTH * len(self.panels)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{_HEIGHT + 30}" '
            f'viewBox="0 0 {width} {_HEIGHT + 30}" font-family="sans-serif" font-size="12">',
            f"<title>{escape(self.title)}</title>",
            '<rect width="100%" height="100%" fill="white"/>',
            _text(20, 24, self.title, weight="bold", size=15),
        ]
        for place, panel in enumerate(self.panels):
            parts.append(f'<g transform="translate({place * _PANEL_WIDTH},30)">\n{panel}\n</g>')
        path.write_text("\n".join([*parts, "</svg>\n"]), encoding="utf-8")


class _Scale:
    """A logarithmic scale from values to places."""

    def __init__(
        self, values: Sequence[float], begin: float, end: float, *, whole_decades: bool = False
    ) -> None:
        low, high = math.log10(min(values)), math.log10(max(values))
        if whole_decades or high - low < 0.1:
            low, high = math.floor(low), math.ceil(high + 0.05)
        self._low, self._high, self._begin, self._end = low, high, begin, end

    def __call__(self, value: float) -> float:
        share = (math.log10(value) - self._low) / (self._high - self._low)
        return self._begin + share * (self._end - self._begin)

    def ticks(self) -> list[float]:
        return [10.0**power for power in range(math.ceil(self._low), math.floor(self._high) + 1)]


def _curve(line: Line, x: _Scale, y: _Scale) -> list[str]:
    places = [(x(a), y(b)) for a, b in zip(line.x, line.y, strict=True)]
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
    shapes = [f'<polyline points="{points}" fill="none" stroke="{line.color}" stroke-width="2.5"/>']
    shapes += [_circle(a, b, 4, line.color) for a, b in places]
    last_x, last_y = places[-1]
    if last_x > 0.7 * _PANEL_WIDTH:  # beside the point there is no room
        place, anchor = (last_x, last_y - 12), "end"
    else:
        place, anchor = (last_x + 10, last_y + 4), "start"
    return [*shapes, _text(*place, line.name, anchor=anchor, color=line.color, weight="bold")]


def _circle(x: float, y: float, radius: int, color: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{color}"/>'


def _text(
    x: float,
    y: float,
    words: str,
    *,
    anchor: str = "start",
    weight: str = "normal",
    size: int = 12,
    color: str = _TEXT,
    turned: bool = False,
) -> str:
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" font-size="{size}" '
        f'fill="{color}"{turn}>{escape(words)}</text>'
    )


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{_GRID}"/>'


def _short(value: float) -> str:
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"
