"""Replace files in one step: if writing fails, the old file remains unchanged.

On Linux, a file is written without a name, and gets its name when it is complete. A killed process therefore
leaves nothing behind. On file systems without nameless files, a hidden file in the folder of the target is
written, and locked by the process. If the process is killed, the next process that writes to the folder finds
the file unlocked and removes it. Windows has neither nameless files nor such locks: a killed process leaves
its hidden file behind.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
import stat
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any, NamedTuple

try:
    import fcntl
except ImportError:  # on Windows
    _HAS_LOCKS = False
else:
    _HAS_LOCKS = True

if TYPE_CHECKING:
    from pathlib import Path

_BEGIN, _END = ".unkernel-", ".tmp"
_BINARY = getattr(os, "O_BINARY", 0)  # without this flag, Windows writes two bytes for a line feed
# Do not wait for a pipe, and do not follow a link, that has the name of a temporary file.
_NO_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)


@contextlib.contextmanager
def replace_file(target: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Yield a file that replaces the target when the ``with`` block ends without an error.

    Errors while writing name the target, even if the system's error names no file.
    """
    from pathlib import Path

    path = Path(os.path.realpath(target))  # replaces the target of a symbolic link, not the link
    if path.exists() and not path.is_file():
        with _open_target_writer(os.open(path, os.O_WRONLY | _BINARY), path) as device:  # such as /dev/stdout
            yield device
        return
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such folder", str(path.parent))
    remove_stale(path.parent)
    temporary = _open_temporary(path)
    try:
        with _open_target_writer(temporary.descriptor, path) as file:
            yield file
            file.flush()
            with _name_target(path):
                os.fsync(file.fileno())
                if path.exists():
                    _set_mode(file.fileno(), path.stat())
                if _HAS_LOCKS:
                    temporary.replace_target(path)  # while the file is open and locked
        if not _HAS_LOCKS:  # on Windows, where an open file cannot be renamed either
            with _name_target(path):
                temporary.replace_target(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.name.unlink()
        raise


def remove_stale(folder: Path) -> None:
    """Remove the temporary files that killed processes left in a folder."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(_BEGIN) and entry.name.endswith(_END):
                with contextlib.suppress(OSError):
                    _remove_unlocked(entry.path)


def _remove_unlocked(path: str) -> None:
    """Remove a temporary file, unless a running process has locked it."""
    descriptor = os.open(path, os.O_RDONLY | _NO_WAITING)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode) and _lock(descriptor, wait=False):
            os.unlink(path)  # noqa: PTH108 (a name from os.scandir)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, *, wait: bool) -> bool:
    """Lock a file and return True; return False if another process has the lock or there are no locks."""
    if not _HAS_LOCKS:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _set_mode(descriptor: int, status: os.stat_result) -> None:
    """Copy the permissions of another file, if the system has file permissions."""
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


# --- The temporary file -------------------------------------------------------------------------------


class _Temporary(NamedTuple):
    """An open file and its temporary name; a nameless file gets the name just before replacing the target."""

    descriptor: int
    name: Path
    named: bool

    def replace_target(self, path: Path) -> None:
        if not self.named:
            self._give_name()
        self.name.replace(path)

    def _give_name(self) -> None:
        try:
            _link(self.descriptor, self.name)
        except OSError:  # links are not allowed: copy the file, which may contain hours of work
            with open(self.descriptor, "rb", closefd=False) as source, self.name.open("xb") as copy:
                _lock(copy.fileno(), wait=True)
                source.seek(0)
                shutil.copyfileobj(source, copy)
                copy.flush()
                _set_mode(copy.fileno(), os.fstat(self.descriptor))
                os.fsync(copy.fileno())


def _open_temporary(path: Path) -> _Temporary:
    """Open and lock a temporary file in the folder of `path`: a nameless one, if the system has them."""
    name = path.with_name(f"{_BEGIN}{os.urandom(8).hex()}{_END}")
    with _name_target(path):
        descriptor = _open_nameless(path.parent)
        if descriptor is not None:
            _lock(descriptor, wait=True)
            return _Temporary(descriptor, name, named=False)
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY, 0o666)
    _lock(descriptor, wait=True)
    if os.fstat(descriptor).st_nlink == 0:  # another process removed the file before it was locked
        os.close(descriptor)
        return _open_temporary(path)
    return _Temporary(descriptor, name, named=True)


def _open_nameless(folder: Path) -> int | None:
    """Open a nameless file; return None if the system has no such files, or cannot name them later."""
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None or os.link not in os.supports_dir_fd:
        return None
    try:
        descriptor = os.open(folder, flag | os.O_RDWR, 0o666)
    except OSError:  # if the folder is at fault, opening a named file will raise the error
        return None
    if os.path.exists(_descriptor_path(descriptor)):  # noqa: PTH110 (not worth an import)
        return descriptor
    os.close(descriptor)
    return None


def _link(descriptor: int, name: Path) -> None:
    # The path in /proc is a symlink. Python calls linkat, which can follow symlinks, only if src_dir_fd is
    # given. The value of src_dir_fd is ignored, because the path is absolute.
    os.link(_descriptor_path(descriptor), name, src_dir_fd=descriptor, follow_symlinks=True)


def _descriptor_path(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"


# --- Errors that name the target ----------------------------------------------------------------------


def _open_target_writer(descriptor: int, path: Path) -> IO[bytes]:
    return io.BufferedWriter(_TargetFile(descriptor, path))


class _TargetFile(io.FileIO):
    """A file whose errors name the target; without it, the error for a full disk names no file."""

    def __init__(self, descriptor: int, path: Path) -> None:
        super().__init__(descriptor, "wb")
        self._path = path

    def write(self, data: Any) -> Any:
        with _name_target(self._path):
            return super().write(data)


@contextlib.contextmanager
def _name_target(path: Path) -> Iterator[None]:
    """Let errors of the system name this path."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
