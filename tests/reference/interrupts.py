"""Checks whether a call lets Python handle signals during native code."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_MAX_CALLS = 20
_MIN_REPEATS = 5


class _SignalHandled(Exception):  # noqa: N818 (ends the call, and is not an error)
    pass


def hears_signals(call: Callable[[], Any]) -> bool:
    """Return whether signal handlers run during a call.

    Python runs handlers between two of its own instructions. A handler that runs several times at the same
    instruction runs inside the native function called there. On a fast or busy machine, a call may end
    before that, and is repeated: the result is False if no handler ran in any of many calls.
    """
    instructions: list[tuple[int, int]] = []

    def handler(_number: int, frame: FrameType | None) -> None:
        assert frame is not None
        instructions.append((id(frame), frame.f_lasti))
        if len(instructions) >= _MIN_REPEATS and len(set(instructions[-_MIN_REPEATS:])) == 1:
            raise _SignalHandled

    main = threading.main_thread().ident
    assert threading.get_ident() == main
    ended = threading.Event()

    def send() -> None:
        while not ended.wait(0.01):
            signal.pthread_kill(main, signal.SIGUSR1)

    original_handler = signal.signal(signal.SIGUSR1, handler)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        for _ in range(_MAX_CALLS):
            instructions.clear()  # frames of another call may have the same ids
            call()
    except _SignalHandled:
        return True
    finally:
        ended.set()
        sender.join()
        signal.signal(signal.SIGUSR1, original_handler)
    return False
