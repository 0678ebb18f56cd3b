"""Print the engines that ``compile`` tried, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from unkernel.cli.render.models import format_exactness
from unkernel.cli.terminal.console import flatten, format_microseconds, format_size
from unkernel.cli.terminal.tables import name_column, new_table, number_column, print_table

_CHOSEN = "←"


def print_candidates(candidates: Sequence[dict[str, Any]]) -> None:
    """Print the engines that were tried, and mark the chosen one."""
    # A minimum width keeps a column visible on a narrow terminal.
    table = new_table(
        *(name_column("engine", 9), name_column("details"), number_column("size")),
        *(number_column("µs/row", 6), name_column("", 1), name_column("result"), "note"),
    )
    for candidate in candidates:
        table.add_row(
            candidate["engine"],
            candidate["details"],
            "" if candidate["nbytes"] is None else format_size(candidate["nbytes"]),
            "" if candidate["microseconds"] is None else format_microseconds(candidate["microseconds"]),
            _CHOSEN if candidate["chosen"] else "",
            format_exactness(candidate["exact"]),
            Text(flatten(candidate["note"])),
            style="bold" if candidate["chosen"] else "",
        )
    print_table("candidates", table)
