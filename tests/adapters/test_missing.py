"""Error messages of adapters whose packages are not installed."""

from __future__ import annotations

import importlib
import sys

import pytest


@pytest.mark.parametrize("name", ["mlflow", "mlserver", "kserve"])
def test_says_what_to_install(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    for module in (f"unkernel.{name}", f"unkernel.adapters.{name}"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(ImportError, match=rf"not installed: pip install 'unkernel\[{name}\]'"):
        importlib.import_module(f"unkernel.{name}")
