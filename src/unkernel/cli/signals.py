"""Signals that ask a process to end: what a command has begun is cleaned up, as after Ctrl-C."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

_ENDING = ("SIGTERM", "SIGHUP")


class Terminated(BaseException):
    """The process has been asked to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = signal.Signals(number)


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Signals that would end the process at once raise :class:`Terminated` instead.

    Those that somebody handles, or ignores (``nohup``), stay as they are.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in _ENDING if hasattr(signal, name)]
    taken = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _terminate)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _terminate(number: int, _frame: Any) -> None:
    raise Terminated(number)
