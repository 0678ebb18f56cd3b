"""Docstrings: every example runs with its output, and every fitted attribute is described."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path
from typing import Any

import pytest
from sklearn.base import BaseEstimator

import unkernel
from unkernel import (
    CuttingPlaneSVC,
    PolyLogisticRegression,
    PolySVC,
    RankSVM,
    RecordEncoder,
    TreeKernel,
    TreeSVC,
)

PACKAGE = Path(unkernel.__file__).parent
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def modules_with_examples() -> list[str]:
    """Return the modules with examples in their source, without importing them."""
    files = [file for file in sorted(PACKAGE.rglob("*.py")) if ">>> " in file.read_text(encoding="utf-8")]
    parts = [file.relative_to(PACKAGE.parent).with_suffix("").parts for file in files]
    return [".".join(part for part in names if part != "__init__") for names in parts]


@pytest.mark.docs
@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_of_docstrings(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        pytest.skip(str(error))  # a package that only this module needs is not installed
    assert any(test.examples for test in doctest.DocTestFinder().find(module))
    assert doctest.testmod(module, optionflags=OPTIONS).failed == 0


def test_examples_are_found() -> None:
    result = modules_with_examples()
    assert {"unkernel", "unkernel.poly.svc", "unkernel.models.formats"} <= set(result)
    assert not any(name.endswith("__init__") for name in result)


ROWS, CLASSES = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
TREES = ["(A a)", "(B b)"]


@pytest.mark.docs
@pytest.mark.parametrize(
    ("estimator", "X", "y"),
    [
        (PolySVC(gamma=1), ROWS, CLASSES),
        (PolyLogisticRegression(gamma=1), ROWS, CLASSES),
        (CuttingPlaneSVC(), ROWS, [0, 0, 1, 1]),
        (RankSVM(), ROWS, [0, 0, 1, 1]),
        (RankSVM(degree=2), ROWS, CLASSES),
        (TreeSVC(), TREES, [0, 1]),
        (TreeKernel(), TREES, None),
        (RecordEncoder(min_count=1), [{"job": "pilot"}, {"job": "clerk"}], None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseEstimator) else "",
)
def test_fitted_attributes_are_documented(estimator: BaseEstimator, X: Any, y: Any) -> None:
    docscrape = pytest.importorskip("numpydoc.docscrape")
    fitted = estimator.fit(X, y)
    if isinstance(fitted, RankSVM):
        fitted.fit_thresholds(X, y)
    text = docscrape.ClassDoc(type(fitted), config={"show_class_members": False})
    documented = {attribute.name for attribute in text["Attributes"]}
    result = {name for name in vars(fitted) if name.endswith("_") and not name.startswith("_")}
    assert result
    assert result <= documented
