"""What mkdocs needs to know of pages that live outside of docs/.

They become pages of the site, and links to them, which are right in a checkout, are turned so that
they are right in the site. Links to other files of the project become plain text.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/RESULTS.md": "results.md",
}
SOURCE_OF = {page: source for source, page in PAGES.items()}
ABSENT = "# {name}\n\nNone have been recorded yet.\n"

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    root = Path(config.docs_dir).parent
    for source, page in PAGES.items():
        path = root / source
        text = path.read_text(encoding="utf-8") if path.is_file() else ABSENT.format(name=path.stem.title())
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    return turn_links(markdown, page.file.src_uri)


def turn_links(markdown: str, page: str) -> str:
    """Links of a page, named as in the site, from the project's files to the site's pages."""
    source = SOURCE_OF.get(page, f"docs/{page}")

    def turned(link: re.Match[str]) -> str:
        text, target, anchor = link[1], link[2], link[3] or ""
        if re.match(r"[a-z]+:", target):
            return link[0]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if file in PAGES:
            goal = PAGES[file]
        elif file.startswith("docs/"):
            goal = file.removeprefix("docs/")
        else:
            return text
        return f"[{text}]({os.path.relpath(goal, posixpath.dirname(page) or '.')}{anchor})"

    return LINK.sub(turned, markdown)
