"""The input of drawings: words and the positions of their heads."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

ROOT, NO_HEAD = -1, -2

# Characters that change the direction of the following text. They would displace other words of a drawing.
_DIRECTIONS = {*range(0x200E, 0x2010), *range(0x202A, 0x202F), *range(0x2066, 0x206A)}


@dataclass(frozen=True)
class Dependencies:
    """A sentence to draw; heads are positions counted from 0, or ROOT or NO_HEAD."""

    words: list[str]
    heads: list[int]
    labels: list[str]
    tags: list[str]


def read_dependencies(words: Any, heads: Any, labels: Any, tags: Any, base: int) -> Dependencies:
    """Return the sentence to draw, from a sentence of a treebank or from lists; check the arguments."""
    if heads is None:
        if not hasattr(words, "forms"):
            raise TypeError("give a sentence of a treebank, or words and heads")
        tags = _find_first_nonempty(words.upos, words.xpos) if tags is None else tags
        labels = words.deprels if labels is None else labels
        words, heads, base = words.forms, words.heads, 1
    if base not in (0, 1):
        raise ValueError(f"base must be 0 or 1, the number of the first word, got {base!r}")
    count = len(words)
    return Dependencies(
        [replace_controls(str(word)) for word in words],
        _convert_heads(heads, count, base),
        _check_column(labels, count),
        _check_column(tags, count),
    )


def _find_first_nonempty(*columns: list[str]) -> list[str] | None:
    return next((column for column in columns if any(value != "_" for value in column)), None)


def _check_column(values: Sequence[str] | None, count: int) -> list[str]:
    if values is None:
        return [""] * count
    if len(values) != count:
        raise ValueError(f"{len(values)} labels or tags for {count} words")
    return ["" if value == "_" else replace_controls(str(value)) for value in values]


def _convert_heads(heads: Sequence[int], count: int, base: int) -> list[int]:
    if len(heads) != count:
        raise ValueError(f"{len(heads)} heads for {count} words")
    positions = [int(head) - base for head in heads]
    for word, position in enumerate(positions):
        if not NO_HEAD <= position < count or position == word:
            raise ValueError(f"word {word + base}: the head {heads[word]} is not another of {count} words")
    return positions


def replace_controls(text: str) -> str:
    """Return the text without characters that control the terminal or change the direction of text."""
    return "".join("\N{REPLACEMENT CHARACTER}" if _is_control(character) else character for character in text)


def _is_control(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or ord(character) in _DIRECTIONS


def count_cells(text: str) -> int:
    """Return the width of a text in terminal cells: two per East Asian character, none per combining mark."""
    return sum(map(count_character_cells, text))


def count_character_cells(character: str) -> int:
    """Return the width of a character in terminal cells: 0, 1 or 2."""
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
