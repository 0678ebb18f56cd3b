"""``unkernel parse``: dependency parsers and chunkers, from training to streams."""

from __future__ import annotations

import typer

from unkernel.cli.commands.evaluate import evaluate
from unkernel.cli.commands.parse import run
from unkernel.cli.commands.train_parser import train

__all__ = ["app"]

app = typer.Typer(rich_markup_mode="rich", context_settings={"help_option_names": ["-h", "--help"]})
app.command()(train)
app.command()(run)
app.command(name="eval")(evaluate)


@app.callback(invoke_without_command=True)
def parse(context: typer.Context) -> None:
    """Train parsers and chunkers, run them on files and streams, measure them.

    \b
    [dim]$[/dim] unkernel parse train en.uk train.conllu --dev dev.conllu
    [dim]$[/dim] unkernel parse run en.uk < raw.conllu > parsed.conllu
    [dim]$[/dim] unkernel parse eval en.uk test.conllu
    """  # noqa: D301 (Click keeps the lines after a backspace as they are)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
