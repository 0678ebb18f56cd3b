"""Whether a call lets Python see signals while it is in native code."""

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
    """Whether handlers of signals run in the middle of a call.

    Python runs handlers between two of its own instructions. One that runs several times at the same
    instruction runs inside of the native function that was called there. A call may be over before that, on
    a machine that is fast or busy, and is made again: the answer is no if none of many was heard in.
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
            places.clear()  # frames of another call may have the same numbers
            call()
    except _Heard:
        return True
    finally:
        ended.set()
        sender.join()
        signal.signal(signal.SIGUSR1, before)
    return False
