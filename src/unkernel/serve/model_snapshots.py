"""The server's own copies of model files, which nobody else can change, and which all workers map.

A model that is copied over a file would otherwise change under those who have it mapped. All workers look at
the files; whichever sees a new one first copies and checks it, and notes that in a table that all others
read. So there is one copy per machine, and one check per file.
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
_TABLE, _LOCK, _ALIVE = "table.json", "lock", "alive"
_ATTEMPTS = 5  # to copy a file that changes meanwhile


@dataclass(frozen=True)
class Entry:
    """The entry of a model in the table.

    Attributes
    ----------
    version : int
        Counted from 1; 0 before there is any.
    file : str
        The copy, in the depot.
    seen : tuple of int
        What the file looked like when it was copied, or refused.
    refused : str or None
        Why the newest file was refused, if it was.
    loaded_at : float
        Seconds since 1970.
    """

    version: int = 0
    file: str = ""
    seen: tuple[int, ...] = ()
    refused: str | None = None
    loaded_at: float = 0.0


class Depot:
    """A folder of copies.

    Parameters
    ----------
    folder : path
    models : dict
        The file of each model, by name.
    """

    def __init__(self, folder: Path, models: dict[str, str]) -> None:
        self._folder = folder
        self._sources = {name: Path(path) for name, path in models.items()}
        self._decoder = msgspec.json.Decoder(dict[str, Entry])

    def table(self) -> dict[str, Entry]:
        """The entries of all models, by name."""
        try:
            table: dict[str, Entry] = self._decoder.decode((self._folder / _TABLE).read_bytes())
            return table
        except FileNotFoundError:
            return {}

    def mark(self) -> tuple[int, ...]:
        """What changes when the table does."""
        return identity(self._folder / _TABLE)

    def copy_of(self, entry: Entry) -> Path:
        """Where the copy of a model is."""
        return self._folder / entry.file

    def is_new(self, name: str, entry: Entry) -> bool:
        """Whether the file has changed since it was copied; False where there is none."""
        try:
            return identity(self._sources[name]) != entry.seen
        except OSError:
            return False

    def take(self, name: str, *, again: bool = False) -> Entry:
        """Copy a file that has changed, unless another worker has; with `again`, also one that has not.

        Returns
        -------
        Entry
            As the table now has it; `refused` says why the file was not loaded.

        Raises
        ------
        OSError
            If the file cannot be read, or the copy cannot be written.
        """
        with self._locked():
            table = self.table()
            entry = table.get(name, Entry())
            if not again and not self.is_new(name, entry):
                return entry
            taken = self._taken(name, entry)
            self._write_table(table | {name: taken})
        if entry.file and taken.file != entry.file:
            self.copy_of(entry).unlink(missing_ok=True)  # those who have it mapped keep it
        return taken

    def _taken(self, name: str, entry: Entry) -> Entry:
        source = self._sources[name]
        file = f"{list(self._sources).index(name)}.{entry.version + 1}.uk"
        copy = self._folder / file
        try:
            seen = _copy_whole(source, copy)
            refused = _fault_of(copy)
        except BaseException:
            copy.unlink(missing_ok=True)
            raise
        if refused is None:
            return Entry(entry.version + 1, file, seen, None, time.time())
        copy.unlink(missing_ok=True)
        return replace(entry, seen=seen, refused=refused.replace(str(copy), str(source)))

    def _write_table(self, table: dict[str, Entry]) -> None:
        with replace_file(self._folder / _TABLE) as file:
            file.write(msgspec.json.encode(table))

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        import fcntl

        with (self._folder / _LOCK).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def identity(path: Path) -> tuple[int, ...]:
    """What tells a file from what was there before under the same name."""
    facts = path.stat()
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def _copy_whole(source: Path, copy: Path) -> tuple[int, ...]:
    """Copy a file that may be replaced, or still be written, at the same time; what it looked like."""
    for attempt in range(_ATTEMPTS):
        before = identity(source)
        shutil.copyfile(source, copy)
        if identity(source) == before:
            break
        time.sleep(0.01 * 2**attempt)
    return before


def _fault_of(copy: Path) -> str | None:
    """Why a file is no model that can be served; None where it is one."""
    try:
        check_servable(load(copy, verify=True))
    except ValueError as error:
        return str(error)
    return None


@contextlib.contextmanager
def new_depot() -> Iterator[Path]:
    """A private folder that is there as long as the server is; those of servers that were killed go, too.

    Raises
    ------
    OSError
        If the system has no locks of files, as Windows.
    """
    try:
        import fcntl
    except ImportError:
        raise OSError(
            errno.ENOSYS,
            "serving models needs a POSIX system, such as Linux or macOS (on Windows: WSL, or a container)",
        ) from None
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))  # of mode 700
    try:
        with (folder / _LOCK).open("a") as alive:
            fcntl.flock(alive, fcntl.LOCK_EX)
            (folder / _LOCK).rename(folder / _ALIVE)  # locked before a sweep can find it
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep() -> None:
    import fcntl

    for folder in Path(tempfile.gettempdir()).glob(_PREFIX + "*"):
        with contextlib.suppress(OSError):
            if folder.lstat().st_uid != os.getuid():
                continue
            with (folder / _ALIVE).open("r+") as alive:
                fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its server lives
                shutil.rmtree(folder, ignore_errors=True)
