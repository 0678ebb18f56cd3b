"""The command line that all benchmarks have."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.report import RESULTS, Report, read

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
    parser.add_argument("--save", action="store_true", help="keep the figures of all tasks, as JSON")
    parser.add_argument("--into", type=Path, metavar="FOLDER", help="where to keep them, of some tasks too")
    given = parser.parse_args()
    if given.save and given.tasks:
        parser.error("--save would drop the figures of the other tasks: leave out the tasks, or use --into")
    unknown = {task for task in given.tasks if not (own and "=" in task)} - set(tasks)
    if unknown:
        parser.error(f"no task {', '.join(sorted(unknown))}: there are {known}")
    report = Report(Path(str(module.__file__)).stem, quick=given.quick)
    print(f"== {report.benchmark}", flush=True)
    measure(report, given.tasks or (quick if given.quick and quick else tasks))
    if given.save and given.quick and is_of_whole_run(report.path(RESULTS)):
        print("  the figures of a whole run stay: --into FOLDER keeps those of a short one elsewhere")
    elif given.save or given.into:
        print(f"  figures in {report.save(given.into or RESULTS)}")


def is_of_whole_run(path: Path) -> bool:
    return path.exists() and not read(path).state.quick
