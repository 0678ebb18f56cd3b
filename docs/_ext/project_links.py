"""Links between the files of the project become links between the pages of the site.

In a checkout, pages link to files such as ``../CONTRIBUTING.md``. In the site these are pages as well, each
of which includes its file. Links to other files that are no pages, such as ``LICENSE``, become plain text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

# Files outside of docs/, and the pages that include them.
PAGES = {
    "CHANGELOG.md": "docs/changelog.md",
    "CONTRIBUTING.md": "docs/contributing.md",
    "SECURITY.md": "docs/security.md",
    "benchmarks/RESULTS.md": "docs/results.md",
}
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def turn_links(markdown: str, file: str, page: str) -> str:
    """What a file of the project says, with its links as they are right in a page of the site."""

    def turned(link: re.Match[str]) -> str:
        text, target, anchor = link[1], link[2], link[3] or ""
        if re.match(r"[a-z]+:", target):
            return link[0]
        goal = posixpath.normpath(posixpath.join(posixpath.dirname(file), target))
        goal = PAGES.get(goal, goal)
        if not goal.startswith("docs/"):
            return text
        return f"[{text}]({posixpath.relpath(goal, posixpath.dirname(page))}{anchor})"

    return LINK.sub(turned, markdown)


def on_page(app: Sphinx, name: str, content: list[str]) -> None:
    page = f"docs/{name}.md"
    if Path(app.env.doc2path(name)).suffix == ".md":
        content[0] = turn_links(content[0], page, page)


def on_include(app: Sphinx, file: Path, name: str, content: list[str]) -> None:
    from_root = posixpath.normpath(posixpath.join("docs", file.as_posix()))
    content[0] = turn_links(content[0], from_root, f"docs/{name}.md")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", on_page)
    app.connect("include-read", on_include)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
