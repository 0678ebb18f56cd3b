"""What is said where the package that an adapter is for is not installed."""

from __future__ import annotations

import importlib
import sys

import pytest


@pytest.mark.parametrize("name", ["mlflow", "mlserver", "kserve"])
def test_says_what_to_install(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f"unkernel.{name}", raising=False)
    with pytest.raises(ImportError, match=rf"not installed: pip install 'unkernel\[{name}\]'"):
        importlib.import_module(f"unkernel.{name}")
