"""Print tables on stdout."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from unkernel.cli.terminal.console import flatten, results

_FILE_WIDTH = 100_000  # in characters; wide enough that no cell is cut or wrapped in a file


class _PlainTable(Table):
    """A table that shows names from files literally, not as markup, and escapes control characters."""

    def add_row(self, *cells: Any, **settings: Any) -> None:
        super().add_row(*map(_to_plain_text, cells), **settings)


def _to_plain_text(cell: Any) -> Any:
    """Return the text of a cell without control characters and markup; return any other cell unchanged."""
    text = cell.plain if isinstance(cell, Text) else cell
    if not isinstance(text, str):
        return cell
    return cell if isinstance(cell, Text) and text.isprintable() else Text(flatten(text))


def new_table(*columns: Column | str) -> Table:
    """Return a table with these columns; columns given only by title wrap their text."""
    return _PlainTable(*columns, box=None, pad_edge=False, padding=(0, 1), header_style="cyan")


def name_column(title: str, min_width: int | None = None) -> Column:
    """Return a column of names, without wrapping."""
    return Column(title, no_wrap=True, min_width=min_width)


def number_column(title: str | Text, min_width: int | None = None) -> Column:
    return Column(title, justify="right", no_wrap=True, min_width=min_width)


def print_table(title: str, table: Table) -> None:
    results().print(Text(flatten(title), style="bold"))
    console = results() if results().is_terminal else Console(file=sys.stdout, width=_FILE_WIDTH)
    console.print(Padding(table, (0, 0, 0, 2), expand=False))
