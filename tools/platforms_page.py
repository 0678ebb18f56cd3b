"""Write docs/trust/platforms.md from the files in docs/trust/platforms, or check that it is current.

python tools/platforms_page.py            # writes the page
python tools/platforms_page.py --check    # fails if the page is not what would be written
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "trust"
PAGE = FOLDER / "platforms.md"
# The targets of tools/platforms.py in the order of the page, with their descriptions.
TARGETS = {
    "suite-x86_64": "Linux with glibc, x86-64: the whole suite, as `make test` runs it",
    "suite-aarch64": "Linux with glibc, aarch64: the whole suite, as `make test` runs it",
    "clang-libcxx": "Clang and libc++, as on macOS: core, native tests and extension, warnings as errors",
    "other-char-sign": "The other sign of `char`: core, native tests and extension",
    "other-architecture-x86_64": "Linux, glibc, x86-64, emulated on aarch64: native tests, models and text",
    "other-architecture-aarch64": "Linux, glibc, aarch64, emulated on x86-64: native tests, models and text",
    "musl": "Linux with musl (Alpine): core and native tests, linked statically",
    "musl-x86_64": "Linux with musl, x86-64: core and native tests, linked statically",
    "musl-aarch64": "Linux with musl, aarch64: core and native tests, linked statically",
    "windows": "Windows, x86-64: core and native tests, compiled and linked",
    "pythons": "The same wheel on other Pythons: a core part of the tests",
}


def results() -> dict[str, dict[str, Any]]:
    """Return the recorded results by target; raise a ValueError for a target missing in the table above."""
    result = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((FOLDER / "platforms").glob("*.json"))
    }
    if unknown := result.keys() - TARGETS.keys():
        raise ValueError(f"tools/platforms_page.py does not say what {', '.join(sorted(unknown))} stands for")
    return result


def page() -> str:
    """Return the page: a line per target with results, and the names of targets without results."""
    result = results()
    lines = [line(target, result[target]) for target in TARGETS if target in result]
    targets_without_results = [
        f"`{target}`" for target in TARGETS if target not in result and not target.startswith("musl-")
    ]
    if targets_without_results:
        lines.append(f"\nNo run is recorded of {', '.join(targets_without_results)}.\n")
    words = (FOLDER / "platforms" / "page.txt").read_text(encoding="utf-8")
    return words.replace("@results@", "".join(lines))


def line(target: str, result: dict[str, Any]) -> str:
    """Return the line of a target."""
    python = f"Python {result['python']}" if result["python"] else ""
    by = ", ".join(filter(None, [result["compiler"], python]))
    message = result["verdict"] + (f": {result['reason']}" if result["reason"] else "")
    cells = [
        f"`{target}`",
        TARGETS[target],
        by,
        count_words(result["native_tests"]),
        count_words(result["python_tests"]),
        f"{result['machine']}, {result['date']}, commit {result['commit']}",
        message,
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def count_words(counts: dict[str, int] | None) -> str:
    """Return the numbers of tests that passed, failed and were skipped, in words."""
    if counts is None:
        return "not run"
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count or name == "passed")


def main(arguments: list[str]) -> int:
    """Write the page, or check it."""
    if arguments == ["--check"]:
        if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page():
            return 0
        print(f"{PAGE} is not current: run python tools/platforms_page.py", file=sys.stderr)
        return 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
