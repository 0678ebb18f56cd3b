"""Pictures: arcs over the words (SVG) and trees for the terminal; chunks in brackets."""

from unkernel.data.drawing._chunks import draw_chunks
from unkernel.data.drawing._svg import draw_svg
from unkernel.data.drawing._text import draw_text

__all__ = ["draw_chunks", "draw_svg", "draw_text"]
