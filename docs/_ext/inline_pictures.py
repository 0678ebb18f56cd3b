"""Put the pictures of ``_static/pictures`` into the pages themselves, so that they follow the theme.

An SVG file that a page only refers to does not see whether the reader has chosen the light or the dark theme.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FOLDER = "_static/pictures/"
# Names that no part of the picture refers to, and that two pictures on a page would share.
UNUSED_NAMES = re.compile(r' id="(?:figure|axes|patch|text|line2d|legend|[xy]tick|matplotlib\.axis)_\d+"')
FIXED_SIZE = re.compile(r' (?:width|height)="[\d.]+pt"')


def svg_element(svg: str, description: str) -> str:
    """Return the element of a file, without a size and with a description for those who do not see it."""
    element = UNUSED_NAMES.sub("", svg[svg.index("<svg ") :])
    tag, rest = element[: element.index(">") + 1], element[element.index(">") + 1 :]
    tag = FIXED_SIZE.sub("", tag)
    return tag[:-1] + f' role="img" aria-label="{html.escape(description)}">' + rest


def put_pictures_in(app: Sphinx, doctree: nodes.document, _: str) -> None:
    if app.builder.format != "html":
        return
    for image in list(doctree.findall(nodes.image)):
        if image["uri"].startswith(FOLDER) and image["uri"].endswith(".svg"):
            svg = (Path(app.srcdir) / image["uri"]).read_text(encoding="utf-8")
            image.replace_self(nodes.raw("", svg_element(svg, image.get("alt", "")), format="html"))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-resolved", put_pictures_in)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
