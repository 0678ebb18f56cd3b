"""Long work that somebody interrupts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

needs_sigint = pytest.mark.skipif(os.name != "posix", reason="needs SIGINT")


def check_interrupt(program, timeout=30):
    """A program that prints ``ready`` and goes on ends soon after Ctrl-C, as Python programs do."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == b"ready\n"
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=timeout)
    assert b"KeyboardInterrupt" in errors
