"""The server's private copies of model files, which all workers map into memory.

If a new model is copied over a mapped file, the mapped memory changes. The workers therefore map private
copies. All workers watch the files. The first worker that finds a new file copies and checks it, and adds the
copy to a table that all workers read. A file is thus copied and checked only once per machine.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from unkernel import load
from unkernel.data.atomic_write import replace_file
from unkernel.serve.answerers import check_servable

_PREFIX = "unkernel-serve-"
# Files of the folder. Workers lock the second one while they change the table; the server keeps the third one
# locked while it runs.
_TABLE, _LOCK, _ALIVE = "table.json", "lock", "alive"
_MAX_COPY_ATTEMPTS = 5  # copying is repeated if the file changes meanwhile


@dataclass(frozen=True)
class Snapshot:
    """The entry of a model in the table.

    Attributes
    ----------
    version : int
        Number of the version, counted from 1; 0 before the first copy.
    file : str
        Name of the copy in the folder.
    source_identity : tuple of int
        Identity of the file when it was copied or rejected.
    refusal : str or None
        Why the newest file was rejected; None if it was accepted.
    loaded_at : float
        Time of loading, in seconds since 1970.
    """

    version: int = 0
    file: str = ""
    source_identity: tuple[int, ...] = ()
    refusal: str | None = None
    loaded_at: float = 0.0


class ModelSnapshots:
    """The folder of copies and their table.

    Parameters
    ----------
    folder : path
    models : dict
        The file of each model, by name.
    """

    def __init__(self, folder: Path, models: dict[str, str]) -> None:
        self._folder = folder
        self._sources = {name: Path(path) for name, path in models.items()}
        self._decoder = msgspec.json.Decoder(dict[str, Snapshot])

    def read_table(self) -> dict[str, Snapshot]:
        """Return the entries of all models, by name."""
        try:
            table: dict[str, Snapshot] = self._decoder.decode((self._folder / _TABLE).read_bytes())
            return table
        except FileNotFoundError:
            return {}

    def identify_table(self) -> tuple[int, ...]:
        """Return a value that changes whenever the table changes."""
        return identify_file(self._folder / _TABLE)

    def get_path(self, entry: Snapshot) -> Path:
        return self._folder / entry.file

    def has_changed(self, name: str, entry: Snapshot) -> bool:
        """Return whether the file has changed since it was copied; False if it does not exist."""
        try:
            return identify_file(self._sources[name]) != entry.source_identity
        except OSError:
            return False

    def take_snapshot(self, name: str, *, again: bool = False) -> Snapshot:
        """Copy and check a file if it has changed since the last copy, or if `again` is true.

        Returns
        -------
        Snapshot
            The new entry of the table. If the file was rejected, `refusal` has the reason.

        Raises
        ------
        OSError
            If the file cannot be read, or the copy cannot be written.
        """
        with self._lock_table():
            table = self.read_table()
            entry = table.get(name, Snapshot())
            if not again and not self.has_changed(name, entry):
                return entry
            new_entry = self._copy_and_check(name, entry)
            self._write_table(table | {name: new_entry})
        if entry.file and new_entry.file != entry.file:
            self.get_path(entry).unlink(missing_ok=True)  # workers that have mapped the copy keep its content
        return new_entry

    def _copy_and_check(self, name: str, entry: Snapshot) -> Snapshot:
        """Copy and check a file; return a new entry or, if the file is rejected, `entry` with the reason."""
        source = self._sources[name]
        file = f"{list(self._sources).index(name)}.{entry.version + 1}.uk"
        copy = self._folder / file
        try:
            identity = _copy_unchanged(source, copy)
            refusal = _find_problem(copy)
        except BaseException:
            copy.unlink(missing_ok=True)
            raise
        if refusal is None:
            return Snapshot(entry.version + 1, file, identity, None, time.time())
        copy.unlink(missing_ok=True)
        return replace(entry, source_identity=identity, refusal=refusal.replace(str(copy), str(source)))

    def _write_table(self, table: dict[str, Snapshot]) -> None:
        with replace_file(self._folder / _TABLE) as file:
            file.write(msgspec.json.encode(table))

    @contextlib.contextmanager
    def _lock_table(self) -> Iterator[None]:
        import fcntl

        with (self._folder / _LOCK).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def identify_file(path: Path) -> tuple[int, ...]:
    """Return numbers that change whenever a file is replaced or written."""
    stat = path.stat()
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def _copy_unchanged(source: Path, copy: Path) -> tuple[int, ...]:
    """Copy a file, again if it changes during the copy; return the identity of the file."""
    for attempt in range(_MAX_COPY_ATTEMPTS):
        identity = identify_file(source)
        shutil.copyfile(source, copy)
        if identify_file(source) == identity:
            break
        time.sleep(0.01 * 2**attempt)
    return identity


def _find_problem(copy: Path) -> str | None:
    """Return the reason why a file cannot be served; None if it can."""
    try:
        check_servable(load(copy, verify=True))
    except ValueError as error:
        return str(error)
    return None


@contextlib.contextmanager
def make_snapshot_folder() -> Iterator[Path]:
    """Yield a private folder, and remove it at the end; also remove the folders of killed servers.

    Raises
    ------
    OSError
        If the system has no file locks, as on Windows.
    """
    try:
        import fcntl
    except ImportError:
        raise OSError(
            errno.ENOSYS,
            "serving models needs a POSIX system such as Linux or macOS (on Windows, use WSL or a container)",
        ) from None
    _remove_orphans()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))  # with mode 700
    try:
        with (folder / _LOCK).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Rename the file only after locking it: other servers then never find it unlocked.
            (folder / _LOCK).rename(folder / _ALIVE)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_orphans() -> None:
    """Remove the folders of this user's servers that have been killed."""
    import fcntl

    for folder in Path(tempfile.gettempdir()).glob(_PREFIX + "*"):
        with contextlib.suppress(OSError):
            if folder.lstat().st_uid != os.getuid():
                continue
            with (folder / _ALIVE).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while the folder's server is running
                shutil.rmtree(folder, ignore_errors=True)
