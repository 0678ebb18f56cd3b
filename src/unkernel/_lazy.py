"""Import the public names of a package at their first use (PEP 562).

Thanks to this, ``import unkernel`` does not import modules that only learners or readers need. A package
lists its names twice: as imports for type checkers, and as a table for :func:`lazy_names`. A test compares
both lists.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package : str
        The package's ``__name__``.
    modules : mapping of str to str
        The public names of each module, separated by spaces. An empty string makes the module itself a public
        name.
    """
    module_of = {name: module for module, names in modules.items() for name in names.split()}
    module_of |= {module.rpartition(".")[2]: module for module, names in modules.items() if not names}

    def get_attribute(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(module_of[name])
        value = getattr(module, name) if modules[module_of[name]] else module
        setattr(sys.modules[package], name, value)  # later uses of the name do not call this function
        return value

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *module_of})

    return get_attribute, list_names


def import_object(address: str) -> Any:
    """Import and return an object, such as ``"module:name"`` or ``"module:Class.method"``."""
    module, _, path = address.partition(":")
    value: Any = importlib.import_module(module)
    for name in path.split("."):
        value = getattr(value, name)
    return value
