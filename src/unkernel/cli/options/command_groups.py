"""Groups of commands; only the command that the arguments name is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import typer


def new_group() -> typer.Typer:
    """Create a group of commands, with the settings that all groups share."""
    return typer.Typer(
        name="unkernel",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def add_commands(
    group: typer.Typer, summaries: Mapping[str, str], arguments: Sequence[str], load: Callable[[str], Any]
) -> None:
    """Add commands to a group: `load` adds the command that `arguments` name; the rest get a line of help."""
    chosen = first_word(arguments)
    for name, summary in summaries.items():
        if name == chosen:
            load(name)
        else:
            group.command(name, help=summary)(_fail_unloaded)


def first_word(arguments: Sequence[str]) -> str | None:
    """Return the first argument that is not an option: a command, as options of groups take no values."""
    return next((word for word in arguments if not word.startswith("-")), None)


def _fail_unloaded() -> None:
    raise AssertionError("a command was run that was not loaded")
