"""Check that rooms of the C++ core include only rooms below them, and do not use Python.

    base < data < kernels | records < engines | solve < poly | cutplane | tree < parsing

A room may include itself and the rooms below it, but no other room on its level. Learners (poly, cutplane,
tree) do not include engines either: both use kernels.
Nothing in the core may include Python or nanobind, print, leave the process or draw from ``rand()``.
A file of more than 500 lines causes a warning, and one of more than 700 an error.

    python tools/check_includes.py [folder]      # cpp/unkernel by default
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

LEARNERS = ("poly", "cutplane", "tree")
LAYERS = (
    ("base",),
    ("data",),
    ("kernels", "records"),
    ("engines", "solve"),
    LEARNERS,
    ("parsing",),
)
# Descriptions of the rooms, for docs/developing.md (tools/rooms_table.py).
ABOUT = {
    "base": "errors, random numbers, threads, SIMD dispatch, hash maps, files, progress and cancellation",
    "data": "`rows/` (svmlight and packed rows, block files), `trees/` (the forest and its readers), `text/`",
    "kernels": "the feature map, the index of conjunctions, tree kernels: shared by learners and engines",
    "records": "plans that turn columns, dicts and texts into features",
    "engines": "compiled models: `conjunctions/`, `vectors/`, `trees/`, caches, one row at a time",
    "solve": "dual coordinate descent, proximal Newton, SMO, one-slack cutting planes, small QPs",
    "poly": "rows of conjunctions: condensed, on the fly, split; training in the feature space of the kernel",
    "cutplane": "oracles of losses and rankings for cutting planes and dual coordinate descent",
    "tree": "exact and sampled training on forests",
    "parsing": "`features/`, `arc_eager/`, `bunsetsu/`, `chunks/`, `tagging/`, `text/`, online learning",
}
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}

LONG, TOO_LONG = 500, 700  # numbers of lines: a warning, and an error

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
FORBIDDEN_HEADERS = {
    "Python.h": "the core knows no Python",
    "nanobind/": "bindings stand outside of the core",
    "iostream": "the core prints nothing",
    "print": "the core prints nothing",
}
FORBIDDEN_CALLS = {
    r"\b(?:s?rand|drand48|rand_r)\s*\(": "use the seeded generator of base/random.hpp",
    r"\b(?:printf|fprintf|puts)\s*\(": "the core prints nothing",
    r"\bstd::(?:cout|cerr|clog)\b": "the core prints nothing",
    r"\b(?:std::|::)?(?:exit|_Exit|quick_exit|abort)\s*\(": "the core never leaves the process: throw",
}


def check_file(path: Path, folder: Path) -> Iterator[str]:
    """Yield all faults of one file, as ``file:line: fault``."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    room = path.relative_to(folder).parts[0]
    if room not in LEVEL:
        yield f"{path}:1: {room!r} is no room: they are {', '.join(LEVEL)}"
        return
    for number, line in enumerate(lines, start=1):
        if match := INCLUDE.match(line):
            for reason in _check_include(room, quoted=match[1], angled=match[2]):
                yield f"{path}:{number}: {reason}"
    for number, line in enumerate(_remove_comments_and_strings(text).splitlines(), start=1):
        for pattern, reason in FORBIDDEN_CALLS.items():
            if match := re.search(pattern, line):
                yield f"{path}:{number}: {match[0].strip()!r}: {reason}"
    if len(lines) > TOO_LONG:
        yield f"{path}:{len(lines)}: {len(lines)} lines, more than {TOO_LONG}: split it"


def _check_include(room: str, quoted: str | None, angled: str | None) -> Iterator[str]:
    header = quoted or angled or ""
    for forbidden, reason in FORBIDDEN_HEADERS.items():
        if header == forbidden or (forbidden.endswith("/") and header.startswith(forbidden)):
            yield f"includes {header}: {reason}"
            return
    if quoted is None:
        return
    parts = quoted.split("/")
    if parts[0] != "unkernel" or len(parts) < 3 or parts[1] not in LEVEL:
        yield f'includes "{quoted}": write it as "unkernel/<folder>/<file>"'
    elif parts[1] != room and LEVEL[parts[1]] >= LEVEL[room]:
        level = "on its own level" if LEVEL[parts[1]] == LEVEL[room] else "above it"
        yield f'includes "{quoted}": {room} may include only folders below it, and {parts[1]} is {level}'
    elif parts[1] == "engines" and room in LEARNERS:
        yield f'includes "{quoted}": learners and engines share kernels, and nothing else'


def _remove_comments_and_strings(text: str) -> str:
    """Return a text without comments and strings, and with the same number of lines."""
    return COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text)


def check(folder: Path) -> tuple[list[str], list[str]]:
    """Return the faults in a folder of rooms, and warnings."""
    problems, remarks = [], []
    for path in sorted(folder.rglob("*")):
        if path.suffix not in {".cpp", ".hpp", ".h"} or not path.is_file():
            continue
        problems += check_file(path, folder)
        length = len(path.read_text(encoding="utf-8").splitlines())
        if LONG < length <= TOO_LONG:
            remarks.append(f"{path}:{length}: {length} lines, more than {LONG}: think of splitting it")
    return problems, remarks


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[1] / "cpp" / "unkernel"
    problems, remarks = check(folder)
    for line in remarks:
        print(f"warning: {line}")
    for line in problems:
        print(f"error: {line}")
    if not problems:
        print("includes: the rooms keep their order")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
