"""Prepare help texts, with paragraphs that the terminal can wrap."""

from __future__ import annotations

import inspect
import re

_VERBATIM_MARK = "\b"  # Click does not rewrap a paragraph that begins with this character


def reflow(text: str | None) -> str:
    """Return a text in which the lines of each paragraph are joined, except for verbatim paragraphs."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(text or ""))
    return "\n\n".join(
        paragraph if paragraph.startswith(_VERBATIM_MARK) else " ".join(paragraph.split())
        for paragraph in paragraphs
    )
