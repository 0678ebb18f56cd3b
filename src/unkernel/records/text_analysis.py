r"""Split texts that are not ASCII into n-grams, as scikit-learn's vectorizers do.

The core splits ASCII texts. For other texts, Python's own functions define lower case, ``\w`` and accents.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Any

from unkernel.records.steps import split_strings

# The supported patterns of words, and the length of the shortest word that each pattern matches. Other
# patterns are rejected, because a pattern from a file could take exponential time.
TOKEN_PATTERNS = {r"(?u)\b\w\w+\b": 2, r"(?u)\b\w+\b": 1}
_DEFAULT_PATTERN = r"(?u)\b\w\w+\b"
_SPACES = re.compile(r"\s\s+")


def make_analyzer(table: dict[str, Any]) -> Callable[[str], list[str]]:
    """Return a function that splits a text into n-grams, given the table of a step of kind ``"text"``.

    Raise a ``ValueError`` if the pattern of words is not in ``TOKEN_PATTERNS``, or does not fit the length of
    the shortest word in the table.
    """
    pattern = _check_pattern(table)
    shortest, longest = int(table["shortest"]), int(table["longest"])
    prepare = _make_preprocessor(lowercase=table["lowercase"], strip_accents=table.get("strip_accents"))
    if table["analyzer"] == "char":
        return lambda text: _list_character_ngrams(_SPACES.sub(" ", prepare(text)), shortest, longest)
    if table["analyzer"] == "char_wb":
        return lambda text: _list_ngrams_in_words(prepare(text), shortest, longest)
    token = re.compile(pattern)
    stop_words = frozenset(split_strings(table["stop_words"], table["stop_word_ends"]))

    def analyze(text: str) -> list[str]:
        words = [word for word in token.findall(prepare(text)) if word not in stop_words]
        return _list_word_ngrams(words, shortest, longest)

    return analyze


def _check_pattern(table: dict[str, Any]) -> str:
    stored = table.get("token_pattern")
    pattern: str = _DEFAULT_PATTERN if stored is None else stored
    if pattern not in TOKEN_PATTERNS:
        supported = " and ".join(map(repr, TOKEN_PATTERNS))
        raise ValueError(
            f"the token pattern {str(pattern)[:80]!r} is not one of those that are known: {supported}"
        )
    if table["analyzer"] == "word" and table.get("shortest_token") != TOKEN_PATTERNS[pattern]:
        raise ValueError("the plan's shortest word length does not match the token pattern")
    return pattern


def _make_preprocessor(*, lowercase: bool, strip_accents: str | None) -> Callable[[str], str]:
    """Return a function that lowercases a text and strips its accents, if requested."""

    def prepare(text: str) -> str:
        if lowercase:
            text = text.lower()
        if strip_accents == "ascii":
            return unicodedata.normalize("NFKD", text).encode("ASCII", "ignore").decode("ASCII")
        if strip_accents == "unicode" and not text.isascii():
            return "".join(
                character
                for character in unicodedata.normalize("NFKD", text)
                if not unicodedata.combining(character)
            )
        return text

    return prepare


def _list_word_ngrams(words: list[str], shortest: int, longest: int) -> list[str]:
    return [
        " ".join(words[first : first + length])
        for length in range(shortest, min(longest, len(words)) + 1)
        for first in range(len(words) - length + 1)
    ]


def _list_character_ngrams(text: str, shortest: int, longest: int) -> list[str]:
    return [
        text[first : first + length]
        for length in range(shortest, min(longest, len(text)) + 1)
        for first in range(len(text) - length + 1)
    ]


def _list_ngrams_in_words(text: str, shortest: int, longest: int) -> list[str]:
    """Return the n-grams of characters of each word, which is padded with a space on both sides."""
    ngrams = []
    for word in text.split():
        padded = f" {word} "
        for length in range(shortest, longest + 1):
            ngrams.append(padded[:length])
            ngrams += [padded[first : first + length] for first in range(1, len(padded) - length + 1)]
            if length >= len(padded):
                break
    return ngrams
