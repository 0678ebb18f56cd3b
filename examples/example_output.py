"""Tables, notes and timing for the examples. All times are CPU times, so a busy machine does not matter."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

_Result = TypeVar("_Result")


def timed(function: Callable[..., _Result], *arguments: Any) -> tuple[_Result, float]:
    """What a function returns, and the CPU seconds it took."""
    began = time.process_time()
    result = function(*arguments)
    return result, time.process_time() - began


def best_seconds(function: Callable[..., Any], *arguments: Any, repetitions: int = 3) -> float:
    """The CPU seconds of the fastest of a few calls."""
    return min(timed(function, *arguments)[1] for _ in range(repetitions))


def print_table(
    console: Console, title: str, headings: Sequence[str], rows: Iterable[tuple[bool, Sequence[str]]]
) -> None:
    """A table for a screen of 80 columns; each row says whether it is one of ours, and then its cells."""
    console.print(title, style="bold", highlight=False, markup=False)
    table = Table(box=SIMPLE_HEAD, show_edge=False)
    table.padding = (0, 1, 0, 0)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left", no_wrap=True)
    for ours, cells in rows:
        table.add_row(*cells, style="bold cyan" if ours else "")
    console.print(table)


def print_note(console: Console, text: str) -> None:
    """A remark below a table."""
    console.print(text, style="dim", highlight=False, markup=False)
