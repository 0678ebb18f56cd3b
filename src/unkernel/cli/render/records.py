"""Columns of records, as a table."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from unkernel.cli.terminal.console import flatten
from unkernel.cli.terminal.tables import new_table, print_table


def print_columns(title: str, columns: list[dict[str, Any]], target: str | None) -> None:
    """Print the kind of each column, and the number of its features."""
    table = new_table()
    table.add_column("column")
    table.add_column("kind", no_wrap=True)
    table.add_column("features", justify="right", no_wrap=True)
    for one in columns:
        table.add_row(Text(flatten(one["column"])), one["kind"], f"{one['features']:,}")
    if target is not None:
        table.add_row(Text(flatten(target)), "target", "", style="bold")
    print_table(title, table)
