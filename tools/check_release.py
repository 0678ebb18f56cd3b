"""Check that all version numbers agree with the tag of a release.

    python tools/check_release.py v0.2.0

Prints the differences and exits with 1 if the tag, the package, the changes or the conda recipe disagree.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def problems(tag: str, root: Path = ROOT) -> list[str]:
    """Return what must be fixed before ``tag`` can be published from the tree ``root``."""

    def text(place: str) -> str:
        return (root / place).read_text(encoding="utf-8")

    version = tag.removeprefix("v")
    expected = {
        "src/unkernel/_version.py": f'__version__ = "{version}"',
        "packaging/conda/recipe.yaml": f'version: "{version}"',
    }
    result = [f"{place} does not say {line}" for place, line in expected.items() if line not in text(place)]
    dated = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$"
    if not re.search(dated, text("CHANGELOG.md"), re.MULTILINE):
        result.append(f"CHANGELOG.md has no section '## [{version}] - YYYY-MM-DD'")
    return result


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or not re.fullmatch(r"v\d+\.\d+\.\d+", arguments[0]):
        print(f"give a tag such as v1.2.3, not {' '.join(arguments) or 'nothing'}", file=sys.stderr)
        return 2
    messages = problems(arguments[0])
    print(*messages, sep="\n", end="\n" if messages else "", file=sys.stderr)
    return 1 if messages else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
