"""Sentences as JSON objects."""

from __future__ import annotations

from typing import Any

from unkernel.data.text.conll_sentence import COLUMNS, Sentence


def sentence_to_json(sentence: Sentence) -> dict[str, Any]:
    """Return the comments, words and multiword tokens (with an `id` such as "2-3"), without empty fields."""
    rows = [line.split("\t") for line in str(sentence).split("\n") if line and not line.startswith("#")]
    found: dict[str, Any] = {"text": sentence.text} | sentence.metadata
    found["words"] = [_word(row) for row in rows if "-" not in row[0]]
    found["multiwords"] = [_word(row) for row in rows if "-" in row[0]]
    return found


def _word(row: list[str]) -> dict[str, Any]:
    given = {name: value for name, value in zip(COLUMNS, row, strict=True) if value != "_" or name == "form"}
    return given | {name: int(given[name]) for name in ("id", "head") if given.get(name, "-").isdigit()}
