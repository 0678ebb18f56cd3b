"""Rows that need not fit into memory: svmlight files, packed into a file that learners read many times."""

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
from unkernel.data.atomic_write import replace_file
from unkernel.data.rows.row_format import OpenRows, RowWriter, SourceStamp, is_of_this_version, is_rows_file
from unkernel.data.rows.svmlight import ZeroBased, index_range
from unkernel.errors import FormatError

PathLike = str | os.PathLike[str]
OnProgress = Callable[[float, int], None]

_PART_BYTES = 1 << 24
_LARGEST_INDEX = 2**32 - 2  # the number of columns must fit into 32 bits


@dataclass(frozen=True, eq=False)
class RowFile:
    """Rows in a file, ready to be read in passes over all rows.

    Attributes
    ----------
    store : BlockFile
        The rows. Columns are numbered like the indices in the sources. If indices start at 1, column 0 is
        empty and ``store.features`` is ``n_features + 1``; learners drop the weight of column 0.
    y : ndarray of float64
        The labels.
    qid : ndarray of int64, or None
        The query numbers, if the rows have them.
    zero_based : bool
        Whether the first feature has the number 0.
    n_features : int
        Number of features, equal to ``read_svmlight(...).X.shape[1]``.
    sources : tuple of Path
        The source files, in the order in which they were read.
    path : Path
        The file of the packed rows.
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
    """Open svmlight files of any size as training rows.

    The sources are read once, in bounded memory, and packed into a file (docs/formats/rows.md). Later calls
    reuse this file unless the size or the modification time of a source has changed.

    Parameters
    ----------
    sources : path, pattern, or list of paths
        Files in the format of ``read_svmlight``. Several files form one data set. Their order is the order of
        the list or, for a pattern such as ``"day-*.svm.gz"``, the order of their names.
    cache : path, default=None
        The file for the packed rows; None appends ``.rows`` to the name of the first source.
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
        If a source is malformed, or the cache is damaged.
    OSError
        If a source cannot be read, or the cache cannot be written.
    """
    paths = source_paths(sources)
    target = Path(f"{paths[0]}.rows" if cache is None else cache)
    options = _Options(zero_based, n_features, n_jobs)
    index_range(n_features, zero_based)  # raises a ValueError for invalid options, even if no source is read
    _check_to_overwrite(target, paths)
    current = [_make_stamp(path, target) for path in paths]
    reusable = _find_reusable(target, current, paths, options)
    if reusable is not None:
        return reusable
    _build(target, paths, options, on_progress)
    with target.open("rb") as file:
        return _make_row_file(OpenRows(str(target), file), target, paths, options)


# --- The sources ---------------------------------------------------------------------------------------


def source_paths(sources: PathLike | Sequence[PathLike]) -> list[Path]:
    """Return the files of a path, a pattern (sorted) or a list of paths."""
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


def _make_stamp(path: Path, target: Path) -> SourceStamp:
    """Return the stamp of a source; its path is relative to the folder of the target."""
    status = path.stat()
    relative = os.path.relpath(os.path.realpath(path), os.path.dirname(os.path.realpath(target)))  # noqa: PTH120
    return SourceStamp(relative, status.st_size, status.st_mtime_ns)


def _check_to_overwrite(target: Path, paths: Sequence[Path]) -> None:
    """Raise an error unless the target is missing, empty or a rows file."""
    if target.exists() and not target.is_file() and not target.is_dir():
        raise ValueError(f"cache={str(target)!r} is not an ordinary file; name another one")
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "cache= is a folder; name a file in it", str(target))
    if not target.exists():
        return
    if any(path.exists() and path.samefile(target) for path in paths):
        raise ValueError(f"cache={str(target)!r} is one of the sources; name another file")
    if target.stat().st_size > 0 and not is_rows_file(target):
        reason = "not a file of rows, so it is not replaced; delete it, or name another file with cache="
        raise FormatError(str(target), 0, 0, reason)


# --- Reuse ---------------------------------------------------------------------------------------------


def _find_reusable(
    target: Path, current_sources: list[SourceStamp], paths: list[Path], options: _Options
) -> RowFile | None:
    """Return the packed rows in `target` if they were made from the current sources; otherwise None."""
    if not target.exists() or target.stat().st_size == 0:
        return None
    with target.open("rb") as file:
        if not is_of_this_version(file):
            return None
        opened = OpenRows(str(target), file)
        footer = opened.footer
        if list(footer.sources) != current_sources or footer.rounded:
            return None
        # An index 0 is an error with these options. Read the sources again to find its line.
        if options.zero_based is False and footer.has_zero_index:
            return None
        return _make_row_file(opened, target, paths, options)


def _make_row_file(opened: OpenRows, target: Path, paths: list[Path], options: _Options) -> RowFile:
    """Return opened rows, with their columns counted according to the options."""
    footer = opened.footer
    zero_based = footer.has_zero_index if options.zero_based == "auto" else options.zero_based
    first_index = 0 if zero_based else 1
    used = max(0, footer.n_features - first_index)
    n_features = used if options.n_features is None else int(options.n_features)
    if used > n_features:
        reason = (
            f"index {footer.n_features - 1} is beyond {n_features - 1 + first_index}, the last that "
            f"n_features={n_features} allows; allow more features"
        )
        raise FormatError(footer.largest_index_file, footer.largest_index_line, 0, reason)
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
    """Pack the rows of all sources into the target."""
    with _open_rows_file(target) as file:
        # Take the stamps before reading: changes during reading are then detected later.
        stamps = [_make_stamp(path, target) for path in paths]
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
    """Reads source files one by one; records the largest index, and whether rows have query numbers."""

    def __init__(self, paths: Sequence[Path], options: _Options) -> None:
        self._paths = paths
        self._options = options
        self._has_queries: bool | None = None
        self.has_zero_index = False
        self.largest_index = -1
        self.largest_index_file = ""
        self.largest_index_line = 0

    def parts(self) -> Iterator[tuple[SvmlightPart, float]]:
        """Yield each part, and the fraction of all bytes that have been read so far."""
        sizes = [path.stat().st_size for path in self._paths]
        total = max(1, sum(sizes))
        for number, path in enumerate(self._paths):
            bytes_before = sum(sizes[:number])
            with path.open("rb", buffering=0) as file:
                for part in self._read_parts(file):
                    self._record_part(part, str(path))
                    yield part, min(1.0, (bytes_before + _get_position(file)) / total)

    def _read_parts(self, file: IO[bytes]) -> Iterator[SvmlightPart]:
        return read_svmlight_parts(
            file,
            n_features=self._options.n_features,
            zero_based=self._options.zero_based,
            part_bytes=_PART_BYTES,
            n_jobs=self._options.n_jobs,
        )

    def _record_part(self, part: SvmlightPart, name: str) -> None:
        """Check a part of the file `name`, and update the attributes."""
        if part.largest_index > _LARGEST_INDEX:
            reason = f"index {part.largest_index} is beyond {_LARGEST_INDEX}, the largest possible one"
            raise FormatError(name, part.largest_index_line, 0, reason + "; renumber the features")
        has_queries = part.qid is not None
        if self._has_queries not in (None, has_queries):
            reason = f"its rows have {'a' if has_queries else 'no'} qid:, unlike those of the files before it"
            raise FormatError(name, 0, 0, reason + "; either all rows have one or none")
        self._has_queries = has_queries
        self.has_zero_index |= part.has_zero_index
        if part.largest_index > self.largest_index:
            self.largest_index = part.largest_index
            self.largest_index_file, self.largest_index_line = name, part.largest_index_line


def _get_position(file: IO[bytes]) -> int:
    return file.tell() if file.seekable() else 0


@contextlib.contextmanager
def _open_rows_file(target: Path) -> Iterator[IO[bytes]]:
    """Yield a file that replaces the target when it is complete; errors advise to use another ``cache``."""
    has_begun = False
    try:
        with replace_file(target) as file:
            has_begun = True
            yield file
    except OSError as error:
        if not has_begun:
            raise _with_remedy(error, target, "cannot be written here") from error
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise _with_remedy(error, target, "do not fit here") from error


def _with_remedy(error: OSError, target: Path, problem: str) -> OSError:
    reason = f"{error.strerror}; packed rows {problem}: name a file elsewhere with cache="
    return OSError(error.errno, reason, str(target))  # OSError chooses its subclass by the error number
