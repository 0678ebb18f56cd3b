"""The command line: ``unkernel train``, ``compile``, ``predict`` and others, one file each.

Whatever a user can cause ends here, in one line on stderr and an exit code: 2 for a wrong command
line or a bad file, 130 after Ctrl-C. A traceback is a bug of ours.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from unkernel._version import __version__
from unkernel.cli.commands import bench, compile, explain, inspect, predict, train
from unkernel.cli.commands import parse_group as parse
from unkernel.cli.render.console import report_error, report_interrupt

__all__ = ["app", "main"]

BAD_INPUT = 2
INTERRUPTED = 130
BROKEN_PIPE = 1

# Newer Typers have a copy of Click inside and older ones need Click itself: this is the base of
# all their errors in either case.
_CommandLineError: Any = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="unkernel",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(train.train)
app.command()(compile.compile)
app.command()(predict.predict)
app.command()(inspect.inspect)
app.command()(explain.explain)
app.command()(bench.bench)
app.add_typer(parse.app, name="parse")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"unkernel {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def unkernel(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Say which unkernel this is."),
    ] = False,
) -> None:
    """Kernel SVMs at linear speed: train a model or bring one, compile it, predict with it, look into it.

    \b
    [dim]$[/dim] unkernel train a9a.svm.xz model.uk --degree 2 --C 8 --gamma 0.03125
    [dim]$[/dim] unkernel predict model.uk a9a.t.svm.xz --output predictions.txt
    [dim]$[/dim] unkernel train questions.dat trees.uk --kernel sst --decay 0.4
    [dim]$[/dim] unkernel compile libsvm.model compiled.uk
    [dim]$[/dim] unkernel bench compiled.uk rows.svm
    [dim]$[/dim] unkernel inspect model.uk --top 10
    [dim]$[/dim] unkernel explain model.uk a9a.t.svm.xz --row 3
    [dim]$[/dim] unkernel parse train en.uk train.conllu --dev dev.conllu
    [dim]$[/dim] unkernel parse run en.uk < raw.conllu > parsed.conllu
    """  # noqa: D301 (Click keeps the lines after a backspace as they are)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and give its exit code."""
    try:
        code = _run(arguments)
    except _CommandLineError as error:
        report_error(f"{error.format_message()} ({_where_help_is(error)})")
        return BAD_INPUT
    except BrokenPipeError:
        _forget_stdout()
        return BROKEN_PIPE
    except MemoryError as error:
        report_error(f"not enough memory. {error}")
        return BAD_INPUT
    except (OSError, ValueError) as error:
        report_error(_words_of(error))
        _settle_stdout()
        return BAD_INPUT
    if code == INTERRUPTED:
        report_interrupt()
    return code


def _run(arguments: Sequence[str] | None) -> int:
    try:
        given = None if arguments is None else list(arguments)
        code = app(given, prog_name="unkernel", standalone_mode=False)
        sys.stdout.flush()  # here, where a full disk can still be reported
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def _where_help_is(error: Any) -> str:
    context = getattr(error, "ctx", None)
    return f"see {context.command_path if context else 'unkernel'} --help"


def _words_of(error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)


def _settle_stdout() -> None:
    """Write what can still be written; what cannot must not fail once more at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        _forget_stdout()


def _forget_stdout() -> None:
    """Nobody reads any more; what is still in the buffer must not fail once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
