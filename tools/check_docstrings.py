"""Check that everything public has a complete docstring, in numpydoc's form.

A name is public if it is in ``__all__`` of the package or of a room, or is a method or property of such a
class. Members documented by scikit-learn or Python (``get_params``, the methods of a tuple) are excluded.
``[tool.numpydoc_validation]`` in pyproject.toml lists the checks of all docstrings. The docstring of a class
or function also needs an example and a "See Also".

    python tools/check_docstrings.py              # everything
    python tools/check_docstrings.py data models  # these rooms
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.util
import inspect
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from numpydoc.docscrape import get_doc_object
from numpydoc.validate import Validator, validate
from sphinx.ext.autodoc.mock import mock

ROOT = Path(__file__).resolve().parents[1]
# In the order of the site; "" is the package itself.
ROOMS = (
    *("", "data", "data.datasets", "records", "models", "engines", "poly", "cutplane", "tree"),
    *("parsing", "distributed", "report", "serve", "mlflow", "mlserver", "kserve"),
)
# Packages needed by some rooms only. If one is missing, a stand-in allows importing these rooms.
OPTIONAL = ("dask", "distributed", "kserve", "mlflow", "mlserver", "starlette", "uvicorn", "msgspec")
FOR_CLASSES_AND_FUNCTIONS = {"EX01", "SA01"}  # an example, and a "See Also"


class Docstring(Validator):  # type: ignore[misc]
    """A docstring; dataclasses and named tuples may describe their fields as attributes."""

    @property
    def doc_all_parameters(self) -> dict[str, tuple[str, list[str]]]:
        """Return the documented parameters; for a class with fields, perhaps its documented attributes."""
        described: dict[str, tuple[str, list[str]]] = super().doc_all_parameters
        has_fields = dataclasses.is_dataclass(self.obj) or hasattr(self.obj, "_fields")
        if not has_fields or described:
            return described
        attributes = self._doc_parameters(["Attributes"])
        fields = [name for name in self.signature_parameters if name in attributes]
        return {name: attributes[name] for name in fields}

    @property
    def signature_parameters(self) -> tuple[str, ...]:
        """Return the parameters without private ones, and for classes without ``*args`` and ``**kwargs``."""
        hidden = ("_", "*") if inspect.isclass(self.obj) else ("_",)
        return tuple(name for name in super().signature_parameters if not name.startswith(hidden))

    @property
    def doc_parameters(self) -> dict[str, tuple[str, list[str]]]:
        return self.doc_all_parameters


def public_names(module: ModuleType) -> list[str]:
    """Return ``__all__``, or the names that the module itself defines."""
    defined = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    return [name for name in getattr(module, "__all__", defined) if not name.startswith("_")]


def members(owner: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties that this package defines for a class, with their full names.

    An override without a docstring has that of the base class, like in ``help`` and on the site.
    """
    names = set()
    for place, base in enumerate(owner.__mro__):
        for name, value in vars(base).items():
            if name.startswith("_") or name in names:
                continue
            if not value.__doc__ and any(
                _documents(base_class, name) for base_class in owner.__mro__[place + 1 :]
            ):
                continue
            names.add(name)
            ours = base.__module__.startswith("unkernel.") and not _is_made_by_sklearn(value)
            if ours and (inspect.isroutine(value) or isinstance(value, property | functools.cached_property)):
                yield f"{base.__module__}.{base.__qualname__}.{name}", getattr(base, name)


def _documents(owner: type, name: str) -> bool:
    return bool(getattr(vars(owner).get(name), "__doc__", ""))


def _is_made_by_sklearn(value: Any) -> bool:
    """Return whether this is a method such as ``set_fit_request``, which scikit-learn adds and documents."""
    return type(value).__module__.startswith("sklearn.utils._metadata_requests")


def public_objects(rooms: list[str]) -> dict[str, Any]:
    """Return all public objects of some rooms, by their place of definition."""
    result: dict[str, Any] = {}
    for room in rooms:
        module = importlib.import_module(f"unkernel.{room}".rstrip("."))
        for name in public_names(module):
            value = getattr(module, name)
            if isinstance(value, ModuleType):
                continue  # a separate room
            result[f"{value.__module__}.{value.__qualname__}"] = value
            if inspect.isclass(value):
                result.update(members(value))
    return result


def problems(where: str, value: Any, required_codes: set[str]) -> list[str]:
    """Return the faults of a docstring, as ``name: code text``."""
    is_class_or_function = inspect.isclass(value) or where.rpartition(".")[0] == getattr(
        value, "__module__", ""
    )
    codes = required_codes | FOR_CLASSES_AND_FUNCTIONS if is_class_or_function else required_codes
    checked = validate(where, lambda obj_name: Docstring(get_doc_object(value)))
    return [f"{where}: {code} {text}" for code, text in checked["errors"] if code in codes]


def wanted_checks() -> set[str]:
    """Return numpydoc's codes that apply to all docstrings."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return set(project["tool"]["numpydoc_validation"]["checks"])


def main(arguments: list[str]) -> int:
    required_codes = wanted_checks()
    missing = [name for name in OPTIONAL if importlib.util.find_spec(name) is None]
    with mock(missing):
        objects = public_objects(arguments or list(ROOMS))
        result = [line for where, value in objects.items() for line in problems(where, value, required_codes)]
    for line in result:
        print(f"error: {line}")
    if not result:
        print(f"docstrings: all {len(objects)} public names are documented")
    return 1 if result else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
