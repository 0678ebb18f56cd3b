"""Raise an exception on signals that terminate the process: commands then clean up as after Ctrl-C."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

_TERMINATING_SIGNALS = ("SIGTERM", "SIGHUP")


class Terminated(BaseException):
    """Raised when the process receives a signal that terminates it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = signal.Signals(number)


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Raise :class:`Terminated` on signals that would end the process without cleaning up.

    Signals that already have a handler or are ignored (``nohup``) are not changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in _TERMINATING_SIGNALS if hasattr(signal, name)]
    unhandled = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in unhandled:
        signal.signal(number, _terminate)
    try:
        yield
    finally:
        for number in unhandled:
            signal.signal(number, signal.SIG_DFL)


def _terminate(number: int, _frame: Any) -> None:
    raise Terminated(number)
