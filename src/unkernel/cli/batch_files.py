"""Process several files: the results for part-7.csv go to a file of the same name in a folder.

A journal in the folder lists the finished files, and an interrupted run continues with the other files. A
file of results appears only when it is complete: no result is lost or written twice.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import glob
import importlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any

from unkernel.cli.cluster import check_address, connect
from unkernel.cli.output_files import check_output
from unkernel.cli.terminal.console import warn
from unkernel.cli.terminal.progress import Display
from unkernel.cli.terminal.standard_streams import STANDARD_STREAM
from unkernel.data.rows.row_files import source_paths
from unkernel.records.files.formats import COMPRESSIONS

_JOURNAL_SUFFIX = ".journal"  # no file of results has this suffix


@dataclass(frozen=True)
class Part:
    """An input file, and the file for its results."""

    data: str
    output: str

    @property
    def stamp(self) -> list[int]:
        """The size and the modification time of the input file; they show whether it has changed."""
        status = Path(self.data).stat()
        return [status.st_size, status.st_mtime_ns]


@dataclass(frozen=True)
class Cluster:
    """The workers of a Dask scheduler, or this process if `address` is None."""

    address: str | None
    workers: int  # the number of workers to start, or of threads in this process

    def __post_init__(self) -> None:
        if self.address is not None:
            check_address(self.address)

    @property
    def threads_per_part(self) -> int:
        """The number of threads per part: all threads in this process, or one on a Dask worker."""
        return 1 if self.address else self.workers

    def path_on_worker(self, path: str | Path) -> str:
        """Return a path that is valid on workers, even if they run in another folder."""
        return str(path) if self.address is None else os.path.abspath(path)  # noqa: PTH100 (a pattern is no path)


def is_pattern(data: str) -> bool:
    """Return whether an argument is a pattern, such as ``part-*.csv``, and not the name of a file."""
    return glob.has_magic(data) and not Path(data).exists()


def check_pattern(names: Sequence[str], address: str | None) -> bool:
    """Return whether the only argument is a pattern; raise ``ValueError`` if --dask has no pattern."""
    single = names[0] if len(names) == 1 else None
    if single is not None and Path(single).is_dir():
        raise ValueError(
            f"{single}: is a folder; name a file in it, or several by a pattern in quotes, such as "
            f"'{Path(single) / '*.csv'}'"
        )
    has_pattern = single is not None and is_pattern(single)
    if not has_pattern and address is not None:
        raise ValueError("--dask takes several files: give a pattern in quotes, such as 'part-*.csv'")
    return has_pattern


def check_folder(pattern: str, output: str | None) -> Path:
    """Return the folder for the results of several files, after checks; it need not exist yet."""
    if output is None or output == STANDARD_STREAM or Path(output).is_file():
        raise ValueError(f"{pattern}: the answers to several files need a folder: name it with --output")
    folder = Path(output)
    if not folder.parent.is_dir():
        raise ValueError(f"{folder}: there is no folder {folder.parent} to make it in")
    return folder


def list_parts(pattern: str, folder: Path, choose_suffix: Callable[[str], str]) -> list[Part]:
    """Return the files that a pattern names, in order, each with the file for its results.

    `choose_suffix` returns the suffix of the results, given the name of a file without ``.gz`` and the like.
    """
    sources: dict[str, str] = {}
    for path in source_paths(pattern):
        name = path.name
        while Path(name).suffix in COMPRESSIONS:
            name = Path(name).stem
        output_name = Path(name).stem + choose_suffix(name)
        if output_name in sources:
            raise ValueError(
                f"{path} and {sources[output_name]}: the answers to both would go to "
                f"{folder / output_name}; rename one of them, or give two patterns and two folders"
            )
        if path.parent.resolve() == folder.resolve():
            raise ValueError(f"{folder}: contains files of {pattern}; name another folder for the answers")
        sources[output_name] = str(path)
    return [Part(path, str(folder / output_name)) for output_name, path in sources.items()]


@dataclass(frozen=True)
class PartResult:
    """The counts of a part, such as its number of rows, and warnings for the user."""

    counts: dict[str, int]
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class Work:
    """The work on each part.

    Attributes
    ----------
    run : callable
        A function or ``functools.partial`` that workers can import.
    verb : str
        The verb for the progress display.
    """

    run: Callable[[Part], PartResult]
    verb: str


def answer_parts(
    parts: Sequence[Part], work: Work, journal: Journal, cluster: Cluster, display: Display
) -> Counter[str]:
    """Process the unfinished parts; return their summed counts, and the number of parts."""
    stamps = {part: part.stamp for part in parts}  # taken before reading, to detect later changes
    unfinished = [part for part in parts if not journal.has(part, stamps[part])]
    journal.begin(unfinished)
    counts = Counter({"parts": len(parts), "done_before": len(parts) - len(unfinished)})
    with (
        display.show_count(work.verb, len(unfinished), "part") as count,
        _open_runner(work.run, cluster) as run,
    ):
        for part, result in run(unfinished):
            journal.add(part, stamps[part])
            counts.update(result.counts)
            for message in result.warnings:
                warn(message)
            count()
    return counts


Runner = Callable[[Sequence[Part]], Iterator[tuple[Part, PartResult]]]


@contextlib.contextmanager
def _open_runner(run: Callable[[Part], PartResult], cluster: Cluster) -> Iterator[Runner]:
    """Yield a function that processes parts; it yields each finished part with its result."""
    if cluster.address is None:
        yield lambda parts: ((part, run(part)) for part in parts)
        return
    with connect(cluster.address, cluster.workers) as client:

        def run_on_workers(parts: Sequence[Part]) -> Iterator[tuple[Part, PartResult]]:
            distributed = importlib.import_module("distributed")
            futures = {client.submit(run, part, pure=False): part for part in parts}
            try:
                for future in distributed.as_completed(futures):
                    with _translate_worker_errors(cluster, futures[future], distributed):
                        result = future.result()
                    yield futures[future], result
            finally:
                if client.status == "running":
                    client.cancel(list(futures))

        yield run_on_workers


@contextlib.contextmanager
def _translate_worker_errors(cluster: Cluster, part: Part, distributed: Any) -> Iterator[None]:
    """Replace errors about a lost scheduler, or about lost workers of a part, by errors with advice."""
    try:
        yield
    except (concurrent.futures.CancelledError, distributed.comm.CommClosedError):
        raise ValueError(
            f"--dask {cluster.address}: the scheduler was lost. To resume, run the same command with the "
            "address of another scheduler"
        ) from None
    except distributed.KilledWorker:
        raise ValueError(
            f"{part.data}: several workers were lost while they processed it, perhaps for lack of memory; "
            "finished files are kept"
        ) from None


class Journal:
    """A file that lists the finished parts of a run, one per line; its first line identifies the run.

    Parameters
    ----------
    folder : Path
        Folder of the results; it is created if it does not exist.
    command : str
        Name of the command, and of the journal.
    model : Path
        Model file.
    options : dict
        Options that influence the results.
    force : bool
        Whether files of other runs may be replaced.
    """

    def __init__(
        self, folder: Path, command: str, model: Path, options: dict[str, Any], *, force: bool
    ) -> None:
        self._path, self._force = folder / (command + _JOURNAL_SUFFIX), force
        with model.open("rb") as file:
            run = options | {"model": file_digest(file, "sha256").hexdigest()}
        folder.mkdir(exist_ok=True)
        former_run, self._stamps = _read_journal(self._path)
        if former_run not in (None, run) and not force and not self._has_no_answers(former_run):
            raise ValueError(
                f"{folder}: has answers of another model or with other options; name another folder, or "
                "replace them with --force"
            )
        if former_run != run:
            self._stamps = {}
            self._path.write_text(json.dumps(run), encoding="utf-8")

    def _has_no_answers(self, run: Any) -> bool:
        """Return whether another run left no results, for example because it failed at its first file."""
        names = (self._path.with_name(Path(name).name) for name in self._stamps)
        return isinstance(run, dict) and "model" in run and not any(path.exists() for path in names)

    def has(self, part: Part, stamp: list[int]) -> bool:
        """Return whether a part is finished and its input file has not changed since."""
        return self._stamps.get(Path(part.output).name) == stamp and Path(part.output).exists()

    def begin(self, parts: Sequence[Part]) -> None:
        """Add parts to the journal as unfinished; refuse to replace files of another run."""
        for part in parts:
            if not self._force and Path(part.output).name not in self._stamps:
                check_output(Path(part.output), force=False)
        for part in parts:
            self._append(part, None)

    def add(self, part: Part, stamp: list[int]) -> None:
        """Add a part to the journal as finished."""
        self._append(part, stamp)

    def _append(self, part: Part, stamp: list[int] | None) -> None:
        name = Path(part.output).name
        self._stamps[name] = stamp
        with self._path.open("a", encoding="utf-8") as file:
            # Begin a new line: a crash may have left the last line incomplete.
            file.write("\n" + json.dumps({"part": name, "stamp": stamp, "data": part.data}))


def _read_journal(path: Path) -> tuple[Any, dict[str, Any]]:
    """Return the run and the stamps of its parts (None if unfinished); skip damaged lines."""
    if not path.exists():
        return None, {}
    lines = []
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            lines.append(json.loads(text))
    parts = [line for line in lines[1:] if isinstance(line, dict) and isinstance(line.get("part"), str)]
    return (lines or [None])[0], {line["part"]: line.get("stamp") for line in parts}
