"""Columns of records, as a table."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from unkernel.cli.terminal.console import flatten
from unkernel.cli.terminal.tables import name_column, new_table, number_column, print_table


def print_columns(title: str, columns: list[dict[str, Any]], target: str | None) -> None:
    """Print the kind of each column, and the number of its features."""
    table = new_table("column", name_column("kind"), number_column("features"))
    for column in columns:
        table.add_row(Text(flatten(column["column"])), column["kind"], f"{column['features']:,}")
    if target is not None:
        table.add_row(Text(flatten(target)), "target", "", style="bold")
    print_table(title, table)
