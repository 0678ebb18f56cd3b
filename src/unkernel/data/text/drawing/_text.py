"""Draw dependency trees for the terminal.

Words are listed from top to bottom. A word with dependents has a vertical bar, which spans the word and all
of its dependents. A horizontal line leads to each word from the bar of its head, through its own bar. The bar
of a head is to the left of the bars of its dependents: moving left means moving up the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unkernel.data.text.drawing._input import (
    ROOT,
    Dependencies,
    count_cells,
    count_character_cells,
    read_dependencies,
)

# Box-drawing characters, keyed by the sides that they connect: up, down, left, right.
_JOINTS = {
    (False, True, False, True): "╭",
    (True, False, False, True): "╰",
    (True, True, False, True): "├",
    (False, True, True, True): "┬",
    (True, False, True, True): "┴",
    (True, True, True, True): "┼",
}
_MAX_LEVELS = 60  # for trees with more levels, some heads are shown by their numbers
_ELLIPSIS = "…"


def draw_text(
    words: Any,
    heads: Sequence[int] | None = None,
    labels: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    *,
    base: int = 1,
    width: int | None = None,
) -> str:
    """Draw a dependency tree for the terminal, one word per line, with heads to the left of dependents.

    If an arc does not fit or is part of a cycle, the number of the head is shown instead (``← 7``).

    Parameters
    ----------
    words : Sentence, or sequence of str
        The words. A sentence also provides heads, labels and tags.
    heads : sequence of int, optional
        The number of each word's head.
    labels, tags : sequence of str, optional
        Relations and parts of speech; ``_`` means that there is none.
    base : {1, 0}, default=1
        The number of the first word. Roots have the head ``base - 1``, words without a head ``base - 2``.
    width : int, optional
        Largest number of terminal cells per line.

    Returns
    -------
    str
        The drawing, several lines.

    Examples
    --------
    >>> from unkernel.data.text.drawing import draw_text
    >>> print(draw_text(["They", "saw", "the", "dog"], [2, 0, 4, 2], ["nsubj", "root", "det", "obj"]), end="")
      ╭─── They  nsubj
    ──┼─── saw   root
      │ ╭─ the   det
      ╰─┴─ dog   obj
    """
    if width is not None and width < 1:
        raise ValueError(f"width must be positive, got {width}")
    sentence = read_dependencies(words, heads, labels, tags, base)
    max_levels = _MAX_LEVELS if width is None else max(0, min(_MAX_LEVELS, width // 4 - 1))
    bars = _compute_bars(sentence.heads, max_levels)
    trunks = _Grid(sentence.heads, bars).draw_lines()
    text_width = width - len(trunks[0]) if width is not None and trunks else None
    texts = _format_columns(sentence, bars, base, text_width)
    lines = [f"{trunk} {text}".rstrip() for trunk, text in zip(trunks, texts, strict=True)]
    if width is not None:
        lines = [_truncate(line, width) for line in lines]
    return "".join(f"{line}\n" for line in lines)


# --- Bars -------------------------------------------------------------------------------------------


def _compute_bars(heads: list[int], max_levels: int) -> dict[int, int]:
    """Return the level of each bar that can be drawn, by word; level 0 is next to the words.

    The bar of a head has a higher level than the bars of its dependents. It cannot be drawn without these.
    """
    spans = _list_spans(heads)
    levels: dict[int, int] = {}
    is_occupied = [bytearray(len(heads)) for _ in range(max_levels)]
    for word in _sort_dependents_first(heads):
        if word in spans:
            dependent_bars = [dependent for dependent in spans[word][2] if dependent in spans]
            if all(dependent in levels for dependent in dependent_bars):
                lowest = max((levels[dependent] for dependent in dependent_bars), default=-1) + 1
                _place_bar(word, spans[word][:2], lowest, is_occupied, levels)
    return levels


def _place_bar(
    word: int, span: tuple[int, int], lowest: int, is_occupied: list[bytearray], levels: dict[int, int]
) -> None:
    """Put a bar on the first level, from `lowest` on, that is free in the bar's rows; skip it if none is."""
    first, last = span
    for level in range(lowest, len(is_occupied)):
        if is_occupied[level].find(1, first, last + 1) < 0:
            is_occupied[level][first : last + 1] = bytes([1]) * (last + 1 - first)
            levels[word] = level
            return


def _list_spans(heads: list[int]) -> dict[int, tuple[int, int, list[int]]]:
    """Return, for each word with dependents, the first and last row of its bar, and the dependents."""
    dependents: dict[int, list[int]] = {}
    for word, head in enumerate(heads):
        if head >= 0:
            dependents.setdefault(head, []).append(word)
    return {head: (min(head, words[0]), max(head, words[-1]), words) for head, words in dependents.items()}


def _sort_dependents_first(heads: list[int]) -> list[int]:
    """Return the words sorted so that dependents precede heads, without words of cycles."""
    n_waiting = [0] * len(heads)
    for head in heads:
        if head >= 0:
            n_waiting[head] += 1
    ready = [word for word, count in enumerate(n_waiting) if count == 0]
    for word in ready:
        head = heads[word]
        if head >= 0:
            n_waiting[head] -= 1
            if n_waiting[head] == 0:
                ready.append(head)
    return ready


class _Grid:
    """The drawing to the left of the words: two cells per level, and two for the line of a root."""

    def __init__(self, heads: list[int], bars: dict[int, int]) -> None:
        self._heads, self._bars = heads, bars
        self._levels = max(bars.values(), default=-1) + 1
        self._width = 2 * self._levels + (2 if ROOT in heads or self._levels else 0)
        self._rows = [[" "] * self._width for _ in heads]

    def _compute_column(self, word: int) -> int:
        return 2 + 2 * (self._levels - 1 - self._bars[word])

    def draw_lines(self) -> list[str]:
        for word in range(len(self._heads)):
            self._draw_line_to(word)
        for head, (first, last, dependents) in _list_spans(self._heads).items():
            if head in self._bars:
                self._draw_bar(head, first, last, dependents)
        return ["".join(row) for row in self._rows]

    def _draw_line_to(self, word: int) -> None:
        """Draw the line from the bar of the head, or from the left edge for a root, to the word."""
        head = self._heads[word]
        if head == ROOT:
            begin = 0
        elif head in self._bars:
            begin = self._compute_column(head)
        elif word in self._bars:
            begin = self._compute_column(word)
        else:
            return
        self._rows[word][begin:] = "─" * (self._width - begin)

    def _draw_bar(self, head: int, first: int, last: int, dependents: list[int]) -> None:
        column, joined = self._compute_column(head), {head, *dependents}
        comes_from_left = self._heads[head] == ROOT or self._heads[head] in self._bars
        for row in range(first, last + 1):
            # Where the line of another word crosses the bar, the bar is drawn on top.
            sides = (row > first, row < last, row == head and comes_from_left, True)
            self._rows[row][column] = _JOINTS[sides] if row in joined else "│"


# --- Words ------------------------------------------------------------------------------------------


def _format_columns(sentence: Dependencies, bars: dict[int, int], base: int, width: int | None) -> list[str]:
    """Return lines with words, tags and relations in columns; words that do not fit are truncated."""
    notes = [f"← {head + base}" if head >= 0 and head not in bars else "" for head in sentence.heads]
    has_notes = any(notes)
    numbers = [f"{word + base}" if has_notes else "" for word in range(len(notes))]
    annotation_columns = [column for column in (sentence.tags, sentence.labels, notes) if any(column)]
    words = sentence.words
    if width is not None:
        used_width = sum(_find_width(column) + 2 for column in (numbers, *annotation_columns) if any(column))
        words = [_truncate(word, max(width - used_width - 1, 4)) for word in words]
    padded = [_pad(column) for column in (numbers, words, *annotation_columns) if any(column)]
    return ["  ".join(row) for row in zip(*padded, strict=True)] if padded else [""] * len(notes)


def _find_width(column: list[str]) -> int:
    return max(map(count_cells, column), default=0)


def _pad(column: list[str]) -> list[str]:
    widest = _find_width(column)
    return [value + " " * (widest - count_cells(value)) for value in column]


def _truncate(text: str, width: int) -> str:
    if count_cells(text) <= width:
        return text
    characters, used_width = [], 1  # 1 for the ellipsis
    for character in text:
        used_width += count_character_cells(character)
        if used_width > width:
            break
        characters.append(character)
    return "".join(characters) + _ELLIPSIS
