"""Run work in forked children that are killed, or run out of disk space, at a chosen moment."""

from __future__ import annotations

import errno
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

Work = Callable[[Path], object]

# Audit events that Python raises before it accesses the file system
# (https://docs.python.org/3/library/audit_events.html).
FILE_EVENTS = {
    "open",
    "os.chmod",
    "os.link",
    "os.mkdir",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "shutil.rmtree",
}


def _touches(folder: Path, event: str, arguments: tuple[object, ...]) -> bool:
    return event in FILE_EVENTS and any(str(folder) in str(argument) for argument in arguments)


class Moment(Protocol):
    """A moment at which a child is killed."""

    def arm(self, folder: Path) -> None:
        """Prepare the kill; called in the child, before it works."""

    def wait(self, child: int) -> None:
        """Wait for the moment; called in the parent, which then waits for the child to end."""


@dataclass(frozen=True)
class Never:
    def arm(self, folder: Path) -> None: ...

    def wait(self, child: int) -> None: ...


NEVER = Never()


@dataclass(frozen=True)
class AfterSeconds(Never):
    """A kill by the parent, some time after the work began."""

    seconds: float

    def wait(self, child: int) -> None:
        time.sleep(self.seconds)
        os.kill(child, signal.SIGKILL)


@dataclass(frozen=True)
class BeforeEvent(Never):
    """A kill just before the child accesses its folder for the n-th time."""

    number: int

    def arm(self, folder: Path) -> None:
        remaining = self.number

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal remaining
            if _touches(folder, event, arguments):
                remaining -= 1
                if remaining == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)


@dataclass(frozen=True)
class AtByte(Never):
    """A kill in the middle of a write, when a file would exceed a size."""

    size: int

    def arm(self, folder: Path) -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, self.size))


@dataclass(frozen=True)
class FullDisk(Never):
    """No kill: writing beyond a size fails like on a full disk, but with another error number."""

    size: int

    def arm(self, folder: Path) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, self.size))


@dataclass(frozen=True)
class FailedFlush(Never):
    """No kill: the n-th flush of a file fails because the disk is full."""

    number: int

    def arm(self, folder: Path) -> None:
        remaining = self.number

        def fsync(_: int) -> None:
            nonlocal remaining
            remaining -= 1
            if remaining == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        os.fsync = fsync  # type: ignore[assignment]


@dataclass(frozen=True)
class Ended:
    """The end of a child: an exit code or a signal, and its stdout and stderr."""

    code: int
    said: str

    @property
    def last_line(self) -> str:
        return (self.said.strip() or "nothing").splitlines()[-1]

    @property
    def killed(self) -> bool:
        return self.code in (-signal.SIGKILL, -signal.SIGXFSZ)


@dataclass(frozen=True)
class Child:
    """A working process."""

    number: int
    output: int
    moment: Moment

    def end(self) -> Ended:
        """Wait until the process ends."""
        self.moment.wait(self.number)
        with os.fdopen(self.output, "rb") as pipe:
            output = pipe.read().decode(errors="replace")
        _, status = os.waitpid(self.number, 0)
        return Ended(os.waitstatus_to_exitcode(status), output)


def start(work: Work, folder: Path, moment: Moment = NEVER) -> Child:
    """Start some work in a forked child. Exit codes: 0 for success, 1 for an exception."""
    reads, writes = os.pipe()
    number = os.fork()
    if number == 0:
        os.close(reads)
        _work_and_exit(work, folder, moment, writes)
    os.close(writes)
    return Child(number, reads, moment)


def run(work: Work, folder: Path, moment: Moment = NEVER) -> Ended:
    """Run some work in a forked child until it ends in any way."""
    return start(work, folder, moment).end()


def _work_and_exit(work: Work, folder: Path, moment: Moment, output: int) -> None:
    code = 1
    try:
        for stream in (1, 2):
            os.dup2(output, stream)
        os.close(output)
        moment.arm(folder)
        code = int(work(folder) or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def count_events(work: Work, folder: Path) -> int:
    """Return how many times some work accesses its folder."""

    def print_event_count(folder: Path) -> None:
        events = 0

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal events
            events += _touches(folder, event, arguments)

        sys.addaudithook(hook)
        work(folder)
        sys.stdout.flush()
        print("\nevents", events)

    return int(run(print_event_count, folder).said.split()[-1])
