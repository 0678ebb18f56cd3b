"""Ends a worker whose event loop stands still."""

from __future__ import annotations

import asyncio
import faulthandler
from pathlib import Path

_LONGEST_BEAT_SECONDS = 1.0
_GRACE_SECONDS = 5.0  # beyond the time that a request may take


class Watchdog:
    """Ends this process if its event loop stands still for longer than a request may take.

    Native code that holds Python's lock and does not return can be ended in no other way. The watchdog is
    that of ``faulthandler``: a native thread, which needs no lock. It leaves a report of what every thread
    was doing, for the supervisor to log.

    Parameters
    ----------
    seconds : float
        How long a request may take.
    folder : path
        Where the report goes.
    process : int
        The number of this process.
    """

    def __init__(self, seconds: float, folder: Path, process: int) -> None:
        self._seconds = seconds + _GRACE_SECONDS
        self._report = _report_of(folder, process)

    async def beat(self) -> None:
        """Show that the event loop goes on, in an endless loop."""
        with self._report.open("wb") as report:
            try:
                while True:
                    faulthandler.dump_traceback_later(self._seconds, exit=True, file=report)
                    await asyncio.sleep(min(_LONGEST_BEAT_SECONDS, self._seconds / 4))
            finally:
                faulthandler.cancel_dump_traceback_later()


def take_report(folder: Path, process: int) -> str:
    """Return the report of a process that the watchdog ended, and remove it; empty if there is none."""
    path = _report_of(folder, process)
    try:
        found = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    path.unlink()
    return found


def _report_of(folder: Path, process: int) -> Path:
    return folder / f"stuck.{process}.txt"
