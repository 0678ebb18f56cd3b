"""Write a line for every class and function into the index of the reference.

The line ``@names@`` of ``docs/api/index.md`` becomes one table per page of the reference, with the names that
the page lists and the first lines of their docstrings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PLACE = "@names@"
TOCTREE = re.compile(r"```{toctree}.*?```", re.DOTALL)
LIST = re.compile(r"\.\. autosummary::\n(?:   :[^\n]*\n)*\n((?:   [^\n]+\n)+)")


def list_names(page: str) -> list[str]:
    """Return the names that a page of the reference lists."""
    return [name.strip() for found in LIST.finditer(page) for name in found[1].splitlines()]


def tables(folder: Path, index: str) -> Iterator[str]:
    """Yield a heading and a table for each page of the reference, in their order."""
    (pages,) = (found[0].split("\n\n")[-1].splitlines()[:-1] for found in TOCTREE.finditer(index))
    for page in pages:
        text = (folder / f"{page}.md").read_text(encoding="utf-8")
        title = text.partition("\n")[0].removeprefix("# ")
        lines = "\n".join(f"   {name}" for name in list_names(text))
        yield f"## [{title}]({page}.md)"
        yield f"```{{eval-rst}}\n.. currentmodule:: unkernel\n\n.. autosummary::\n\n{lines}\n```"


def fill(app: Sphinx, name: str, content: list[str]) -> None:
    if PLACE in content[0] and name == "api/index":
        folder = Path(app.srcdir) / "api"
        content[0] = content[0].replace(PLACE, "\n\n".join(tables(folder, content[0])))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
