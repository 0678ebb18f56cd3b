"""Rooms name only rooms below them, even in strings; type checkers see all lazy names.

import-linter (pyproject.toml) checks imports, but does not look into strings.
"""

from __future__ import annotations

import ast
import functools
import graphlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import unkernel
from unkernel.models import registry

SOURCE = Path(unkernel.__file__).parent
PROJECT = Path(__file__).parents[1] / "pyproject.toml"
LAZY = sorted(
    path for path in SOURCE.rglob("__init__.py") if "lazy_names(" in path.read_text(encoding="utf-8")
)
# The adapters' public names, which occur in other programs' model files.
PUBLIC_NAMES = {"adapters": {"mlflow", "mlserver", "kserve"}}


@functools.cache
def layers() -> list[list[str]]:
    """Return the layers of rooms, the highest first, as in pyproject.toml."""
    contracts = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    (contract,) = (contract for contract in contracts if contract.get("containers") == ["unkernel"])
    return [[room.strip() for room in layer.split("|")] for layer in contract["layers"]]


@functools.cache
def parse_file(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def list_strings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the string constants of a file that are not docstrings."""
    tree = parse_file(path)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


def find_names_above(path: Path, room: str) -> list[str]:
    """Return the lines of a file with strings that name commands or rooms above the file's room."""
    order = layers()
    (level,) = [number for number, rooms in enumerate(order) if room in rooms]
    same_floor = [other_room for other_room in order[level] if other_room != room]
    forbidden_rooms = [other_room for rooms in order[:level] for other_room in rooms] + same_floor
    above = "|".join(
        other_room for other_room in forbidden_rooms if other_room not in PUBLIC_NAMES.get(room, ())
    )
    room_name = re.compile(rf"\bunkernel[./]({above})\b")
    commands = "train|tune|predict|compile|inspect|explain|bench|parse|evaluate|serve"
    command = re.compile(rf"\bunkernel ({commands})\b")
    return [
        f"{path.relative_to(SOURCE)}:{line}: {text!r}"
        for line, text in list_strings(path)
        if room_name.search(text) or command.search(text)
    ]


BELOW_COMMANDS = [room for rooms in layers() for room in rooms if room != "cli" and (SOURCE / room).is_dir()]


@pytest.mark.parametrize("room", BELOW_COMMANDS)
def test_no_string_names_a_room_above(room):
    assert not [line for path in (SOURCE / room).rglob("*.py") for line in find_names_above(path, room)]


def test_names_of_rooms_above_are_found_in_strings(tmp_path, monkeypatch):
    monkeypatch.setattr("test_rooms.SOURCE" if __name__ == "test_rooms" else f"{__name__}.SOURCE", tmp_path)
    source_file = tmp_path / "bad.py"
    source_file.write_text(
        '"""unkernel.parsing in a docstring is fine."""\n'
        'a = "unkernel.parsing.chunks"\nb = f"{a} see unkernel parse"\nc = "unkernel.data.files"\n'
    )
    assert len(find_names_above(source_file, "models")) == 2


@pytest.mark.parametrize("path", LAZY, ids=lambda path: str(path.parent.relative_to(SOURCE.parent)))
def test_type_checkers_see_all_lazy_names(path):
    """Each name is imported under TYPE_CHECKING, is in ``__all__``, and gives the same object."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    (guarded,) = [node for node in tree.body if isinstance(node, ast.If)]
    type_checked = {name.name for node in guarded.body for name in node.names}
    eager = {name.name for node in tree.body if isinstance(node, ast.ImportFrom) for name in node.names}
    package = ".".join(path.parent.relative_to(SOURCE.parent).parts)
    module = __import__(package, fromlist=["*"])
    assert type_checked | (eager & set(module.__all__)) == set(module.__all__)
    for node in guarded.body:
        for name in node.names:
            assert getattr(module, name.name) is getattr(__import__(node.module, fromlist=["*"]), name.name)
            assert name.name in dir(module)


def test_every_registered_kind_has_a_loader():
    kinds = registry.list_kinds()
    assert {"compiled", "conjunctions", "kernel", "linear", "tree"} < set(kinds)
    for name, kind in kinds.items():
        assert kind.name == name
        assert kind.description.startswith("a ")
        assert callable(kind._import_loader())


# --- Cycles -------------------------------------------------------------------------------------------


def imports(path: Path) -> Iterator[tuple[str, str | None]]:
    """Yield the modules and names that a file imports at run time, also inside functions."""

    def visit(node: ast.AST) -> Iterator[tuple[str, str | None]]:
        if isinstance(node, ast.Import):
            yield from ((name.name, None) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((str(node.module), name.name) for name in node.names)
        only_types = isinstance(node, ast.If) and getattr(node.test, "id", None) == "TYPE_CHECKING"
        for child in node.orelse if only_types else ast.iter_child_nodes(node):
            yield from visit(child)

    yield from visit(ast.parse(path.read_text(encoding="utf-8")))


def lazy_sources(path: Path) -> dict[str, str]:
    """Return the sources of a package's lazy names."""
    if path not in LAZY:
        return {}
    result = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    tables = (node for node in result if isinstance(node, ast.ImportFrom))
    return {name.name: str(node.module) for node in tables for name in node.names}


def import_graph(source: Path) -> dict[str, set[str]]:
    """Return the modules of a package, each with its imports."""
    paths = {
        ".".join(path.relative_to(source.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in source.rglob("*.py")
    }

    lazy_sources_of = functools.cache(lazy_sources)  # of a package that many import

    def find_source_module(module: str, name: str | None) -> str:
        if f"{module}.{name}" in paths:
            return f"{module}.{name}"
        return lazy_sources_of(paths[module]).get(str(name), module) if module in paths else module

    return {
        module_name: {find_source_module(*imported) for imported in imports(path)}
        & paths.keys() - {module_name}
        for module_name, path in paths.items()
    }


def test_imports_have_no_cycles():
    graphlib.TopologicalSorter(import_graph(SOURCE)).prepare()  # raises CycleError, which names the cycle


def test_import_cycles_through_functions_are_found(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "a.py").write_text("from package.b import f\n")
    (package / "b.py").write_text("def f():\n    from package import a\n")
    with pytest.raises(graphlib.CycleError, match=r"package\.[ab]"):
        graphlib.TopologicalSorter(import_graph(package)).prepare()
    (package / "b.py").write_text("if TYPE_CHECKING:\n    from package import a\n")
    graphlib.TopologicalSorter(import_graph(package)).prepare()
