"""Draw dependencies as arcs over the words, in SVG.

An arc goes up from the head, across, and down to the dependent, where it ends in an arrow. Its two vertical
lines are called legs; so is the vertical line above a root. Shorter arcs are drawn first, and each arc is
above all arcs that it spans. A label interrupts its arc. The distances between words leave space for the
labels, so labels do not overlap. Arcs meet only if dependencies cross; labels are moved away from the
crossings.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from unkernel.data.text.drawing._input import ROOT, Dependencies, count_character_cells, read_dependencies

_WORD_SIZE, _TAG_SIZE, _LABEL_SIZE = 16, 11, 12
_LEVEL_HEIGHT = 24  # must exceed the height of a label
_LEG_SPACING = 9
_WORD_GAP = 14
_MARGIN = 12
_CORNER = 9
_ARROW = 6
_MAX_CROSSINGS = 100  # if an arc has more crossings, its label is not moved away from them
# Greys and a blue that are legible on white and on black. Words take the colour of the surrounding text.
_ARC_COLOUR, _LABEL_COLOUR, _TAG_COLOUR = "#8a949e", "#4a86c8", "#8a949e"
_NARROW, _WIDE = frozenset("iIjlftr.,:;'\"!|()[]{}-` "), frozenset("mwMW@%—…")
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class _Arc:
    head: int
    dependent: int
    label: str
    level: int  # counted from 1, the lowest level

    @property
    def ends(self) -> tuple[int, int]:
        return min(self.head, self.dependent), max(self.head, self.dependent)


def draw_svg(
    words: Any,
    heads: Sequence[int] | None = None,
    labels: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    *,
    base: int = 1,
) -> str:
    """Draw dependencies as arcs over the words.

    Parameters
    ----------
    words, heads, labels, tags, base
        See :func:`draw_text`.

    Returns
    -------
    str
        A complete SVG image. All text is escaped. Words have the colour of the surrounding text, and are
        legible on any background.

    Examples
    --------
    >>> from unkernel.data.text.drawing import draw_svg
    >>> picture = draw_svg(["Dogs", "bark"], [2, 0], ["nsubj", "root"])
    >>> picture.startswith("<svg "), picture.count("<path ")
    (True, 4)
    """
    sentence = read_dependencies(words, heads, labels, tags, base)
    return _Picture(sentence).svg()


class _Picture:
    """The layout of a sentence: coordinates of words, legs and labels. ``svg`` draws it."""

    def __init__(self, sentence: Dependencies) -> None:
        self._sentence = sentence
        self._arcs = _list_arcs(sentence)
        self._roots = [word for word, head in enumerate(sentence.heads) if head == ROOT]
        self._levels = max((arc.level for arc in self._arcs), default=0) + bool(self._roots)
        self._base = _MARGIN + _LABEL_SIZE / 2 + self._levels * _LEVEL_HEIGHT
        self._offsets: dict[tuple[_Arc, int], float] = {}
        self._root_offsets: dict[int, float] = {}
        self._legs_of_word: list[list[tuple[int, float]]] = []  # for each word: legs as (level, offset)
        self._set_legs()
        self._tops = np.array([max((level for level, _ in legs), default=0) for legs in self._legs_of_word])
        leg_half_widths = [len(legs) / 2 * _LEG_SPACING for legs in self._legs_of_word]
        texts = zip(sentence.words, sentence.tags, strict=True)
        text_half_widths = [
            max(_estimate_width(word, _WORD_SIZE), _estimate_width(tag, _TAG_SIZE)) / 2 for word, tag in texts
        ]
        self._half_widths = [max(pair) for pair in zip(text_half_widths, leg_half_widths, strict=True)]
        self._x = self._place_words()
        self._middles = {arc: self._place_label(arc) for arc in self._arcs}

    def svg(self) -> str:
        width = 0.0
        if self._x:
            width = (
                self._x[-1] + max(self._half_widths[-1], self._compute_root_half(len(self._x) - 1)) + _MARGIN
            )
        height = self._base + _WORD_SIZE + 6 + (_TAG_SIZE + 4 if any(self._sentence.tags) else 0) + _MARGIN
        title = _replace_invalid(" ".join(self._sentence.words))
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label={quoteattr(title)} '
            'font-family="system-ui, sans-serif" text-anchor="middle">',
            f'<g fill="none" stroke="{_ARC_COLOUR}" stroke-width="1.3">{"".join(self._draw_lines())}</g>',
            f'<g fill="{_ARC_COLOUR}">{"".join(self._draw_arrows())}</g>',
            f'<g fill="{_LABEL_COLOUR}" font-size="{_LABEL_SIZE}">{"".join(self._draw_labels())}</g>',
            f'<g fill="currentColor" font-size="{_WORD_SIZE}">{"".join(self._draw_words())}</g>',
            f'<g fill="{_TAG_COLOUR}" font-size="{_TAG_SIZE}">{"".join(self._draw_tags())}</g>',
            "</svg>\n",
        ]
        return "\n".join(parts)

    # --- Layout -----------------------------------------------------------------------------------

    def _set_legs(self) -> None:
        """Set the horizontal offset of each leg from the middle of its word.

        From left to right, a word has the legs of arcs to the left, the lowest arc first; the line of a root;
        the legs of arcs to the right, the lowest arc last.
        """
        legs_of: list[list[tuple[float, _Arc | None]]] = [[] for _ in self._sentence.words]
        for word in self._roots:
            legs_of[word].append((0.0, None))
        for arc in self._arcs:
            first, last = arc.ends
            legs_of[first].append((1 / arc.level, arc))
            legs_of[last].append((-1 / arc.level, arc))
        for word, legs in enumerate(legs_of):
            self._legs_of_word.append([])
            for position, (_, leg_arc) in enumerate(sorted(legs, key=lambda leg: leg[0])):
                offset = (position - (len(legs) - 1) / 2) * _LEG_SPACING
                self._legs_of_word[word].append((self._levels if leg_arc is None else leg_arc.level, offset))
                if leg_arc is None:
                    self._root_offsets[word] = offset
                else:
                    self._offsets[leg_arc, word] = offset

    def _place_words(self) -> list[float]:
        """Return the x coordinate of the middle of each word, as far left as words and labels allow."""
        arcs_to: list[list[_Arc]] = [[] for _ in self._sentence.words]
        for arc in self._arcs:
            arcs_to[arc.ends[1]].append(arc)
        x: list[float] = []
        last_root = -1
        for word, half in enumerate(self._half_widths):
            leftmost = _MARGIN + half if word == 0 else x[-1] + self._half_widths[word - 1] + half + _WORD_GAP
            for arc in arcs_to[word]:
                label_width = _estimate_width(arc.label, _LABEL_SIZE) + 2 * _CORNER + 8
                other = arc.ends[0]
                leftmost = max(
                    leftmost, x[other] + self._offsets[arc, other] - self._offsets[arc, word] + label_width
                )
            if word in self._root_offsets:
                before = (
                    x[last_root] + self._compute_root_half(last_root) + _WORD_GAP
                    if last_root >= 0
                    else _MARGIN
                )
                leftmost = max(leftmost, before + self._compute_root_half(word))
                last_root = word
            x.append(leftmost)
        return x

    def _compute_root_half(self, word: int) -> float:
        """Return half the width of a root's label, plus the offset of the root's line."""
        if word not in self._root_offsets:
            return 0.0
        return _estimate_width(self._sentence.labels[word], _LABEL_SIZE) / 2 + abs(self._root_offsets[word])

    def _place_label(self, arc: _Arc) -> float:
        """Return the x coordinate of an arc's label: near the middle, but away from legs of other arcs."""
        begin, end = sorted((self._compute_leg_x(arc, arc.head), self._compute_leg_x(arc, arc.dependent)))
        half, middle = _estimate_width(arc.label, _LABEL_SIZE) / 2 + 4, (begin + end) / 2
        walls = [begin + _CORNER, *self._find_crossing_legs(arc), end - _CORNER]
        gaps = [(left + half, right - half) for left, right in itertools.pairwise(walls)]
        candidates = [min(max(middle, left), right) for left, right in gaps if left <= right]
        return min(candidates, key=lambda x: abs(x - middle), default=middle)

    def _find_crossing_legs(self, arc: _Arc) -> list[float]:
        """Return the x coordinates of legs that cross an arc: legs of higher arcs, and lines of roots."""
        first, last = arc.ends
        crossing = np.flatnonzero(self._tops[first + 1 : last] > arc.level) + first + 1
        if not arc.label or len(crossing) > _MAX_CROSSINGS:
            return []
        legs = [(word, *leg) for word in crossing.tolist() for leg in self._legs_of_word[word]]
        return sorted(self._x[word] + offset for word, level, offset in legs if level > arc.level)

    def _compute_height(self, level: int) -> float:
        return self._base - level * _LEVEL_HEIGHT

    def _compute_leg_x(self, arc: _Arc, word: int) -> float:
        return self._x[word] + self._offsets[arc, word]

    # --- Drawing -----------------------------------------------------------------------------------

    def _draw_lines(self) -> Iterator[str]:
        """Yield a path for each arc, interrupted by its label, and one for the line of each root."""
        foot = self._base - _ARROW
        for arc in self._arcs:
            begin, end, y = (
                self._compute_leg_x(arc, arc.head),
                self._compute_leg_x(arc, arc.dependent),
                self._compute_height(arc.level),
            )
            corner = _CORNER if begin < end else -_CORNER
            half = (_estimate_width(arc.label, _LABEL_SIZE) / 2 + 2) * (1 if begin < end else -1)
            middle = self._middles[arc]
            across = f"H{middle - half:.1f}M{middle + half:.1f} {y:.1f}" if arc.label else ""
            up = f"M{begin:.1f} {self._base:.1f}V{y + _CORNER:.1f}"
            turn = f"Q{begin:.1f} {y:.1f} {begin + corner:.1f} {y:.1f}"
            down = f"H{end - corner:.1f}Q{end:.1f} {y:.1f} {end:.1f} {y + _CORNER:.1f}V{foot:.1f}"
            yield f'<path d="{up}{turn}{across}{down}"/>'
        for word, offset in self._root_offsets.items():
            x, top = self._x[word] + offset, self._compute_height(self._levels) + _LABEL_SIZE / 2
            yield f'<path d="M{x:.1f} {top:.1f}V{foot:.1f}"/>'

    def _draw_arrows(self) -> Iterator[str]:
        tips = [self._compute_leg_x(arc, arc.dependent) for arc in self._arcs]
        tips += [self._x[word] + offset for word, offset in self._root_offsets.items()]
        for x in tips:
            yield f'<path d="M{x:.1f} {self._base:.1f}l{-_ARROW / 2} {-_ARROW - 1}h{_ARROW}z"/>'

    def _draw_labels(self) -> Iterator[str]:
        for arc in self._arcs:
            yield _draw_text(self._middles[arc], self._compute_height(arc.level) + _LABEL_SIZE / 3, arc.label)
        for word, offset in self._root_offsets.items():
            label = self._sentence.labels[word]
            yield _draw_text(
                self._x[word] + offset, self._compute_height(self._levels) + _LABEL_SIZE / 3, label
            )

    def _draw_words(self) -> Iterator[str]:
        for x, word in zip(self._x, self._sentence.words, strict=True):
            yield _draw_text(x, self._base + _WORD_SIZE + 2, word)

    def _draw_tags(self) -> Iterator[str]:
        for x, tag in zip(self._x, self._sentence.tags, strict=True):
            yield _draw_text(x, self._base + _WORD_SIZE + _TAG_SIZE + 8, tag)


def _list_arcs(sentence: Dependencies) -> list[_Arc]:
    """Return the arcs, shortest first; each arc is one level above the highest arc that it spans."""
    ends = [(min(word, head), max(word, head), word) for word, head in enumerate(sentence.heads) if head >= 0]
    skyline = np.zeros(len(sentence.words), np.int64)  # the highest level over the gap after each word
    arcs = []
    for first, last, word in sorted(ends, key=lambda arc: (arc[1] - arc[0], arc)):
        level = int(skyline[first:last].max()) + 1
        skyline[first:last] = level
        arcs.append(_Arc(sentence.heads[word], word, sentence.labels[word], level))
    return arcs


def _estimate_width(text: str, size: float) -> float:
    """Return a generous estimate of the width of a text; the actual width depends on the font."""
    return size * sum(map(_get_relative_width, text))


def _get_relative_width(character: str) -> float:
    """Return the estimated width of a character as a share of the font size."""
    if not character.isascii():
        return (0.0, 0.68, 1.05)[count_character_cells(character)]
    if character in _NARROW:
        return 0.38
    if character in _WIDE:
        return 0.95
    return 0.72 if character.isupper() else 0.6


def _replace_invalid(text: str) -> str:
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _draw_text(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}">{escape(_replace_invalid(text))}</text>' if text else ""
