"""Check that no Python room names a room above it, not even in a message or a table of strings.

import-linter checks imports. This check finds other references: a string such as ``"RankSVM"`` in the
engines, or an error message of the models that advises a command. The order of the rooms is taken from the
import contract in pyproject.toml; the names of a room are listed in its ``__all__``. Docstrings are not
checked, nor are lines that end with ``# names: why``, such as the name of a class in old files.

    python tools/check_names.py [folder]      # src/unkernel by default
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMMAND = re.compile(r"\bunkernel (?:train|tune|predict|compile|inspect|explain|bench|parse|evaluate)\b")


def levels(project: Path) -> dict[str, int]:
    """Return the height of each room: 0 for the lowest."""
    contract = tomllib.loads(project.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"][0]
    rooms = [
        [name.strip().removeprefix("unkernel.") for name in layer.split("|")] for layer in contract["layers"]
    ]
    return {room: height for height, layer in enumerate(reversed(rooms)) for room in layer}


def public_names(init: Path) -> list[str]:
    """Return ``__all__``; nothing if there is none."""
    for node in ast.parse(init.read_text(encoding="utf-8")).body if init.exists() else []:
        if isinstance(node, ast.Assign) and any(
            getattr(name, "id", "") == "__all__" for name in node.targets
        ):
            return [str(item) for item in ast.literal_eval(node.value)]
    return []


def strings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the string constants of a module that are not docstrings."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node


def check(folder: Path, height: dict[str, int]) -> list[str]:
    """Return every place where a room names a room above it, as ``file:line: fault``."""
    names = {
        name: room
        for room in height
        for name in public_names(folder / room / "__init__.py")
        if name[:1].isupper()  # functions have names that are ordinary words
    }
    problems = []
    for path in sorted(folder.rglob("*.py")):
        room = path.relative_to(folder).parts[0].removesuffix(".py")
        if room not in height:
            continue
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for node in strings(ast.parse(text)):
            if "# names: " in lines[node.lineno - 1]:
                continue
            above = {
                word
                for word in re.findall(r"\w+", node.value)
                if height.get(names.get(word, ""), -1) > height[room]
            }
            problems += [f"{path}:{node.lineno}: names {word} of {names[word]}" for word in sorted(above)]
            if room != "cli" and COMMAND.search(node.value):
                problems.append(
                    f"{path}:{node.lineno}: names a command; say what to do in Python, or nothing"
                )
    return problems


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0]) if arguments else ROOT / "src" / "unkernel"
    problems = check(folder, levels(ROOT / "pyproject.toml"))
    for line in problems:
        print(f"error: {line}")
    if not problems:
        print("names: no room speaks of a room above it")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
