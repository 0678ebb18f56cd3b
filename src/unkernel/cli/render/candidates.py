"""The engines that compiling tried, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from unkernel.cli.render.models import exactness
from unkernel.cli.terminal.console import flatten, format_microseconds, format_size
from unkernel.cli.terminal.tables import new_table, print_table

_CHOSEN = "←"


def print_candidates(candidates: Sequence[dict[str, Any]]) -> None:
    """Print the engines that were tried, and mark the chosen one."""
    table = new_table()
    # Columns with a minimum width stay on a narrow terminal.
    table.add_column("engine", no_wrap=True, min_width=9)
    table.add_column("details", no_wrap=True)
    table.add_column("size", no_wrap=True, justify="right")
    table.add_column("µs/row", no_wrap=True, justify="right", min_width=6)
    table.add_column("", no_wrap=True, min_width=1)
    table.add_column("result", no_wrap=True)
    table.add_column("note")
    for one in candidates:
        table.add_row(
            one["engine"],
            one["details"],
            "" if one["nbytes"] is None else format_size(one["nbytes"]),
            "" if one["microseconds"] is None else format_microseconds(one["microseconds"]),
            _CHOSEN if one["chosen"] else "",
            exactness(one["exact"]),
            Text(flatten(one["note"])),
            style="bold" if one["chosen"] else "",
        )
    print_table("candidates", table)
