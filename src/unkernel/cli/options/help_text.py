"""Help texts: lines of the source become paragraphs that are wrapped to the terminal's width."""

from __future__ import annotations

import inspect
import re

_AS_IT_IS = "\b"  # Click keeps the lines of a paragraph that begins with it


def reflow(text: str | None) -> str:
    """A help text whose paragraphs have no line breaks of their own, but for those that are marked so."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(text or ""))
    return "\n\n".join(
        paragraph if paragraph.startswith(_AS_IT_IS) else " ".join(paragraph.split())
        for paragraph in paragraphs
    )
