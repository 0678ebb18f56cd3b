"""Write the tables of rooms in docs/developing.md, or check that they are current.

python tools/rooms_table.py            # writes them between the two comments
python tools/rooms_table.py --check    # fails if they are not what would be written

The Python order comes from the import contracts in pyproject.toml, and the descriptions are the first lines
of the rooms' docstrings. The C++ order and descriptions are in tools/check_includes.py.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from check_includes import ABOUT, LAYERS

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "developing.md"
SOURCE = ROOT / "src"
BEGIN = "<!-- rooms: written by tools/rooms_table.py -->\n"
END = "<!-- end of rooms -->"


def layer_contracts(project: Path) -> list[dict[str, Any]]:
    """Return the contracts of import-linter that order rooms."""
    contracts = tomllib.loads(project.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    return [contract for contract in contracts if contract["type"] == "layers"]


def floors(contract: dict[str, Any]) -> list[list[str]]:
    """Return the modules of a contract, the lowest floor first."""
    layers = [[name.strip(" ()") for name in re.split(r"[|:]", layer)] for layer in contract["layers"]]
    return layers[::-1]


def read_summary(module: Path) -> str:
    """Return the first paragraph of the docstring of a package or a module, in Markdown."""
    file = module / "__init__.py" if module.is_dir() else module.with_suffix(".py")
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) if file.is_file() else None
    paragraph = " ".join((text or "").split("\n\n")[0].split())
    return re.sub(r":\w+:`~?([^`]+)`", r"`\1`", paragraph).replace("``", "`").replace("|", "\\|")


def python_tables(project: Path = ROOT / "pyproject.toml", source: Path = SOURCE) -> Iterator[str]:
    """Yield one table per package in the layer contracts, then a table of the folders inside packages."""
    for contract in layer_contracts(project):
        for container in contract.get("containers", [""]):
            folder = source.joinpath(*container.split("."))
            yield f"In `{folder.relative_to(source.parent)}`, the lowest rooms first:"
            rows = [
                f"| {height} | `{name}` | {read_summary(folder / name)} |"
                for height, names in enumerate(floors(contract), start=1)
                for name in names
                if (folder / name).is_dir() or (folder / f"{name}.py").is_file()
            ]
            yield "\n".join(["| floor | room | |", "|---:|---|---|", *rows])
    inner = sorted(
        file.parent for file in source.glob("*/*/*/__init__.py") if len(list(file.parent.glob("*.py"))) > 1
    )
    if inner:
        yield "Large rooms are divided into folders:"
        names = ["/".join(folder.parts[-2:]) for folder in inner]
        rows = [f"| `{name}` | {read_summary(folder)} |" for name, folder in zip(names, inner, strict=True)]
        yield "\n".join(["| folder | |", "|---|---|", *rows])


def native_table() -> Iterator[str]:
    """Yield the table of the C++ rooms."""
    yield "In `cpp/unkernel`, the lowest rooms first:"
    rows = [
        f"| {height} | `{room}` | {ABOUT[room]} |"
        for height, rooms in enumerate(LAYERS, start=1)
        for room in rooms
    ]
    yield "\n".join(["| floor | room | |", "|---:|---|---|", *rows])


def insert_tables(text: str) -> str:
    """Return the page with its current tables."""
    head, begin, remainder = text.partition(BEGIN)
    _, end, tail = remainder.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN.strip()} or no {END}")
    return "\n\n".join([head + begin.strip(), *python_tables(), *native_table(), end + tail])


def main(arguments: list[str]) -> int:
    """Write the tables, or check them."""
    text = PAGE.read_text(encoding="utf-8")
    if arguments == ["--check"]:
        if text == insert_tables(text):
            return 0
        print(f"{PAGE} is not current: run python tools/rooms_table.py", file=sys.stderr)
        return 1
    PAGE.write_text(insert_tables(text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
