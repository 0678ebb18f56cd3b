"""Draw the contributions of columns as SVG: curves, categories on a line each, and heat maps."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unkernel.engines.explain.shapes import Cell, Shape
from unkernel.report.figures import COLOURS, GREY
from unkernel.report.markup import Html, escape_html, join_parts

Numbers = NDArray[np.float64]

_WIDTH, _HEIGHT = 440.0, 290.0  # in pixels, like all lengths below
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 12.0, 30.0, 52.0  # margins of curves
_LABEL_WIDTH, _ROW_HEIGHT = 140.0, 18.0  # sizes for categories
_LETTER_WIDTH = 6.8
_DENSITY_HEIGHT = 22.0  # height of the bars that show how many records have a value
_MAX_LISTED = 30  # largest number of categories in a drawing
_MAX_GRID_CELLS = 24  # largest number of cells per side of a heat map
_MAX_LINES = len(COLOURS)
_POSITIVE, _NEGATIVE = COLOURS[0], COLOURS[1]
_MAX_UNEVENNESS = 60.0  # if widths of intervals differ by a larger ratio, all are drawn equally wide


def draw_shape(shape: Shape, score: int | None = None) -> Html:
    """Draw the contribution of a column or a pair of columns to one score, or to all if `score` is None."""
    if len(shape.columns) > 1:
        return _draw_heat_map(shape, score)
    scores = list(range(len(shape.score_names)))[:_MAX_LINES] if score is None else [score]
    if sum(cell.is_interval for cell in shape.cells[0]) > 1:
        return _draw_curve(shape, scores)
    return _draw_categories(shape, scores)


# --- Curves -------------------------------------------------------------------------------------------


def _draw_curve(shape: Shape, scores: Sequence[int]) -> Html:
    """Draw a step line per score over the intervals of a column and, at the right, one other value."""
    cells = shape.cells[0]
    numbers = [index for index, cell in enumerate(cells) if cell.is_interval]
    others = [index for index, cell in enumerate(cells) if not cell.is_interval]
    right = _RIGHT + 60.0 * bool(others)
    edges = _place_edges([cells[index] for index in numbers], _LEFT, _WIDTH - right)
    scale = _Scale.spanning(shape.scores[:, scores], _HEIGHT - _BOTTOM - _DENSITY_HEIGHT, _TOP)
    parts = [*_draw_value_axis(scale, _LEFT, _WIDTH - _RIGHT)]
    parts += _draw_number_axis([cells[index] for index in numbers], edges)
    largest = max(cell.count for cell in cells)
    base = _HEIGHT - _BOTTOM
    for left, end, index in zip(edges[:-1], edges[1:], numbers, strict=True):
        parts.append(_draw_density(left, end, base, cells[index], largest))
    for line, score in enumerate(scores):
        values = shape.scores[:, score]
        points = [
            f"{x:.1f},{scale.place(values[index]):.1f}"
            for left, end, index in zip(edges[:-1], edges[1:], numbers, strict=True)
            for x in (left, end)
        ]
        parts.append(
            f'<polyline points="{" ".join(points)}" fill="none" stroke="{COLOURS[line]}" stroke-width="1.8"/>'
        )
    for place, index in enumerate(others[:1]):
        x = _WIDTH - _RIGHT - 30.0 + 40.0 * place
        parts.append(_draw_density(x - 6, x + 6, base, cells[index], largest))
        parts.append(_write(x, base + 14, cells[index].label, anchor="middle"))
        for line, score in enumerate(scores):
            y = scale.place(float(shape.scores[index, score]))
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{COLOURS[line]}"/>')
    parts.append(_write((_LEFT + _WIDTH - right) / 2, _HEIGHT - 8, shape.columns[0], anchor="middle"))
    parts += _draw_legend(shape, scores)
    return _make_svg(parts, _WIDTH, _HEIGHT, shape, scores)


def _place_edges(cells: Sequence[Cell], left: float, right: float) -> list[float]:
    """Return the horizontal positions of the edges of adjacent intervals, or of single numbers.

    Intervals are drawn to scale or, if their widths differ too much, all with the same width.
    """
    inner = [cell.low for cell in cells[1:]]
    gaps = np.diff(inner)
    is_even = len(inner) > 1 and gaps.max() <= _MAX_UNEVENNESS * max(float(np.median(gaps)), 1e-300)
    if not is_even:
        return [left + (right - left) * k / len(cells) for k in range(len(cells) + 1)]
    margin = float(np.median(gaps))
    first = cells[0].low if math.isfinite(cells[0].low) else inner[0] - margin
    last = cells[-1].high if math.isfinite(cells[-1].high) else inner[-1] + margin
    last = max(last, inner[-1] + margin)
    return [left + (right - left) * (edge - first) / (last - first) for edge in [first, *inner, last]]


def _draw_number_axis(cells: Sequence[Cell], edges: Sequence[float]) -> list[str]:
    """Label the edges between intervals below the curve; omit edges for which there is no room."""
    base = _HEIGHT - _BOTTOM
    parts = [_draw_line(edges[0], base, edges[-1], base)]
    end = -math.inf
    for x, cell in zip(edges[1:-1], cells[1:], strict=True):
        text = f"{cell.low:.6g}"
        half = len(text) * _LETTER_WIDTH / 2
        if x - half < end + 8:
            continue
        parts += [_draw_line(x, base, x, base + 4), _write(x, base + 15, text, anchor="middle")]
        end = x + half
    return parts


def _draw_density(left: float, right: float, base: float, cell: Cell, largest: int) -> str:
    """Draw a grey bar whose height is the number of records in a cell, relative to the largest number."""
    height = _DENSITY_HEIGHT * cell.count / largest
    width = max(right - left - 0.5, 0.5)
    return (
        f'<rect x="{left:.1f}" y="{base - height:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'fill="{GREY}" fill-opacity="0.45"><title>{escape_html(cell.label)}: {cell.count:,} records</title>'
        "</rect>"
    )


# --- Categories ---------------------------------------------------------------------------------------


def _draw_categories(shape: Shape, scores: Sequence[int]) -> Html:
    """Draw one line per frequent category, the largest contribution to the first score at the top."""
    listed = sorted(range(len(shape.cells[0])), key=lambda k: -shape.cells[0][k].count)[:_MAX_LISTED]
    listed.sort(key=lambda k: -float(shape.scores[k, scores[0]]))
    n_hidden = len(shape.cells[0]) - len(listed)
    height = _TOP + _ROW_HEIGHT * (len(listed) + bool(n_hidden)) + 30
    scale = _Scale.spanning(shape.scores[listed][:, scores], _LABEL_WIDTH + 8, _WIDTH - _RIGHT - 8)
    zero = scale.place(0.0)
    parts = [_draw_line(zero, _TOP, zero, height - 26)]
    for tick in scale.ticks():
        x = scale.place(tick)
        parts += [_draw_line(x, _TOP, x, height - 26, faint=True)]
        parts += [_write(x, height - 12, f"{tick:g}", anchor="middle")]
    for row, index in enumerate(listed):
        cell, y = shape.cells[0][index], _TOP + _ROW_HEIGHT * (row + 0.5)
        label = f"{_shorten(cell.label, _LABEL_WIDTH)}"
        parts.append(
            _write(_LABEL_WIDTH, y + 4, label, anchor="end", title=f"{cell.label}: {cell.count:,} records")
        )
        for line, score in enumerate(scores):
            x = scale.place(float(shape.scores[index, score]))
            if len(scores) == 1:
                parts.append(_draw_line(zero, y, x, y, colour=COLOURS[0], width=3))
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{COLOURS[line]}"/>')
    if n_hidden:
        y = _TOP + _ROW_HEIGHT * (len(listed) + 0.5)
        parts.append(_write(_LABEL_WIDTH, y + 4, f"{n_hidden:,} rarer values", anchor="end"))
    parts += _draw_legend(shape, scores)
    return _make_svg(parts, _WIDTH, height, shape, scores)


# --- Heat maps ----------------------------------------------------------------------------------------


def _draw_heat_map(shape: Shape, score: int | None) -> Html:
    """Draw a grid of the values of two columns; without a `score`, that with the largest contributions."""
    if score is None:
        score = int(np.argmax(np.abs(shape.scores).max(axis=(0, 1), initial=0.0)))
    values, rows, columns = _coarsen(shape.scores[:, :, score], *shape.cells)
    left, top = _LABEL_WIDTH + 8, _TOP + 6
    width = (_WIDTH - _RIGHT - left) / len(columns)
    bottom = top + _ROW_HEIGHT * len(rows)
    longest = min(max(len(label) for label in columns), 16)
    height = bottom + 30 + longest * _LETTER_WIDTH * 0.8
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    parts = []
    for i, row_label in enumerate(rows):
        y = top + _ROW_HEIGHT * i
        parts.append(_write(left - 6, y + 13, _shorten(row_label, _LABEL_WIDTH - 20), anchor="end"))
        for j, column_label in enumerate(columns):
            value = float(values[i, j])
            fill = _POSITIVE if value > 0 else _NEGATIVE
            parts.append(
                f'<rect x="{left + width * j:.1f}" y="{y:.1f}" width="{width:.2f}" height="{_ROW_HEIGHT}" '
                f'fill="{fill}" fill-opacity="{abs(value) / largest:.3f}">'
                f"<title>{escape_html(row_label)}, {escape_html(column_label)}: {value:+.4g}</title></rect>"
            )
    parts.append(
        f'<rect x="{left}" y="{top}" width="{width * len(columns):.1f}" height="{bottom - top:.1f}" '
        f'fill="none" stroke="{GREY}" stroke-opacity="0.6"/>'
    )
    for j, column_label in enumerate(columns):
        x, y = left + width * (j + 0.5), bottom + 10
        text = escape_html(_shorten(column_label, 16 * _LETTER_WIDTH))
        parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="end" transform="rotate(-45 {x:.1f} {y:.1f})">'
            f"{text}</text>"
        )
    parts.append(_write(left - 6, top - 8, shape.columns[0], anchor="end"))
    parts.append(_write(_WIDTH - _RIGHT, height - 6, shape.columns[1], anchor="end"))
    parts += _draw_scale_of_colours(left, largest, shape.score_names[score])
    return _make_svg(parts, _WIDTH, height, shape, [score])


def _draw_scale_of_colours(left: float, largest: float, name: str) -> list[str]:
    text = f"{-largest:.2g}"
    x = left + len(text) * _LETTER_WIDTH + 6
    parts = [_write(left, 14, text)]
    for k in range(-5, 6):
        fill = _POSITIVE if k > 0 else _NEGATIVE
        parts.append(
            f'<rect x="{x:.1f}" y="5" width="8" height="11" fill="{fill}" fill-opacity="{abs(k) / 5:.1f}"/>'
        )
        x += 8
    return [*parts, _write(x + 6, 14, f"{largest:+.2g} for {name}")]


def _coarsen(
    values: Numbers, first: Sequence[Cell], second: Sequence[Cell]
) -> tuple[Numbers, list[str], list[str]]:
    """Merge adjacent intervals and omit rare categories, to limit the number of cells of a heat map."""
    row_weights, row_labels = _group_cells(first)
    column_weights, column_labels = _group_cells(second)
    return row_weights @ values @ column_weights.T, row_labels, column_labels


def _group_cells(cells: Sequence[Cell]) -> tuple[Numbers, list[str]]:
    """Return the weight of each cell in each group, of shape (groups, cells), and the groups' labels."""
    intervals = [k for k, cell in enumerate(cells) if cell.is_interval]
    others = sorted(
        (k for k, cell in enumerate(cells) if not cell.is_interval), key=lambda k: -cells[k].count
    )
    n_others = min(len(others), _MAX_GRID_CELLS // 4 if intervals else _MAX_GRID_CELLS)
    n_groups = min(len(intervals), _MAX_GRID_CELLS - n_others)
    groups = [list(map(int, group)) for group in np.array_split(intervals, n_groups)] if n_groups else []
    groups += [[k] for k in others[:n_others]]
    weights = np.zeros((len(groups), len(cells)))
    labels = []
    for row, group in enumerate(groups):
        counts = np.array([cells[k].count for k in group], dtype=np.float64)
        weights[row, group] = counts / counts.sum()
        labels.append(
            cells[group[0]].label if len(group) == 1 else _label_group(cells[group[0]], cells[group[-1]])
        )
    return weights, labels


def _label_group(first: Cell, last: Cell) -> str:
    if not math.isfinite(first.low):
        return f"< {last.high:.4g}"
    return f">= {first.low:.4g}" if not math.isfinite(last.high) else f"[{first.low:.4g}, {last.high:.4g})"


# --- Parts of drawings --------------------------------------------------------------------------------


class _Scale:
    """Positions of contributions on an axis from `begin` to `end` that contains 0."""

    def __init__(self, low: float, high: float, begin: float, end: float) -> None:
        self.low, self.high, self.begin, self.end = low, high, begin, end

    @classmethod
    def spanning(cls, values: Numbers, begin: float, end: float) -> _Scale:
        """Return a scale with room for these values."""
        low, high = min(float(values.min(initial=0.0)), 0.0), max(float(values.max(initial=0.0)), 0.0)
        margin = 0.05 * (high - low) or 1.0
        return cls(low - margin, high + margin, begin, end)

    def place(self, value: float) -> float:
        return self.begin + (self.end - self.begin) * (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Return about five round numbers for the ticks of the axis."""
        raw = (self.high - self.low) / 5
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= raw)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [float(f"{k * step:.6g}") for k in range(first, last + 1)]


def _draw_value_axis(scale: _Scale, left: float, right: float) -> list[str]:
    parts = []
    for tick in scale.ticks():
        y = scale.place(tick)
        parts += [_draw_line(left, y, right, y, faint=tick != 0)]
        parts += [_write(left - 6, y + 4, f"{tick:g}", anchor="end")]
    return parts


def _draw_legend(shape: Shape, scores: Sequence[int]) -> list[str]:
    if len(scores) == 1:
        name = shape.score_names[scores[0]]
        title = "contribution to the score" if name == "score" else f"contribution to the score for {name}"
        return [_write(8, 16, title)]
    parts, x = [], 8.0
    for colour, score in zip(COLOURS, scores, strict=False):
        name = _shorten(shape.score_names[score], 90)
        parts.append(f'<rect x="{x:.1f}" y="7" width="10" height="10" fill="{colour}"/>')
        parts.append(_write(x + 14, 16, name))
        x += 26 + len(name) * _LETTER_WIDTH
    return parts


def _draw_line(
    x1: float, y1: float, x2: float, y2: float, *, colour: str = GREY, width: float = 1, faint: bool = False
) -> str:
    opacity = ' stroke-opacity="0.25"' if faint else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
        f'stroke-width="{width}"{opacity}/>'
    )


def _write(x: float, y: float, text: str, *, anchor: str = "start", title: str | None = None) -> str:
    hint = "" if title is None else f"<title>{escape_html(title)}</title>"
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape_html(text)}{hint}</text>'


def _shorten(text: str, width: float) -> str:
    """Cut a text, if necessary, to a width in pixels."""
    n_letters = int(width / _LETTER_WIDTH)
    return text if len(text) <= n_letters else f"{text[: n_letters - 1]}…"


def _make_svg(parts: Sequence[str], width: float, height: float, shape: Shape, scores: Sequence[int]) -> Html:
    names = ", ".join(shape.score_names[score] for score in scores)
    label = escape_html(f"Contribution of {' and '.join(shape.columns)} to {names}")
    content = join_parts([Html(part) for part in parts])
    return Html(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'style="max-width: {width:.0f}px; width: 100%; height: auto" role="img" aria-label="{label}" '
        f'font-size="12" font-family="sans-serif" fill="currentColor">{content}</svg>'
    )
