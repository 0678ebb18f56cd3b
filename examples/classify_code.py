"""Trees: which package of Python's standard library is a function from?

    python examples/classify_code.py

Every function is a syntax tree. Tree kernels are shown beside a bag of names, which is what most would try
first, and both once more with all names hidden. The sources come with Python.
"""

from __future__ import annotations

import ast
import sysconfig
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.svm import LinearSVC

from example_output import print_note, print_table, timed
from unkernel.data import Forest
from unkernel.data.trees.ast_trees import from_ast
from unkernel.data.trees.preorder import Preorder
from unkernel.tree import TreeSVC

# Packages that every Python has, of about the same size; others replace one that is missing.
_USUAL_PACKAGES = ("asyncio", "email", "importlib", "multiprocessing", "unittest", "xml")
_NOT_CODE_OF_ITS_OWN = ("test", "tests", "site-packages", "dist-packages", "lib-dynload", "ensurepip")
_FEWEST_FUNCTIONS = 60  # of a package that takes part
_FEWEST_NODES, _MOST_NODES = 20, 400  # of a function
_HELD_OUT = 3  # every third module of a package is for testing
_TREES: dict[str, Any] = {"kernel": "sst", "decay": 0.1, "C": 10.0}
_NAMES_C = 0.1
_NAME_FIELDS = frozenset({"id:", "attr:", "arg:", "name:", "names:", "asname:", "module:", "str:", "bytes:"})


@dataclass(frozen=True)
class Functions:
    """Functions of Python packages: their syntax trees, packages, and whether their module is held out."""

    nodes: list[ast.AST]
    packages: NDArray[Any]
    held_out: NDArray[np.bool_]


@dataclass(frozen=True)
class TreeFit:
    """A classifier of functions; `microseconds` per test function, all asked at once."""

    name: str
    accuracy: float
    training_seconds: float
    microseconds: float


def show(console: Console) -> None:
    """A table of all classifiers."""
    functions = standard_library()
    if functions is None:
        print_note(console, "trees: left out, as this Python has no sources of its standard library.")
        return
    packages, test = sorted(set(functions.packages.tolist())), int(functions.held_out.sum())
    print_table(
        console,
        f"{len(functions.nodes) - test:,} functions to train on, {test:,} to test on",
        ("", "correct", "training", "one function"),
        (
            (
                fit.name.startswith("TreeSVC"),
                (
                    fit.name,
                    f"{fit.accuracy:.1%}",
                    f"{fit.training_seconds:.2f} s",
                    f"{fit.microseconds:,.0f} µs",
                ),
            )
            for fit in tree_fits(functions)
        ),
    )
    print_note(
        console,
        f"Packages: {', '.join(packages)}. Test functions are those of modules that training has not seen. "
        "Names tell most, so a bag of them is hard to beat; trees add what it cannot say. With names and "
        "strings hidden, only structure is left.\n"
        "'one function' is the time of predict for all test functions at once, divided by their number.",
    )


def standard_library(folder: Path | None = None, count: int = 6) -> Functions | None:
    """Functions of `count` packages of the standard library; None where fewer than two have sources."""
    folder = Path(sysconfig.get_path("stdlib")) if folder is None else folder
    nodes: list[ast.AST] = []
    packages: list[str] = []
    held_out: list[bool] = []
    for package in _packages(folder):
        found = list(_functions(package))
        if len(found) >= _FEWEST_FUNCTIONS and {held for _, held in found} == {True, False}:
            nodes += [node for node, _ in found]
            held_out += [held for _, held in found]
            packages += [package.name] * len(found)
        if len(set(packages)) == count:
            break
    if len(set(packages)) < 2:
        return None
    return Functions(nodes, np.array(packages), np.array(held_out))


def _packages(folder: Path) -> list[Path]:
    """The usual ones first, then all others by name."""
    others = sorted(path.parent.name for path in folder.glob("*/__init__.py"))
    names = [
        *_USUAL_PACKAGES,
        *(name for name in others if name not in _USUAL_PACKAGES + _NOT_CODE_OF_ITS_OWN),
    ]
    return [folder / name for name in names if name in others]


def _functions(package: Path) -> Iterator[tuple[ast.AST, bool]]:
    """Functions that are neither a line nor a whole program, and whether their module is held out."""
    for number, module in enumerate(_modules(package)):
        for node in ast.walk(module):
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if is_function and _FEWEST_NODES <= sum(1 for _ in ast.walk(node)) <= _MOST_NODES:
                yield node, number % _HELD_OUT == 1


def _modules(package: Path) -> Iterator[ast.Module]:
    """Those that this Python can parse; no tests."""
    for path in sorted(package.rglob("*.py")):
        if {"test", "tests"} & set(path.relative_to(package).parts):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue


def tree_fits(functions: Functions) -> list[TreeFit]:
    """Bags and trees, with names and without."""
    trees = [from_ast(node) for node in functions.nodes]
    hidden = [nameless(tree) for tree in trees]
    names, kinds = (
        CountVectorizer(analyzer=take, binary=True).fit_transform(items).astype(float)
        for take, items in ((names_in, functions.nodes), (lambda tree: tree.labels, hidden))
    )
    bag = LinearSVC(C=_NAMES_C, random_state=0)
    tree = TreeSVC(**_TREES)
    return [
        _tree_fit("LinearSVC, names", bag, names, functions),
        _tree_fit("TreeSVC, trees", tree, Forest(trees), functions),
        _tree_fit("TreeSVC, trees and names", tree, Forest(trees, vectors=names), functions),
        _tree_fit("LinearSVC, kinds of nodes; names hidden", bag, kinds, functions),
        _tree_fit("TreeSVC, trees; names hidden", tree, Forest(hidden), functions),
    ]


def _tree_fit(name: str, classifier: Any, X: Any, functions: Functions) -> TreeFit:
    test = functions.held_out
    _, training_seconds = timed(classifier.fit, X[~test], functions.packages[~test])
    expected = functions.packages[test]
    answers, seconds = timed(classifier.predict, X[test])
    accuracy = float(np.mean(answers == expected))
    return TreeFit(name, accuracy, training_seconds, 1e6 * seconds / len(expected))


def names_in(node: ast.AST) -> list[str]:
    """All names of variables, attributes, arguments and functions."""
    fields = (
        getattr(part, field, None) for part in ast.walk(node) for field in ("id", "attr", "arg", "name")
    )
    return [name for name in fields if isinstance(name, str)]


def nameless(tree: Preorder) -> Preorder:
    """The same tree with ``_`` for every name and every string."""
    labels = list(tree.labels)
    for place, (label, arity) in enumerate(zip(tree.labels, tree.arities, strict=True)):
        if label in _NAME_FIELDS:
            child = place + 1
            while child <= place + arity and tree.arities[child] == 0:
                labels[child] = "_"
                child += 1
    return Preorder(labels, tree.arities)
