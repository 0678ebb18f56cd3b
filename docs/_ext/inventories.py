"""Names of other projects that our pages link to, from texts in the tree: building needs no network.

``docs/inventories/NAME.txt`` has the lines of an inventory of Sphinx, one name each: name, role, priority,
address (``$`` stands for the name), title (``-`` for the name).
"""

from __future__ import annotations

import zlib
from pathlib import Path

HEAD = "# Sphinx inventory version 2\n# Project: {name}\n# Version:\n# Compressed by zlib:\n"


def packed(texts: Path, folder: Path) -> dict[str, Path]:
    """The inventory of each text, in the form that Sphinx reads, written to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    inventories = {text.stem: folder / f"{text.stem}.inv" for text in sorted(texts.glob("*.txt"))}
    for name, inventory in inventories.items():
        lines = (texts / f"{name}.txt").read_text(encoding="utf-8").splitlines()
        names = "".join(_expanded(line) + "\n" for line in lines)
        inventory.write_bytes(HEAD.format(name=name).encode() + zlib.compress(names.encode()))
    return inventories


def _expanded(line: str) -> str:
    """A line with the name in the place of each ``$``; Sphinx does that only at the end of an address."""
    name, role, priority, address, title = line.split(" ", 4)
    return " ".join([name, role, priority, address.replace("$", name), title])
