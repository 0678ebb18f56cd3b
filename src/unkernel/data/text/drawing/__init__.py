"""Drawings: arcs over words (SVG), trees for the terminal, and chunks in brackets."""

from unkernel.data.text.drawing._chunks import draw_chunks
from unkernel.data.text.drawing._svg import draw_svg
from unkernel.data.text.drawing._text import draw_text

__all__ = ["draw_chunks", "draw_svg", "draw_text"]
