"""The tables and figures of the five papers, measured again, on the pages of docs/papers.

    make papers                              # measure all of them, then write the pages
    make papers QUICK=1                      # small sizes, in minutes
    python benchmarks/paper_chang2010.py [--quick] [--save] ["table 5" ...]      # some of one paper
    python benchmarks/papers.py              # write the pages from the figures in benchmarks/results

Each paper is a benchmark of its own, `paper_*.py`. Its tasks are tables and figures of the paper, one
function each. The docstring of the function lists the differences from the paper, and is shown above the
numbers. The paper's own numbers are contenders, named after the paper; their ratios to ours, in brackets,
compare machines that are fifteen years apart.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import page
from _plots import Axes, Curve, draw
from harness import Report, main
from harness.report import RESULTS, Figure, Saved, read

PAGES = Path(__file__).resolve().parents[1] / "docs" / "papers"
NAMES = ("chang2010", "goldberg2008", "yoshinaga2009", "joachims2006", "severyn2011")
BEGIN, END = "<!-- begin of what make papers writes -->", "<!-- end of what make papers writes -->"

Redraw = Callable[[Report], None]


@dataclass(frozen=True)
class Paper:
    """The tables and figures of a paper that are measured again.

    Attributes
    ----------
    work : dict
        The function that measures each table or figure, by a name with which its tasks begin.
    axes : dict
        The axes of the figures that have curves.
    missing : dict
        Tables and figures that cannot be measured again, with reasons.
    """

    work: Mapping[str, Redraw]
    axes: Mapping[str, Axes] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    def run(self) -> None:
        """Run the command line of the paper's script."""
        main(self.measure, list(self.work))

    def measure(self, report: Report, tasks: Sequence[str]) -> None:
        for task in tasks:
            try:
                self.work[task](report)
            except (FileNotFoundError, ImportError) as error:  # data or peers that are not here
                report.leave_out(task, error)


# --- The pages -----------------------------------------------------------------------------------------


def make_page_part(paper: Paper, saved: Saved, name: str) -> str:
    """Return the generated part of a page, and draw curves into files next to the page."""
    parts = [
        "## Its tables and figures, measured again",
        f"{page.machine(saved.state)}. {page.describe_state(saved.state)}",
    ]
    for task, redraw in paper.work.items():
        figures = [figure for figure in saved.figures if figure.task.split(",")[0] == task]
        if figures:
            parts.append(f"### {task.capitalize()}\n\n{inspect.getdoc(redraw)}")
            parts.append(format_figures(paper, task, figures, name))
        elif task in saved.left_out:
            parts.append(f"### {task.capitalize()}\n\nLeft out: {saved.left_out[task]}")
    missing = [f"- {what}: {reason}" for what, reason in paper.missing.items()]
    parts.append("### Not here\n\n" + "\n".join(missing) if missing else "")
    return "\n\n".join(part for part in parts if part)


def format_figures(paper: Paper, task: str, figures: list[Figure], name: str) -> str:
    if task not in paper.axes:
        rows = [replace(figure, task=figure.task.partition(", ")[2]) for figure in figures]
        return "\n\n".join(page.table(group) for group in page.group_by_columns(rows))
    curves: dict[str, Curve] = {}
    for figure in figures:
        if figure.at is not None and figure.value is not None:
            curves.setdefault(figure.contender, Curve(figure.contender)).add(figure.at, figure.value)
    path = PAGES / "figures" / f"{name}-{task.replace(' ', '-')}.svg"
    draw(path, "", paper.axes[task], list(curves.values()))
    return f"![{task} of the paper, measured again](figures/{path.name})"


def write(name: str, results: Path = RESULTS) -> None:
    """Replace the figures on the page of a paper by the latest ones, if possible those of a whole run."""
    stored = [read(path) for path in sorted(results.glob(f"*/paper_{name}.json"))]
    if not stored:
        print(f"  {name}: no figures; run benchmarks/paper_{name}.py --save")
        return
    paper: Paper = importlib.import_module(f"paper_{name}").PAPER
    newest = max(stored, key=lambda saved: (not saved.state.quick, saved.state.date))
    generated = f"{BEGIN}\n\n{make_page_part(paper, newest, name)}\n\n{END}"
    path = PAGES / f"{name}.md"
    text = path.read_text(encoding="utf-8")
    generated_part = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    text = (
        generated_part.sub(lambda _: generated, text)
        if generated_part.search(text)
        else f"{text.rstrip()}\n\n{generated}\n"
    )
    path.write_text(text, encoding="utf-8")
    print(f"  {path}")


def write_pages() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("papers", nargs="*", default=NAMES, help=f"of {', '.join(NAMES)}; all by default")
    names = parser.parse_args().papers
    if unknown := set(names) - set(NAMES):
        parser.error(f"no paper {', '.join(sorted(unknown))}: there are {', '.join(NAMES)}")
    for name in names:
        write(name)


if __name__ == "__main__":
    write_pages()
