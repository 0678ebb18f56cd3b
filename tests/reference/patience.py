"""Waiting for events that are certain to happen, also on a busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable

# Seconds after which a wait counts as hung: far more than any wait takes on a busy machine, so that no test
# depends on the clock.
PATIENCE = 600


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)
