"""Waiting for certain events, on a machine however busy."""

from __future__ import annotations

import time
from collections.abc import Callable

# Seconds until something counts as hung. Nothing takes that long: with a limit that a busy machine could
# reach, tests would depend on the clock.
PATIENCE = 600


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)
