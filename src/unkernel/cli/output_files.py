"""Check output files: no command replaces a file that it does not recognise.

A model may replace a model of unkernel. Other outputs (labels, parses, plots, pictures) may replace only
empty files, devices and pipes. ``--force`` allows replacing any file except an input of the same command.
"""

from __future__ import annotations

import glob
import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from unkernel.errors import FormatError
from unkernel.models import container


def check_model_output(output: Path, *inputs: str | Path | None, force: bool) -> None:
    """Raise ``ValueError`` if a model must not be written to `output`; to be called before training."""
    check_path(output, *inputs)
    # A model is written to a temporary file that is then renamed, and renaming would replace a device.
    if output.exists() and not output.is_file():
        raise ValueError(f"{output}: is not a regular file; a model cannot be written to it")
    if not force and not is_replaceable(output) and not is_model(output):
        raise ValueError(
            f"{output}: exists and is not a model of unkernel; name another file, or replace it with --force"
        )


def check_different(*outputs: str | Path | None) -> None:
    """Raise ``ValueError`` if two outputs of a command are the same file."""
    paths = [Path(output) for output in outputs if output is not None and output != "-"]
    for number, output in enumerate(paths):
        if any(os.path.realpath(output) == os.path.realpath(earlier) for earlier in paths[:number]):
            raise ValueError(f"{output}: is the name of two outputs; give each its own")


def check_output(output: Path, *inputs: str | Path | None, force: bool) -> None:
    """Raise ``ValueError`` if an output other than a model must not be written to `output`."""
    check_path(output, *inputs)
    if not force and not is_replaceable(output):
        raise ValueError(f"{output}: exists; name another file, or replace it with --force")


def check_path(output: Path, *inputs: str | Path | None) -> None:
    """Raise ``ValueError`` if `output` cannot become a file, or is one of the inputs."""
    if str(output) == "-":
        raise ValueError("-: this cannot be written to standard output; name a file")
    folder = output.parent
    if not folder.is_dir():
        raise ValueError(f"{output}: there is no folder {folder} to write to")
    if output.is_dir():
        raise ValueError(f"{output}: is a folder; name a file in it")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(
            f"{output}: the folder {folder} does not allow writing; name a file in another folder, or change "
            "its permissions"
        )
    if output.is_file() and any(output.samefile(path) for path in _list_existing(inputs)):
        raise ValueError(f"{output}: is also an input; give the output another name")


def _list_existing(inputs: Sequence[str | Path | None]) -> Iterator[str]:
    """Yield the existing files that inputs name: paths, patterns such as ``part-*.svm``, ``-`` for stdin."""
    for name in inputs:
        if str(name) == "-":
            yield from ["/dev/stdin"] if Path("/dev/stdin").exists() else []
        elif name is not None:
            yield from [str(name)] if Path(name).exists() else glob.glob(str(name))  # noqa: PTH207 (any depth)


def is_replaceable(output: Path) -> bool:
    """Return whether a write destroys no data because `output` does not exist, is empty or is a device."""
    return not output.exists() or not output.is_file() or output.stat().st_size == 0


def is_model(path: Path) -> bool:
    """Return whether a file is a model of unkernel, of any kind and version."""
    try:
        container.read(path)
    except FormatError as error:
        return "upgrade unkernel" in error.reason
    except OSError:
        return False
    return True


def require_output(output: Path | None, command: str, inputs: Sequence[object]) -> Path:
    """Return `output`; if it is None, raise ``ValueError`` with an example of the option."""
    if output is not None:
        return output
    names = [str(name) for name in inputs]
    example = [*names[:-1], "-o", names[-1]] if len(names) > 1 else [*names, "-o", "model.uk"]
    raise ValueError(
        f"say where the model goes, as outputs are options: unkernel {command} {shlex.join(example)}"
    )
