"""The command line that all benchmarks have."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.report import RESULTS, Report

Measure = Callable[[Report, Sequence[str]], None]


def main(measure: Measure, tasks: Sequence[str], *, quick: Sequence[str] = (), own: str = "") -> None:
    """Run a benchmark as a program.

    Parameters
    ----------
    measure : callable
        ``measure(report, tasks)`` adds the figures of these tasks to the report; ``report.quick`` asks for
        fewer rounds.
    tasks : list of str
        All tasks that there are.
    quick : list of str
        Those of them that ``--quick`` runs; all if there are none.
    own : str
        What tasks of the user's own look like, such as ``NAME=FILE``, where there can be such.
    """
    module = sys.modules["__main__"]
    parser = argparse.ArgumentParser(
        description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = ", ".join([*tasks, *([own] if own else [])])
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"of {known}; all by default")
    parser.add_argument("--quick", action="store_true", help="small tasks and few rounds, for minutes")
    parser.add_argument(
        "--save", nargs="?", type=Path, const=RESULTS, metavar="FOLDER", help="keep the figures, as JSON"
    )
    given = parser.parse_args()
    unknown = {task for task in given.tasks if not (own and "=" in task)} - set(tasks)
    if unknown:
        parser.error(f"no task {', '.join(sorted(unknown))}: there are {known}")
    report = Report(Path(str(module.__file__)).stem, quick=given.quick)
    print(f"== {report.benchmark}", flush=True)
    measure(report, given.tasks or (quick if given.quick and quick else tasks))
    if given.save:
        print(f"  figures in {report.save(given.save)}")
