"""Draw chunks in brackets."""

from __future__ import annotations

from collections.abc import Sequence

from unkernel.data.text.drawing._input import replace_controls


def draw_chunks(words: Sequence[str], tags: Sequence[str]) -> str:
    """Draw words on one line, with their chunks in brackets. All tag schemes are supported.

    The tags B and S begin a chunk, and so does any tag (except O) after O, E, S or a tag of another type.

    Parameters
    ----------
    words : sequence of str
    tags : sequence of str
        One tag per word, such as ``"B-NP"``.

    Returns
    -------
    str

    Examples
    --------
    >>> draw_chunks(["He", "saw", "the", "sea", "."], ["B-NP", "B-VP", "B-NP", "I-NP", "O"])
    '[NP He] [VP saw] [NP the sea] .'
    >>> draw_chunks(["the", "old", "sea"], ["I", "I", "E"])
    '[the old sea]'
    """
    parts: list[str] = []
    padded_tags = ["O", *tags, "O"]
    for word, tag, before, after in zip(words, tags, padded_tags[:-2], padded_tags[2:], strict=True):
        kind = replace_controls(tag.partition("-")[2])
        begin = f"[{kind} " if kind else "["
        is_end = tag != "O" and (after == "O" or _begins_chunk(tag, after))
        text = replace_controls(word)
        if _begins_chunk(before, tag):
            text = begin + text
        parts.append(f"{text}]" if is_end else text)
    return " ".join(parts)


def _begins_chunk(before: str, tag: str) -> bool:
    """Return whether a chunk begins with `tag`, which follows the tag `before`."""
    if tag == "O":
        return False
    return tag[0] in "BS" or before[0] in "OES" or before.partition("-")[2] != tag.partition("-")[2]
