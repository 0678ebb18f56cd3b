"""The application: import the command that the arguments name, run it, and report errors."""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from unkernel._version import __version__
from unkernel.cli.commands import COMMANDS
from unkernel.cli.exit_codes import BAD_INPUT, BROKEN_PIPE, INTERRUPTED
from unkernel.cli.learners import KINDS
from unkernel.cli.options.command_groups import add_commands, new_group
from unkernel.cli.options.help_text import reflow
from unkernel.cli.removed_commands import describe_new_spelling

# The first words of Click's messages if ``train`` or ``tune`` has no kind, or an unknown one.
_NO_KIND_MESSAGES = ("Missing command", "No such command")
# ClickException, the base class of all errors of Click. Typer does not export it: older versions import
# Click, and newer ones contain a copy.
_CommandLineError: Any = typer.BadParameter.__mro__[2]


def build(arguments: Sequence[str]) -> typer.Typer:
    """Return the application; import only the command that the arguments name."""
    app = new_group()
    app.callback(invoke_without_command=True, help=reflow(unkernel.__doc__))(unkernel)

    def load(name: str) -> None:
        module = importlib.import_module(f"unkernel.cli.commands.{name}")
        if hasattr(module, "register"):  # the command has kinds, such as ``train poly``
            module.register(app, arguments[list(arguments).index(name) + 1 :])
            return
        command = getattr(module, name)
        settings = getattr(module, "CONTEXT_SETTINGS", None)
        app.command(help=reflow(command.__doc__), context_settings=settings)(command)

    add_commands(app, COMMANDS, arguments, load)
    return app


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"unkernel {__version__}")
        raise typer.Exit


def unkernel(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Train kernel machines at linear speed, compile them, predict with them, explain and serve them.

    Inputs are arguments, outputs are options. Without --force, no command replaces a file that it does not
    recognise as one of its own kind. Exit codes: 0 success, 1 broken pipe (verify: a
    damaged file), 2 wrong command line or bad file, 130 interrupted, 143 terminated.

    \b
    [dim]$[/dim] unkernel train poly a9a.svm.xz -o model.uk --degree 2 --C 8 --gamma 0.03125
    [dim]$[/dim] unkernel tune poly a9a.svm.xz --degree 1,2,3 --C 0.001:10 --cv 5
    [dim]$[/dim] unkernel predict model.uk a9a.t.svm.xz -o predictions.txt
    [dim]$[/dim] unkernel evaluate model.uk a9a.t.svm.xz
    [dim]$[/dim] unkernel compile libsvm.model -o compiled.uk
    [dim]$[/dim] unkernel bench compiled.uk rows.svm
    [dim]$[/dim] unkernel inspect model.uk --top 10
    [dim]$[/dim] unkernel explain model.uk a9a.t.svm.xz --row 3
    [dim]$[/dim] unkernel train text train.conllu -o en.uk --dev dev.conllu
    [dim]$[/dim] unkernel parse en.uk < notes.txt > parsed.conllu
    [dim]$[/dim] unkernel serve model.uk en.uk --port 8080
    """  # noqa: D301 (Click keeps the lines after a backspace as they are)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; report errors of the user in one line on stderr."""
    _buffer_stdout()
    arguments = _complete_kind(arguments)
    try:
        advice = describe_new_spelling(arguments)
        if advice is not None:
            raise ValueError(advice)
        code = _run_command(arguments)
    except _CommandLineError as error:
        _report(f"{_describe_usage_error(error)} ({_point_to_help(error)})")
        return BAD_INPUT
    except BrokenPipeError:
        _discard(sys.stdout)
        return BROKEN_PIPE
    except MemoryError as error:
        _report(f"not enough memory. {error}")
        return BAD_INPUT
    except RecursionError:
        _report("something in a file is nested too deeply")
        return BAD_INPUT
    except (OSError, ValueError) as error:
        _report(_describe_error(error))
        _flush(sys.stdout)
        return BAD_INPUT
    if code == INTERRUPTED:
        from unkernel.cli.terminal.console import report_interrupt

        report_interrupt()
    _flush(sys.stderr)  # a failed write to stderr must not change the exit code
    return code


def _complete_kind(arguments: Sequence[str]) -> Sequence[str]:
    """Insert the kind ``table`` after ``train`` if --target or a file of records replaces the kind."""
    if len(arguments) < 2 or arguments[0] != "train" or arguments[1] in KINDS:
        return arguments
    if any(argument.partition("=")[0] == "--target" for argument in arguments):
        return ["train", "table", *arguments[1:]]
    if arguments[1].startswith("-"):
        return arguments
    from unkernel.cli.inputs.records import is_record_file

    return ["train", "table", *arguments[1:]] if is_record_file(arguments[1]) else arguments


def _run_command(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; the caller handles all errors but Ctrl-C."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = build(arguments)(list(arguments), prog_name="unkernel", standalone_mode=False)
        sys.stdout.flush()  # flush here, where a full disk can still be reported
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning of the library on one line, without the source file and its line number."""
    from unkernel.cli.terminal.console import warn

    warn(str(message))


def _report(reason: str) -> None:
    from unkernel.cli.terminal.console import report_error

    report_error(reason)


def _describe_usage_error(error: Any) -> str:
    """Describe a wrong command line; for ``train`` and ``tune`` without a kind, list the kinds."""
    message = str(error.format_message())
    context = getattr(error, "ctx", None)
    if context is None or context.command_path == "unkernel" or not message.startswith(_NO_KIND_MESSAGES):
        return message
    kinds = context.command.list_commands(context)
    problem = "Say what to learn" if message.startswith(_NO_KIND_MESSAGES[0]) else message.rstrip(".")
    example = f"{context.command_path} poly train.svm -o model.uk"
    return f"{problem}: one of {', '.join(kinds)}, as in: {example}"


def _point_to_help(error: Any) -> str:
    context = getattr(error, "ctx", None)
    return f"see {context.command_path if context else 'unkernel'} --help"


def _describe_error(error: OSError | ValueError) -> str:
    """Return the message of an error; an operating system's error about a file begins with its name."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return _describe_file_error(os.fsdecode(error.filename), error)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)


def _describe_file_error(file: str, error: OSError) -> str:
    """Describe the operating system's error about a file; suggest a remedy for common errors."""
    if isinstance(error, IsADirectoryError) and error.strerror == os.strerror(errno.EISDIR):
        return f"{file}: is a folder; name a file in it"
    if isinstance(error, PermissionError) and error.strerror == os.strerror(error.errno or 0):
        if os.path.exists(file):  # noqa: PTH110 (Path.exists may itself be refused)
            return f"{file}: no permission to open it; change its permissions, or name another file"
        folder = Path(file).parent
        return f"{file}: the folder {folder} does not allow this; change its permissions, or use another one"
    return f"{file}: {error.strerror}"


def _buffer_stdout() -> None:
    """Make sure that stdout has a buffer.

    Without a buffer (PYTHONUNBUFFERED is set in many containers), Python silently loses part of the output if
    the disk becomes full.
    """
    if isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        sys.stdout = open(  # noqa: SIM115 (open until the process ends)
            sys.stdout.fileno(),
            "w",
            buffering=1,
            encoding=sys.stdout.encoding,
            errors=sys.stdout.errors,
            closefd=False,
        )


def _flush(stream: TextIO) -> None:
    """Flush a stream; if this fails, discard the buffer, because Python would flush it again at exit."""
    try:
        stream.flush()
    except OSError:
        _discard(stream)


def _discard(stream: TextIO) -> None:
    """Redirect a broken stream to the null device: Python will flush the stream again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
