"""Tables on stdout."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from unkernel.cli.render.models import exactness
from unkernel.cli.terminal.console import microseconds, on_one_line, results, size
from unkernel.engines import Candidate
from unkernel.engines.search.candidates import details

# A file has no width: nothing is cut or wrapped there.
_FILE_WIDTH = 100_000
_CHOSEN = "←"


def candidates_to_json(candidates: Iterable[Candidate]) -> list[dict[str, Any]]:
    """What was not built or measured is null."""
    return [
        candidate.to_json()
        | {
            "details": details(candidate),
            "nbytes": candidate.nbytes if candidate.nbytes >= 0 else None,
            "microseconds": candidate.microseconds if candidate.microseconds >= 0 else None,
        }
        for candidate in candidates
    ]


def print_candidates(candidates: Sequence[dict[str, Any]]) -> None:
    """The engines that were tried, as :func:`candidates_to_json` describes them, the chosen one marked."""
    table = new_table()
    # What must stay on a narrow terminal has a least width.
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
            "" if one["nbytes"] is None else size(one["nbytes"]),
            "" if one["microseconds"] is None else microseconds(one["microseconds"]),
            _CHOSEN if one["chosen"] else "",
            exactness(one["exact"]),
            Text(on_one_line(one["note"])),
            style="bold" if one["chosen"] else "",
        )
    print_table("candidates", table)


class _PlainTable(Table):
    """A table whose cells are text: names from files cannot move a terminal's cursor, nor are they markup."""

    def add_row(self, *cells: Any, **settings: Any) -> None:
        super().add_row(*map(_plain, cells), **settings)


def _plain(cell: Any) -> Any:
    words = cell.plain if isinstance(cell, Text) else cell
    if not isinstance(words, str):
        return cell
    return cell if isinstance(cell, Text) and words.isprintable() else Text(on_one_line(words))


def new_table() -> Table:
    return _PlainTable(box=None, pad_edge=False, padding=(0, 1), header_style="cyan")


def print_table(title: str, table: Table) -> None:
    results().print(Text(on_one_line(title), style="bold"))
    console = results() if results().is_terminal else Console(file=sys.stdout, width=_FILE_WIDTH)
    console.print(Padding(table, (0, 0, 0, 2), expand=False))
