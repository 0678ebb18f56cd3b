"""A watchdog that ends a worker whose event loop is blocked."""

from __future__ import annotations

import asyncio
import faulthandler
from pathlib import Path

_MAX_BEAT_SECONDS = 1.0  # longest interval between two restarts of the timer
_GRACE_SECONDS = 5.0  # time from the timeout of a request until the process ends


class Watchdog:
    """Ends this process if its event loop is blocked for longer than the timeout of requests.

    The watchdog ends native code that holds the GIL and does not return. It uses the timer of
    ``faulthandler``, whose native thread does not need the GIL. The timer writes the stacks of all threads to
    a report, and the supervisor logs the report.

    Parameters
    ----------
    seconds : float
        The timeout of requests.
    folder : path
        The folder of the report.
    process : int
        The id of this process.
    """

    def __init__(self, seconds: float, folder: Path, process: int) -> None:
        self._seconds = seconds + _GRACE_SECONDS
        self._report = _make_report_path(folder, process)

    async def beat(self) -> None:
        """Restart the watchdog's timer at regular intervals, in an endless loop."""
        with self._report.open("wb") as report:
            try:
                while True:
                    faulthandler.dump_traceback_later(self._seconds, exit=True, file=report)
                    await asyncio.sleep(min(_MAX_BEAT_SECONDS, self._seconds / 4))
            finally:
                faulthandler.cancel_dump_traceback_later()


def take_report(folder: Path, process: int) -> str:
    """Return and remove the watchdog's report of a process; return an empty string if there is none."""
    path = _make_report_path(folder, process)
    try:
        report = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    path.unlink()
    return report


def _make_report_path(folder: Path, process: int) -> Path:
    return folder / f"stuck.{process}.txt"
