"""How corpora are shown in notebooks: a summary, and their first sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_SHOWN = 3  # sentences


def corpus_html(corpus: Sequence[Any]) -> str:
    """Return one line about the corpus, and the pictures of its first sentences."""
    import html

    pictures = "".join(sentence._repr_html_() for sentence in corpus[:_SHOWN])
    more = len(corpus) - _SHOWN
    rest = f"<p>and {more:,} more</p>" if more > 0 else ""
    return f"<p>{html.escape(repr(corpus))}</p>{pictures}{rest}"
