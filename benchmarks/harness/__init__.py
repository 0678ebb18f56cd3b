"""Common parts of all benchmarks: figures as JSON, contenders that take turns, and the page that shows them.

A benchmark is a script of this folder's parent with a function ``measure(report, tasks)`` and
``harness.main(measure, tasks)`` at its end. It adds figures to the report, one for each task, contender and
quantity; nothing else is printed or kept. ``page.py`` makes RESULTS.md of them.
"""

from harness.programs import main
from harness.report import Report
from harness.timing import Times, cpu_seconds, take_turns, timed, wall_seconds

__all__ = ["Report", "Times", "cpu_seconds", "main", "take_turns", "timed", "wall_seconds"]
