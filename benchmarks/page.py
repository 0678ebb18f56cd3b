"""Make RESULTS.md, and tables of the documentation, of the figures in benchmarks/results.

    python benchmarks/page.py                     # write them
    python benchmarks/page.py --check             # end with 1 if one is not what the figures say
    python benchmarks/page.py --figures FOLDER    # draw the curves, if matplotlib is there

What a benchmark measures is said by the text at the top of its file, and shown above its tables. Nothing on
the page is typed by hand. A page of the documentation shows a table of some tasks between two comments,
`<!-- results of BENCHMARK: TASK; TASK -->` and `<!-- end of results -->`.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import dedent

from harness.report import Figure, Saved, digits, number, saved
from harness.state import ROOT, State

FOLDER = Path(__file__).resolve().parent
PAGE = FOLDER / "RESULTS.md"
WIDE = 0.25  # a spread that is marked
Cell = tuple[str, str, float | None, str, str]

INTRODUCTION = """\
# Results

Made by `make bench` of the figures in [results](results); nothing here is typed by hand. Contenders take
turns, and the best of their runs counts. CPU times are of one thread unless a contender's name says more. In
brackets behind a peer's number is its ratio to ours, the first one of the task. `~` marks numbers whose runs
differ by more than a quarter. Tables and figures of the papers that unkernel stands on, measured again by
`make papers`, are on their pages, [the first of which](../docs/papers/chang2010.md) names the others.
"""
PAPERS = "paper_"  # what their benchmarks begin with
BLOCK = re.compile(r"(<!-- results of (\w+): ([^\n]*?) -->\n).*?(<!-- end of results -->)", re.DOTALL)


# --- The page -----------------------------------------------------------------------------------------


def page(files: Iterable[Saved]) -> str:
    # Papers have pages of their own: papers.py.
    files = [file for file in files if not file.benchmark.startswith("paper_")]
    by_benchmark: dict[str, list[Saved]] = {}
    for file in files:
        by_benchmark.setdefault(file.benchmark, []).append(file)
    titles = {benchmark: words_of(benchmark)[0] for benchmark in sorted(by_benchmark)}
    parts = [INTRODUCTION, "Measured on:", machines(files), "What was measured:"]
    parts.append("\n".join(f"- [{title}](#{anchor(title)})" for title in titles.values()))
    for benchmark, title in titles.items():
        of_machines = by_benchmark[benchmark]
        parts.append(f"## {title}\n\n{words_of(benchmark)[1]}".strip())
        parts += [chapter(file, alone=len(of_machines) == 1) for file in of_machines]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def machines(files: Iterable[Saved]) -> str:
    """One line for each machine, with its commits."""
    found: dict[str, set[str]] = {}
    for file in files:
        found.setdefault(machine(file.state), set()).add(file.state.commit)
    lines = []
    for words, commits in found.items():
        kept = sorted(commits)
        lines.append(f"- {words}; commit{'s' * (len(kept) > 1)} {', '.join(kept)}")
    return "\n".join(lines)


def machine(state: State) -> str:
    return (
        f"{state.machine}: {state.processor}, {state.cores} cores, {state.memory_gb} GiB, {state.system}, "
        f"Python {state.python}"
    )


def anchor(title: str) -> str:
    return re.sub(r"\s+", "-", re.sub(r"[^\w\- ]", "", title.lower()).strip())


def words_of(benchmark: str) -> tuple[str, str]:
    """The title and the text of a benchmark: what its file begins with, up to a colon and from there on."""
    text = ast.get_docstring(ast.parse((FOLDER / f"{benchmark}.py").read_text(encoding="utf-8"))) or benchmark
    line, _, rest = text.partition("\n")
    title, _, more = line.rstrip(".").partition(": ")
    about = f"{more[0].upper()}{more[1:]}.\n\n" if more else ""
    return title, about + fenced(rest.strip("\n"))


def fenced(text: str) -> str:
    """Indented lines between fences, as a list would swallow them."""
    return re.sub(
        r"(?:^ {4}.*(?:\n|$))+", lambda lines: f"```\n{dedent(lines[0]).rstrip()}\n```\n", text, flags=re.M
    ).strip()


def chapter(file: Saved, *, alone: bool) -> str:
    heading = [] if alone else [f"### {anchor(file.benchmark)}: {file.state.machine}"]
    tables = [table(figures) for figures in alike(file.figures)]
    return "\n\n".join([*heading, state_of(file.state), *tables, *missing(file.left_out)])


def state_of(state: State) -> str:
    """When, of which commit, beside how much other work."""
    short = "; short version (`make bench QUICK=1`)" if state.quick else ""
    return f"Commit {state.commit}, {state.date}, load {state.load} of {state.cores} when it began{short}."


def missing(left_out: dict[str, str]) -> list[str]:
    """What is left out, by the reason."""
    reasons: dict[str, list[str]] = {}
    for what, reason in left_out.items():
        reasons.setdefault(reason, []).append(what)
    lines = [f"- Left out: {'; '.join(what)} ({reason})" for reason, what in reasons.items()]
    return ["\n".join(lines)] if lines else []


def alike(figures: Sequence[Figure]) -> list[list[Figure]]:
    """Tasks that have the same kinds of figures, together: each becomes one table."""
    kinds: dict[str, dict[str, None]] = {}
    for figure in figures:
        kinds.setdefault(figure.task, {})[figure.figure] = None
    groups: dict[tuple[str, ...], list[Figure]] = {}
    for figure in figures:
        groups.setdefault(tuple(sorted(kinds[figure.task])), []).append(figure)
    return list(groups.values())


def table(figures: Sequence[Figure]) -> str:
    columns = list(dict.fromkeys((figure.figure, figure.unit) for figure in figures))
    cells: dict[Cell, Figure] = {
        (one.task, one.contender, one.at, one.figure, one.unit): one for one in figures
    }
    lines = ["| task | contender | " + " | ".join(heading(*column) for column in columns) + " |"]
    lines.append("|---|---|" + "---:|" * len(columns))
    last = ""
    for task, contender, at in dict.fromkeys((one.task, one.contender, one.at) for one in figures):
        row = [cells.get((task, contender, at, *column)) for column in columns]
        version = next((figure.version for figure in row if figure and figure.version), "")
        name = f"**{contender}**" if contender.startswith("unkernel") else with_version(contender, version)
        name += "" if at is None else f" at {number(at)}"
        shown = [cell(figure, ours(cells, task, column)) for figure, column in zip(row, columns, strict=True)]
        lines.append(f"| {task if task != last else ''} | {name} | " + " | ".join(shown) + " |")
        last = task
    return "\n".join(lines)


def with_version(contender: str, version: str) -> str:
    return f"{contender} ({version})" if version else contender


def heading(figure: str, unit: str) -> str:
    return f"{figure}, {unit}" if unit and unit != "number" else figure


def ours(cells: dict[Cell, Figure], task: str, column: tuple[str, str]) -> Figure | None:
    return next(
        (one for key, one in cells.items() if key[0] == task and key[3:] == column and one.ours), None
    )


def cell(figure: Figure | None, ours: Figure | None) -> str:
    if figure is None:
        return ""
    text = ("~" if figure.spread > WIDE else "") + digits(figure)
    if ours and not figure.ours and figure.value and ours.value and figure.unit != "%":
        text += f" ({number(figure.value / ours.value)})"
    note = figure.note.replace("|", "\\|")
    return f"{text}; {note}" if note else text


# --- Tables of the documentation ----------------------------------------------------------------------


def documents() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def with_results(text: str, files: Sequence[Saved]) -> str:
    """A document with its tables as the figures are now."""

    def block(found: re.Match[str]) -> str:
        begin, benchmark, tasks, end = found.groups()
        return f"{begin}\n{excerpt(benchmark, [task.strip() for task in tasks.split(';')], files)}\n\n{end}"

    return BLOCK.sub(block, text)


def excerpt(benchmark: str, tasks: Sequence[str], files: Sequence[Saved]) -> str:
    """A table of these tasks for each machine, and where it is from."""
    parts = []
    for file in (file for file in files if file.benchmark == benchmark):
        figures = [figure for figure in file.figures if figure.task in tasks]
        parts += [table(group) for group in alike(figures)]
        if figures:
            state = file.state
            where = f"`benchmarks/{benchmark}.py`, {state.processor}, {state.machine}, commit {state.commit}"
            parts.append(f"*{where}, {state.date}.*")
    return "\n\n".join(parts) or "*Not measured yet.*"


# --- The program --------------------------------------------------------------------------------------


def written() -> dict[Path, str]:
    """All files that hold figures, as they should be."""
    files = list(saved())
    texts = {path: path.read_text(encoding="utf-8") for path in documents()}
    return {PAGE: page(files)} | {
        path: with_results(text, files) for path, text in texts.items() if BLOCK.search(text)
    }


def write() -> None:
    for path, text in written().items():
        path.write_text(text, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="write nothing; end with 1 if a page is old")
    parser.add_argument("--figures", type=Path, metavar="FOLDER", help="draw the curves there, too")
    given = parser.parse_args()
    if given.figures:
        from _plots import curves_of, draw

        for title, axes, curves in curves_of(saved()):
            draw(given.figures / f"{anchor(title)}.svg", title, axes, curves)
    if given.check:
        old = [path for path, text in written().items() if path.read_text(encoding="utf-8") != text]
        print("\n".join(f"{path.relative_to(ROOT)} is not what the figures say" for path in old))
        return int(bool(old))
    write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
