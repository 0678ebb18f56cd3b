"""Print the requirements of an extra of pyproject.toml, of its build system or of the package itself, one
per line, so that they can be installed without building the package once more.

    python tools/requirements.py test
    python tools/requirements.py build-system
    python tools/requirements.py dependencies
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def requirements(extra: str) -> list[str]:
    """Return the requirements of an extra, of "build-system", or of the package ("dependencies")."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"] | {
        "build-system": project["build-system"]["requires"],
        "dependencies": project["project"]["dependencies"],
    }
    if extra not in extras:
        raise SystemExit(f"pyproject.toml has no extra {extra!r}; it has {', '.join(extras)}")
    return list(extras[extra])


if __name__ == "__main__":
    print(*requirements(sys.argv[1]), sep="\n")
