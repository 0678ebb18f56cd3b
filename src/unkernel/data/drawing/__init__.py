"""Pictures of dependencies: arcs over the words (SVG), and trees for the terminal."""

from unkernel.data.drawing._svg import draw_svg
from unkernel.data.drawing._text import draw_text

__all__ = ["draw_svg", "draw_text"]
