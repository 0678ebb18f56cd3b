"""Make RESULTS.md of the figures in benchmarks/results.

    python benchmarks/page.py             # write it
    python benchmarks/page.py --check     # end with 1 if it is not what the figures say

What a benchmark measures is said by the text at the top of its file, and shown above its tables. Nothing on
the page is typed by hand.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.report import Figure, Saved, number, saved

FOLDER = Path(__file__).resolve().parent
PAGE = FOLDER / "RESULTS.md"
WIDE = 0.25  # a spread that is marked

INTRODUCTION = """\
# Results

Made by `make bench` of the figures in [results](results); nothing here is typed by hand. Contenders take
turns, and the best of their runs counts. CPU times are of one thread unless a contender's name says more. In
brackets behind a peer's number is its ratio to ours, the first one of the task. `~` marks numbers whose runs
differ by more than a quarter.
"""


def page(files: Iterable[Saved]) -> str:
    parts = [INTRODUCTION]
    by_benchmark: dict[str, list[Saved]] = {}
    for file in files:
        by_benchmark.setdefault(file.benchmark, []).append(file)
    for benchmark, of_machines in sorted(by_benchmark.items()):
        title, text = words_of(benchmark)
        parts.append(f"## {title}\n\n{text}".strip())
        parts += [chapter(file, alone=len(of_machines) == 1) for file in of_machines]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def words_of(benchmark: str) -> tuple[str, str]:
    """The title and the text of a benchmark: what its file begins with."""
    text = ast.get_docstring(ast.parse((FOLDER / f"{benchmark}.py").read_text(encoding="utf-8"))) or benchmark
    title, _, rest = text.partition("\n")
    return title.rstrip("."), rest.strip()


def chapter(file: Saved, *, alone: bool) -> str:
    state = file.state
    where = (
        f"{state.processor}, {state.machine}, {state.cores} cores, {state.memory_gb} GiB, {state.system}, "
        f"Python {state.python}; commit {state.commit}, {state.date}, load {state.load} when it began"
        f"{'; short version' if state.quick else ''}."
    )
    heading = [] if alone else [f"### {file.state.machine}"]
    tables = [table(figures) for figures in alike(file.figures)]
    missing = [f"- {what}: left out, {reason}" for what, reason in file.left_out.items()]
    return "\n\n".join([*heading, where, *tables, *(["\n".join(missing)] if missing else [])])


def alike(figures: Sequence[Figure]) -> list[list[Figure]]:
    """Tasks that have the same kinds of figures, together: each becomes one table."""
    kinds: dict[str, dict[str, None]] = {}
    for figure in figures:
        kinds.setdefault(figure.task, {})[figure.figure] = None
    groups: dict[tuple[str, ...], list[Figure]] = {}
    for figure in figures:
        groups.setdefault(tuple(kinds[figure.task]), []).append(figure)
    return list(groups.values())


def table(figures: Sequence[Figure]) -> str:
    columns = list(dict.fromkeys((figure.figure, figure.unit) for figure in figures))
    cells = {(figure.task, figure.contender, figure.figure, figure.unit): figure for figure in figures}
    lines = ["| task | contender | " + " | ".join(heading(*column) for column in columns) + " |"]
    lines.append("|---|---|" + "---:|" * len(columns))
    last = ""
    for task, contender in dict.fromkeys((figure.task, figure.contender) for figure in figures):
        row = [cells.get((task, contender, *column)) for column in columns]
        version = next((figure.version for figure in row if figure and figure.version), "")
        name = f"**{contender}**" if contender.startswith("unkernel") else f"{contender} {version}".strip()
        shown = [cell(figure, ours(cells, task, column)) for figure, column in zip(row, columns, strict=True)]
        lines.append(f"| {task if task != last else ''} | {name} | " + " | ".join(shown) + " |")
        last = task
    return "\n".join(lines)


def heading(figure: str, unit: str) -> str:
    return f"{figure}, {unit}" if unit and unit != "number" else figure


def ours(cells: dict[tuple[str, str, str, str], Figure], task: str, column: tuple[str, str]) -> Figure | None:
    return next((f for key, f in cells.items() if key[0] == task and key[2:] == column and f.ours), None)


def cell(figure: Figure | None, ours: Figure | None) -> str:
    if figure is None:
        return ""
    text = ("~" if figure.spread > WIDE else "") + number(figure.value)
    if ours and not figure.ours and figure.value and ours.value:
        text += f" ({number(figure.value / ours.value)})"
    return f"{text}; {figure.note}" if figure.note else text


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="write nothing; end with 1 if the page is old")
    given = parser.parse_args()
    made = page(saved())
    if given.check:
        return int(not PAGE.exists() or PAGE.read_text(encoding="utf-8") != made)
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
