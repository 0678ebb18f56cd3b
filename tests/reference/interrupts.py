"""Checks whether a call lets Python handle signals during native code."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_CALLS = 20
_TIMES = 5


class _Heard(Exception):  # noqa: N818 (nothing is wrong)
    pass


def hears_signals(call: Callable[[], Any]) -> bool:
    """Return whether signal handlers run during a call.

    Python runs handlers between two of its own instructions. A handler that runs several times at the same
    instruction runs inside the native function called there. On a fast or busy machine, a call may end
    before that, and is repeated: the result is False if no handler ran in any of many calls.
    """
    places: list[tuple[int, int]] = []

    def handler(_number: int, frame: FrameType | None) -> None:
        assert frame is not None
        places.append((id(frame), frame.f_lasti))
        if len(places) >= _TIMES and len(set(places[-_TIMES:])) == 1:
            raise _Heard

    main = threading.main_thread().ident
    assert threading.get_ident() == main
    ended = threading.Event()

    def send() -> None:
        while not ended.wait(0.01):
            signal.pthread_kill(main, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, handler)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        for _ in range(_CALLS):
            places.clear()  # frames of another call may have the same ids
            call()
    except _Heard:
        return True
    finally:
        ended.set()
        sender.join()
        signal.signal(signal.SIGUSR1, before)
    return False
