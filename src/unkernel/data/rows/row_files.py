"""Rows that need not fit into memory: svmlight files, packed once into a file that passes read."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from unkernel._core import BlockFile
from unkernel.data import SvmlightPart, read_svmlight_parts
from unkernel.data.atomic_write import replaced
from unkernel.data.rows.row_format import OpenRows, RowWriter, SourceStamp, is_of_this_version, is_rows_file
from unkernel.data.rows.svmlight import ZeroBased, allowed_indices
from unkernel.errors import FormatError

PathLike = str | os.PathLike[str]
OnProgress = Callable[[float, int], None]

_PART_BYTES = 1 << 24
_LARGEST_INDEX = 2**32 - 2  # columns are 32-bit numbers, and so is how many there are


@dataclass(frozen=True, eq=False)
class RowFile:
    """Rows in a file, ready for passes over all of them.

    Attributes
    ----------
    store : BlockFile
        The rows. Its columns are the indices as the sources write them: where these count from 1, column 0 is
        there and empty, so that ``store.features`` is ``n_features + 1``; a learner leaves that weight out.
    y : ndarray of float64
        The labels.
    qid : ndarray of int64, or None
        The query numbers, where the rows have them.
    zero_based : bool
        Whether the first feature is number 0.
    n_features : int
        As ``read_svmlight(...).X.shape[1]`` would be.
    sources : tuple of Path
        The files that the rows came from, in their order.
    path : Path
        The file that the rows are in.
    """

    store: BlockFile
    y: NDArray[np.float64]
    qid: NDArray[np.int64] | None
    zero_based: bool
    n_features: int
    sources: tuple[Path, ...]
    path: Path


@dataclass(frozen=True)
class _Options:
    zero_based: ZeroBased
    n_features: int | None
    n_jobs: int | None


def open_rows(
    sources: PathLike | Sequence[PathLike],
    *,
    cache: PathLike | None = None,
    zero_based: ZeroBased = "auto",
    n_features: int | None = None,
    n_jobs: int | None = None,
    on_progress: OnProgress | None = None,
) -> RowFile:
    """Open svmlight files of any size as rows to learn from.

    They are read once, in bounded memory, and packed into a file (docs/formats/rows.md). Later calls use that
    file, as long as the sources have the size and the time that they had, and make it again otherwise.

    Parameters
    ----------
    sources : path, pattern, or list of paths
        What ``read_svmlight`` reads. Several files are one data set: those of a list in its order, those that
        match a pattern such as ``"day-*.svm.gz"`` sorted by name.
    cache : path, default=None
        The file for the packed rows; None is the first source's name with ``.rows`` after it.
    zero_based, n_features, n_jobs
        As for ``read_svmlight``.
    on_progress : function, default=None
        Called as ``on_progress(fraction, rows)`` while the sources are read.

    Returns
    -------
    RowFile

    Raises
    ------
    FormatError
        A source is malformed, or the cache is damaged (it names the file, and says what to do).
    OSError
        A source cannot be read, or the cache cannot be written.
    """
    paths = source_paths(sources)
    target = Path(f"{paths[0]}.rows" if cache is None else cache)
    options = _Options(zero_based, n_features, n_jobs)
    allowed_indices(n_features, zero_based)  # checks the options, also where nothing is read
    _check_to_overwrite(target, paths)
    current = [_stamp(path, target) for path in paths]
    found = _reused(target, current, paths, options)
    if found is not None:
        return found
    _build(target, paths, options, on_progress)
    with target.open("rb") as file:
        return _row_file(OpenRows(str(target), file), target, paths, options)


# --- The sources ---------------------------------------------------------------------------------------


def source_paths(sources: PathLike | Sequence[PathLike]) -> list[Path]:
    """The files that a path, a pattern or a list of paths names; those of a pattern in order."""
    if not isinstance(sources, str | os.PathLike):
        if not sources:
            raise ValueError("sources is an empty list; name at least one file")
        return [Path(source) for source in sources]
    text = os.fspath(sources)
    if os.path.exists(text) or not glob.has_magic(text):  # noqa: PTH110 (a pattern is no path)
        return [Path(text)]
    matches = [Path(match) for match in sorted(glob.glob(text, recursive=True))]  # noqa: PTH207 (as above)
    for path in matches:
        if not path.exists():
            raise FileNotFoundError(errno.ENOENT, "The link leads to no file", os.fspath(path))
    paths = [path for path in matches if path.is_file() and not is_rows_file(path)]
    if not paths:
        raise FileNotFoundError(errno.ENOENT, "No file matches the pattern", text)
    return paths


def _stamp(path: Path, target: Path) -> SourceStamp:
    """A source as it is now. Named from the target's folder, so that both can be moved together."""
    status = path.stat()
    relative = os.path.relpath(os.path.realpath(path), os.path.dirname(os.path.realpath(target)))  # noqa: PTH120
    return SourceStamp(relative, status.st_size, status.st_mtime_ns)


def _check_to_overwrite(target: Path, paths: Sequence[Path]) -> None:
    """What is there may be somebody's data: only rows files, and empty ones, are replaced."""
    if target.exists() and not target.is_file() and not target.is_dir():
        raise ValueError(f"cache={str(target)!r} is not an ordinary file; name another one")
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "cache= is a folder; name a file in it", str(target))
    if not target.exists():
        return
    if any(path.exists() and path.samefile(target) for path in paths):
        raise ValueError(f"cache={str(target)!r} is one of the sources; name another file")
    if target.stat().st_size > 0 and not is_rows_file(target):
        reason = "not a file of rows, and not replaced by one; delete it, or name another by cache="
        raise FormatError(str(target), 0, 0, reason)


# --- Reusing -------------------------------------------------------------------------------------------


def _reused(target: Path, current: list[SourceStamp], paths: list[Path], options: _Options) -> RowFile | None:
    """The rows in `target`, unless they have to be made again."""
    if not target.exists() or target.stat().st_size == 0:
        return None
    with target.open("rb") as file:
        if not is_of_this_version(file):
            return None
        opened = OpenRows(str(target), file)
        facts = opened.facts
        if list(facts.sources) != current or facts.rounded:
            return None
        # Reading the sources again names the line.
        if options.zero_based is False and facts.has_zero_index:
            return None
        return _row_file(opened, target, paths, options)


def _row_file(opened: OpenRows, target: Path, paths: list[Path], options: _Options) -> RowFile:
    facts = opened.facts
    zero_based = facts.has_zero_index if options.zero_based == "auto" else options.zero_based
    first_index = 0 if zero_based else 1
    used = max(0, facts.n_features - first_index)
    n_features = used if options.n_features is None else int(options.n_features)
    if used > n_features:
        reason = (
            f"index {facts.n_features - 1} is beyond {n_features - 1 + first_index}, the last that "
            f"n_features={n_features} allows; allow more features"
        )
        raise FormatError(facts.largest_index_file, facts.largest_index_line, 0, reason)
    arrays = opened.read_arrays()
    return RowFile(
        store=opened.store(arrays["index"], n_features + first_index),
        y=arrays["labels"],
        qid=arrays.get("queries"),
        zero_based=zero_based,
        n_features=n_features,
        sources=tuple(paths),
        path=target,
    )


# --- Building ------------------------------------------------------------------------------------------


def _build(target: Path, paths: list[Path], options: _Options, on_progress: OnProgress | None) -> None:
    with _writing_rows(target) as file:
        stamps = [_stamp(path, target) for path in paths]  # before reading: a change later on is noticed
        writer = RowWriter(file)
        reader = _SourceReader(paths, options)
        for part, fraction in reader.parts():
            writer.add(part)
            if on_progress is not None:
                on_progress(fraction, writer.rows)
        writer.finish(
            n_features=reader.largest_index + 1,
            largest_index_file=reader.largest_index_file,
            largest_index_line=reader.largest_index_line,
            has_zero_index=reader.has_zero_index,
            sources=tuple(stamps),
        )


class _SourceReader:
    """The parts of several files, one after the other, and what is known of all of them together."""

    def __init__(self, paths: Sequence[Path], options: _Options) -> None:
        self._paths = paths
        self._options = options
        self._has_queries: bool | None = None
        self.has_zero_index = False
        self.largest_index = -1
        self.largest_index_file = ""
        self.largest_index_line = 0

    def parts(self) -> Iterator[tuple[SvmlightPart, float]]:
        """Each part, and which share of all bytes has been read."""
        sizes = [path.stat().st_size for path in self._paths]
        total = max(1, sum(sizes))
        for number, path in enumerate(self._paths):
            before = sum(sizes[:number])
            with path.open("rb", buffering=0) as file:
                for part in self._parts_of(file):
                    self._take_note(part, str(path))
                    yield part, min(1.0, (before + _position(file)) / total)

    def _parts_of(self, file: IO[bytes]) -> Iterator[SvmlightPart]:
        return read_svmlight_parts(
            file,
            n_features=self._options.n_features,
            zero_based=self._options.zero_based,
            part_bytes=_PART_BYTES,
            n_jobs=self._options.n_jobs,
        )

    def _take_note(self, part: SvmlightPart, name: str) -> None:
        if part.largest_index > _LARGEST_INDEX:
            reason = f"index {part.largest_index} is beyond {_LARGEST_INDEX}, the last there can be"
            raise FormatError(name, part.largest_index_line, 0, reason + "; renumber the features")
        has_queries = part.qid is not None
        if self._has_queries not in (None, has_queries):
            reason = f"its rows have {'a' if has_queries else 'no'} qid:, unlike those of the files before it"
            raise FormatError(name, 0, 0, reason + "; all rows have one, or none has")
        self._has_queries = has_queries
        self.has_zero_index |= part.has_zero_index
        if part.largest_index > self.largest_index:
            self.largest_index = part.largest_index
            self.largest_index_file, self.largest_index_line = name, part.largest_index_line


def _position(file: IO[bytes]) -> int:
    return file.tell() if file.seekable() else 0


@contextlib.contextmanager
def _writing_rows(target: Path) -> Iterator[IO[bytes]]:
    """A file that takes the target's place when all is written; errors of writing say what to do."""
    begun = False
    try:
        with replaced(target) as file:
            begun = True
            yield file
    except OSError as error:
        if not begun:
            raise _with_remedy(error, target, "cannot be written here") from error
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise _with_remedy(error, target, "do not fit here") from error


def _with_remedy(error: OSError, target: Path, problem: str) -> OSError:
    reason = f"{error.strerror}; packed rows {problem}: name a file elsewhere by cache="
    return OSError(error.errno, reason, str(target))  # of the error's own class, which its number decides
