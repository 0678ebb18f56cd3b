"""Show progress: bars on a terminal, one line per second with --verbose, otherwise nothing."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self, cast

from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from unkernel.cli.terminal.console import flatten, messages
from unkernel.cli.terminal.standard_streams import STANDARD_STREAM, stdin_path
from unkernel.measures.number_format import format_count

if TYPE_CHECKING:
    from unkernel._core import Progress as TrainingProgress
    from unkernel.parsing import Step


_CONVERGING_STAGES = ("training", "sampling")  # stages whose gap shrinks


class Display:
    """Shows the progress of reading, training and compiling on stderr; clears the display at the end."""

    def __init__(self, *, quiet: bool = False, verbose: bool = False) -> None:
        console = messages()
        self._verbose = verbose
        self._last_line = time.monotonic()
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            TaskProgressColumn("{task.percentage:3.0f} %"),
            TextColumn("{task.fields[text]}", style="dim", markup=False),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=quiet or verbose or not console.is_terminal,
        )

    def __enter__(self) -> Self:
        if not self._bars.disable:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._bars.disable:  # older versions of Rich print an empty line even if disabled
            self._bars.stop()

    @contextlib.contextmanager
    def show_reading(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file, and show how much of it has been read; ``-`` means stdin."""
        self._print_line(f"reading {name}")
        path = stdin_path() if name == STANDARD_STREAM else Path(name)
        with path.open("rb") as file:
            total = path.stat().st_size if path.is_file() else None
            task = self._bars.add_task(f"reading {path.name}", total=total, text="")
            yield cast(IO[bytes], self._bars.wrap_file(file, task_id=task, total=total or 0))
            self._bars.remove_task(task)

    @contextlib.contextmanager
    def show_work(self, description: str) -> Iterator[None]:
        """Show a bar without an end, for work of unknown length."""
        self._print_line(description)
        task = self._bars.add_task(description, total=None, text="")
        yield
        self._bars.remove_task(task)

    @contextlib.contextmanager
    def show_attempts(self, description: str) -> Iterator[Callable[[str], None]]:
        """Yield a function that shows a description of the current attempt."""
        self._print_line(description)
        task = self._bars.add_task(description, total=None, text="")
        yield lambda text: self._bars.update(task, text=text)
        self._bars.remove_task(task)

    @contextlib.contextmanager
    def show_count(self, description: str, total: int, unit: str = "fit") -> Iterator[Callable[[], None]]:
        """Yield a function that counts finished pieces of work; threads may call it."""
        self._print_line(f"{description}: {format_count(total, unit)}")
        task = self._bars.add_task(description, total=total, text="")
        done = 0

        def count() -> None:
            nonlocal done
            done += 1
            text = f"{done:,} of {format_count(total, unit)}"
            self._bars.update(task, completed=done, text=text)
            self._print_sometimes(f"{description}: {text}")

        yield count
        self._bars.remove_task(task)

    @contextlib.contextmanager
    def show_packing(self, name: str) -> Iterator[Callable[[float, int], None]]:
        """Yield a function that shows the share of the files that is packed, and the number of rows."""
        self._print_line(f"packing {name}")
        task = self._bars.add_task(f"packing {Path(name).name}", total=1.0, text="")

        def on_reading(share: float, rows: int) -> None:
            text = format_count(rows, "row")
            self._bars.update(task, completed=share, text=text)
            self._print_sometimes(f"packing: {100 * share:.0f} %, {text}")

        yield on_reading
        self._bars.remove_task(task)

    @contextlib.contextmanager
    def show_training(self, tol: float, step: str = "epoch") -> Iterator[Callable[[TrainingProgress], None]]:
        """Yield a function that shows the progress of a learner in a bar; the bar never moves back."""
        self._print_line("training")
        task = self._bars.add_task("training", total=1.0, text="")
        done = 0.0

        def on_progress(progress: TrainingProgress) -> None:
            nonlocal done
            done = max(done, share_done(progress, tol))
            text, stage = _describe_progress(progress, step), progress.stage or "training"
            self._bars.update(task, completed=done, text=text, description=stage)
            active = f", {format_count(progress.active, 'row')} active" if step == "epoch" else ""
            self._print_sometimes(f"{stage}: {text}{active}")

        yield on_progress
        self._bars.remove_task(task)

    @contextlib.contextmanager
    def show_steps(self, tol: float) -> Iterator[Callable[[Step], None]]:
        """Yield a function that shows the steps of training a parser, and the progress within a step."""
        self._print_line("training")
        task = self._bars.add_task("training", total=None, text="")

        def on_progress(step: Step) -> None:
            if step.progress is not None:
                text = f"{step.progress.stage or 'training'}: {_describe_progress(step.progress, 'epoch')}"
                share: float | None = share_done(step.progress, tol)
                self._print_sometimes(text)
            else:
                text, share = step.words, step.share
                self._print_line(text)
            total = None if share is None else 1.0
            self._bars.update(task, completed=share or 0.0, total=total, text=text)

        yield on_progress
        self._bars.remove_task(task)

    def _print_sometimes(self, text: str) -> None:
        if time.monotonic() - self._last_line >= 1.0:
            self._print_line(text)

    def _print_line(self, text: str) -> None:
        if self._verbose:
            self._last_line = time.monotonic()
            messages().print(Text(flatten(text)))


def share_done(progress: TrainingProgress, tol: float) -> float:
    """Estimate the share of training that is done, as if the gap shrank geometrically from 1 to `tol`."""
    gap = min(max(float(progress.relative_gap), tol), 1.0)
    current = math.log(gap) / math.log(tol) if progress.stage in _CONVERGING_STAGES and tol < 1 else 0.0
    return min((int(progress.finished) + current) / max(int(progress.problems), 1), 1.0)


def _describe_progress(progress: TrainingProgress, step: str) -> str:
    problems = f"{progress.finished} of {progress.problems} classes done, " if progress.problems > 1 else ""
    return f"{problems}{step} {progress.epoch:,}, gap {progress.relative_gap:.1e}"
