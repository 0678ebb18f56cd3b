"""The installed package: names, version, types, and one extension for many Pythons."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.resources
import importlib.util
import json
import re
import subprocess
import sys

import pytest

import unkernel
from reference.processes import run_program
from unkernel import _core

# Other projects rely on these names.
PUBLIC = {
    "CompiledClassifier",
    "ConjunctionModel",
    "FormatError",
    "PolySVC",
    "datasets",
    "load",
    "read_svmlight",
    "write_svmlight",
}


def test_the_version_equals_the_metadata() -> None:
    assert unkernel.__version__ == importlib.metadata.version("unkernel")


def test_the_wheel_has_a_bill_of_materials() -> None:
    """The bill is where PEP 770 says, and lists compiled-in code and all required libraries."""
    files = importlib.metadata.files("unkernel") or []
    (place,) = [file for file in files if "sboms" in file.parts]
    materials = json.loads(place.read_text())
    component_names = {component["name"] for component in materials["components"]}
    needed = importlib.metadata.requires("unkernel") or []
    assert {
        re.split(r"[<>=;\[ ]", requirement)[0] for requirement in needed if "extra ==" not in requirement
    } | {"nanobind"} == component_names
    assert materials["metadata"]["component"]["version"] == unkernel.__version__


def test_public_names_exist() -> None:
    assert set(unkernel.__all__) >= PUBLIC
    for name in unkernel.__all__:
        assert getattr(unkernel, name) is not None


def test_dir_lists_only_public_names() -> None:
    """``dir(unkernel)`` lists only the names in ``__all__`` and the rooms."""
    listed = {name for name in dir(unkernel) if not name.startswith("_")}
    rooms = {name for name in listed if importlib.util.find_spec(f"unkernel.{name}")}
    assert listed - rooms - {"TYPE_CHECKING", "lazy_names"} <= set(unkernel.__all__)
    assert set(unkernel.__all__) <= set(dir(unkernel))


def test_rooms_are_attributes_of_the_package() -> None:
    code = "import unkernel as u; print(u.poly.PolySVC is u.PolySVC, u.parsing.Chunker.__name__)"
    assert run_program(code).split() == ["True", "Chunker"]


def test_missing_names_raise_attribute_errors() -> None:
    for package in ("unkernel", "unkernel.data", "unkernel.models", "unkernel.parsing"):
        module = importlib.import_module(package)
        with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'PolySCV'"):
            _ = module.PolySCV


def test_the_package_declares_its_types() -> None:
    assert importlib.resources.files("unkernel").joinpath("py.typed").is_file()


def test_the_extension_keeps_to_the_stable_abi() -> None:
    assert _core.__file__ is not None
    assert ".abi3." in _core.__file__


def test_metadata_name_the_licence_and_the_command() -> None:
    assert importlib.metadata.metadata("unkernel")["License-Expression"] == "BSD-3-Clause"
    (command,) = importlib.metadata.entry_points(group="console_scripts", name="unkernel")
    assert command.value == "unkernel.cli:main"
    assert callable(command.load())


def test_free_threaded_pythons_are_refused_in_words() -> None:
    program = "import sys; sys.version = '3.14.0 free-threading build (main)'; import unkernel"
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert completed.returncode == 1
    assert completed.stderr.splitlines()[-1] == (
        "ImportError: unkernel needs a Python with the global interpreter lock, and this one is "
        "free-threaded; use the ordinary build of Python 3.14.0"
    )


def test_importing_prints_nothing_and_imports_no_large_packages() -> None:
    """Large packages would make the import slow; a limit in seconds would fail by chance."""
    code = "import sys, json, unkernel; print(json.dumps(sorted(sys.modules)))"
    modules = set(json.loads(run_program(code)))
    unwanted = {
        "scipy",
        "sklearn",
        "pandas",
        "joblib",
        "zstandard",
        "unkernel._core",
        "unkernel.engines",
        "unkernel.parsing",
        "typer",
        "rich",
        "matplotlib",
        "pytest",
        "hypothesis",
        "unkernel.cli",
    }
    assert not modules & unwanted
