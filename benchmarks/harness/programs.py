"""The command line of all benchmarks."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.report import RESULTS, Report, read

Measure = Callable[[Report, Sequence[str]], None]


def main(measure: Measure, tasks: Sequence[str], *, quick: Sequence[str] = (), added_form: str = "") -> None:
    """Run a benchmark as a program.

    Parameters
    ----------
    measure : callable
        ``measure(report, tasks)`` adds the figures of these tasks to the report; ``report.quick`` asks for
        fewer rounds.
    tasks : list of str
        Names of all tasks.
    quick : list of str
        Names of the tasks that ``--quick`` runs; by default, all tasks.
    added_form : str
        The form of tasks that users can add, such as ``NAME=FILE``; empty if they cannot.
    """
    module = sys.modules["__main__"]
    parser = argparse.ArgumentParser(
        description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    task_names = ", ".join([*tasks, *([added_form] if added_form else [])])
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"of {task_names}; all by default")
    parser.add_argument("--quick", action="store_true", help="small tasks and few rounds, for minutes")
    parser.add_argument("--save", action="store_true", help="keep the figures of all tasks, as JSON")
    parser.add_argument("--into", type=Path, metavar="FOLDER", help="where to keep them, of some tasks too")
    options = parser.parse_args()
    if options.save and options.tasks:
        parser.error("--save would drop the figures of the other tasks: leave out the tasks, or use --into")
    unknown = {task for task in options.tasks if not (added_form and "=" in task)} - set(tasks)
    if unknown:
        parser.error(f"no task {', '.join(sorted(unknown))}: there are {task_names}")
    report = Report(Path(str(module.__file__)).stem, quick=options.quick)
    print(f"== {report.benchmark}", flush=True)
    measure(report, options.tasks or (quick if options.quick and quick else tasks))
    if options.save and options.quick and is_of_whole_run(report.path(RESULTS)):
        print("  the figures of a whole run stay: --into FOLDER keeps those of a short one elsewhere")
    elif options.save or options.into:
        print(f"  figures in {report.save(options.into or RESULTS)}")


def is_of_whole_run(path: Path) -> bool:
    return path.exists() and not read(path).state.quick
