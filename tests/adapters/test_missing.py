"""Error messages of adapters whose packages are not installed."""

from __future__ import annotations

import importlib
import sys

import pytest


@pytest.mark.parametrize("name", ["mlflow", "mlserver", "kserve"])
def test_missing_packages_are_named_with_the_install_command(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    for module in (f"unkernel.{name}", f"unkernel.adapters.{name}"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(ImportError, match=rf"not installed: pip install 'unkernel\[{name}\]'"):
        importlib.import_module(f"unkernel.{name}")
