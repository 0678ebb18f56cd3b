"""Print a software bill of materials of the wheel (CycloneDX 1.6): its compiled-in code and its requirements.

The build calls this and stores the result in the wheel, as PEP 770 says: unkernel-*.dist-info/sboms. It
contains no time and no random number, so the same sources give the same wheel.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
COMPILED_IN = {"nanobind": "BSD-3-Clause"}  # the only foreign code in the extension: nanobind's headers


def reference(name: str, version: str | None = None) -> str:
    """Return the package URL of a Python package."""
    return f"pkg:pypi/{name}" + (f"@{version}" if version else "")


def component(name: str, version: str | None, licence: str | None, scope: str | None) -> dict[str, Any]:
    """Return a component; fields that are None are left out."""
    result = {"type": "library", "bom-ref": reference(name, version), "name": name, "version": version}
    result |= {"scope": scope, "purl": reference(name, version)}
    result |= {"licenses": [{"license": {"id": licence}}] if licence else None}
    return {key: value for key, value in result.items() if value is not None}


def materials() -> dict[str, Any]:
    """Return the bill of materials in the form of CycloneDX."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = re.search(r'__version__ = "([^"]+)"', (ROOT / "src/unkernel/_version.py").read_text())
    assert version is not None
    package = component("unkernel", version[1], project["license"], None)
    compiled = [
        component(name, importlib.metadata.version(name), licence, "required")
        for name, licence in COMPILED_IN.items()
    ]
    needed = [re.split(r"[<>=!~ ]", requirement)[0] for requirement in project["dependencies"]]
    libraries = [component(name, None, None, "required") for name in sorted(needed)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": package},
        "components": compiled + libraries,
        "dependencies": [
            {"ref": package["bom-ref"], "dependsOn": [item["bom-ref"] for item in compiled + libraries]}
        ],
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(materials(), indent=2) + "\n")
