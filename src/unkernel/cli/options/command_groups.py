"""Make groups of commands; only the command that the arguments name is loaded."""

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
    """Add commands to a group.

    `load` imports and adds the command that `arguments` name. All other commands only have a line of help.
    """
    command = find_command(arguments)
    for name, summary in summaries.items():
        if name == command:
            load(name)
        else:
            group.command(name, help=summary)(_fail_as_not_loaded)


def find_command(arguments: Sequence[str]) -> str | None:
    """Return the name of the command: the first argument that is not an option."""
    return next((word for word in arguments if not word.startswith("-")), None)


def _fail_as_not_loaded() -> None:
    raise AssertionError("a command was run that was not loaded")
