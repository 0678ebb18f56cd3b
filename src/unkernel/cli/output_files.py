"""Where commands write. No command replaces a file that it does not recognise as one of its own kind.

A model may replace a model of unkernel. Anything else that a command writes (labels, parses, plots, pictures)
has no mark of ours, and replaces no file at all. ``--force`` lifts both rules. What is empty, a device or a
pipe has nothing to lose. An output that is an input of the same command is refused in any case.
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
    """Fail now, and not after an hour of training, if a model cannot or must not be written to `output`."""
    check_place(output, *inputs)
    if output.exists() and not output.is_file():  # it takes its place whole, by renaming
        raise ValueError(f"{output}: is not an ordinary file; a model cannot be written to it")
    if not force and not is_replaceable(output) and not is_model(output):
        raise ValueError(
            f"{output}: exists and is not a model of unkernel; name another file, or replace it with --force"
        )


def check_different(*outputs: str | Path | None) -> None:
    """Fail if two outputs of a command have the same place."""
    places = [Path(output) for output in outputs if output is not None and output != "-"]
    for number, output in enumerate(places):
        if any(os.path.realpath(output) == os.path.realpath(other) for other in places[:number]):
            raise ValueError(f"{output}: is the name of two outputs; give each its own")


def check_output(output: Path, *inputs: str | Path | None, force: bool) -> None:
    """Fail now if what a command writes, other than a model, cannot or must not go to `output`."""
    check_place(output, *inputs)
    if not force and not is_replaceable(output):
        raise ValueError(f"{output}: exists; name another file, or replace it with --force")


def check_place(output: Path, *inputs: str | Path | None) -> None:
    """Fail if `output` cannot become a file, or is one of the inputs."""
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
    if output.is_file() and any(output.samefile(given) for given in _list_existing(inputs)):
        raise ValueError(f"{output}: is an input, too; give the output another name")


def _list_existing(inputs: Sequence[str | Path | None]) -> Iterator[str]:
    """The files that inputs name, alone, by a pattern such as ``part-*.svm``, or by ``-`` as stdin."""
    for given in inputs:
        if str(given) == "-":
            yield from ["/dev/stdin"] if Path("/dev/stdin").exists() else []
        elif given is not None:
            yield from [str(given)] if Path(given).exists() else glob.glob(str(given))  # noqa: PTH207 (any depth)


def is_replaceable(output: Path) -> bool:
    """Whether there is nothing to lose: no file, an empty one, or a device that keeps nothing."""
    return not output.exists() or not output.is_file() or output.stat().st_size == 0


def is_model(path: Path) -> bool:
    """Whether a file is one of ours, of any kind; of a newer version, too."""
    try:
        container.read(path)
    except FormatError as error:
        return "upgrade unkernel" in error.reason
    except OSError:
        return False
    return True


def require_output(output: Path | None, command: str, inputs: Sequence[object]) -> Path:
    """The output that was asked for; without one, how to ask for it."""
    if output is not None:
        return output
    words = [str(word) for word in inputs]
    example = [*words[:-1], "-o", words[-1]] if len(words) > 1 else [*words, "-o", "model.uk"]
    raise ValueError(
        f"say where the model goes, as outputs are options: unkernel {command} {shlex.join(example)}"
    )
