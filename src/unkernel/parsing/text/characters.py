"""The table of character kinds, made from Unicode; tokenizers store it in their files."""

from __future__ import annotations

import sys
import unicodedata
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLANK, LINE_END = 0, 1  # LINE_END is the kind of a run of blanks with a line end, not of a character
_OTHER, _UPPER, _LOWER, _LETTER, _DIGIT, _MARK = range(6)  # shapes
_SHAPES = {"Lu": _UPPER, "Lt": _UPPER, "Ll": _LOWER, "Lm": _LETTER, "Lo": _LETTER}
_SHAPES |= {"Nd": _DIGIT, "Mn": _MARK, "Mc": _MARK, "Me": _MARK}
_SCRIPT_KINDS = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI")  # scripts with a kind of their own
_MAX_KINDS = 256
_MIN_COUNT = 10  # a punctuation character with at least this many occurrences gets a kind of its own
_PAGE_SIZE = 256  # code points


def build_character_tables(text: str) -> dict[str, NDArray[Any]]:
    """Return the table of character kinds; frequent punctuation characters of `text` get their own kinds.

    The table is divided into pages. Pages with the same kinds are stored once, and `pages` has their numbers.
    """
    names, kinds = _find_general_kinds()
    kinds = kinds.copy()
    shapes = [_OTHER, _OTHER, *(_SHAPES.get(name[:2], _OTHER) for name in names)]
    frequent = [c for c, times in Counter(text).most_common() if times >= _MIN_COUNT]
    for character in frequent:
        is_word_character = unicodedata.category(character) in _SHAPES
        if len(shapes) < _MAX_KINDS and kinds[ord(character)] != BLANK and not is_word_character:
            kinds[ord(character)] = len(shapes)
            shapes.append(_OTHER)
    pages, numbers = _find_distinct_pages(kinds)
    return {
        "pages": numbers,
        "kinds": pages,
        "shapes": np.array(shapes, np.uint8),
        "cases": _list_cases(),
    }


def _find_distinct_pages(kinds: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
    """Return the distinct pages, sorted and joined, and the number of each page of `kinds`."""
    # Not np.unique(axis=0), which would sort the pages as structures for half a second in each training.
    pages = [page.tobytes() for page in kinds.reshape(-1, _PAGE_SIZE)]
    distinct = sorted(set(pages))
    number_of = {page: number for number, page in enumerate(distinct)}
    return np.frombuffer(b"".join(distinct), np.uint8), np.array(
        [number_of[page] for page in pages], np.uint16
    )


def is_blank(character: str) -> bool:
    """Return whether a character is white space or NUL, which columns of CoNLL-U cannot contain."""
    return character.isspace() or character == "\0"


@cache
def _find_general_kinds() -> tuple[list[str], NDArray[np.uint8]]:
    """Return the names of the kinds, beginning with kind 2, and the kind of each code point (blanks: 0)."""
    names: dict[str, int] = {}
    kinds = np.zeros(sys.maxunicode + 1, np.uint8)
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if not is_blank(character):
            kinds[code] = names.setdefault(_name_kind(character), len(names) + 2)
    return list(names), kinds


def _name_kind(character: str) -> str:
    category = unicodedata.category(character)
    if category != "Lo":
        return category
    script = unicodedata.name(character, "").split(" ")[0].split("-")[0]
    return f"Lo {script}" if script in _SCRIPT_KINDS else category


@cache
def _list_cases() -> NDArray[np.uint32]:
    """Return pairs of a character and its lowercase form, flattened into one array."""
    pairs = [(code, ord(chr(code).lower())) for code in range(128, sys.maxunicode + 1) if _has_lower(code)]
    return np.array(pairs, np.uint32).reshape(-1)


def _has_lower(code: int) -> bool:
    lower = chr(code).lower()
    return len(lower) == 1 and ord(lower) != code


def lower(text: str, cases: NDArray[np.uint32]) -> str:
    """Return a text in lower case, mapped character by character with a tokenizer's table `cases`."""
    if text.isascii():
        return text.lower()
    lower_of = dict(zip(cases[::2].tolist(), cases[1::2].tolist(), strict=True))
    return "".join(c.lower() if ord(c) < 128 else chr(lower_of.get(ord(c), ord(c))) for c in text)
