"""Handle Ctrl-C while another thread waits for the cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class Interrupted(Exception):  # noqa: N818 (not an error)
    """The thread that waits for the cluster must stop."""


def run_interruptibly(work: Callable[[], dict[str, Any]], stopped: threading.Event) -> dict[str, Any]:
    """Run `work` on another thread and return its result; on Ctrl-C, set `stopped` and end the thread."""
    outcome: dict[str, Any] = {}
    finished = threading.Event()

    def run() -> None:
        try:
            outcome["result"] = work()
        except BaseException as error:
            outcome["error"] = error
        finally:
            finished.set()

    worker = threading.Thread(target=run, name="unkernel-distributed", daemon=True)
    worker.start()
    try:
        while not finished.wait(0.1):
            pass
    except BaseException:
        stopped.set()
        finished.wait()  # not join: after an interrupted join, Python 3.11 reports the thread as ended
        raise
    if "error" in outcome and not isinstance(outcome["error"], Interrupted):
        raise outcome["error"]
    result: dict[str, Any] = outcome["result"]
    return result
