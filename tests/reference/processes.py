"""Python programs in their own processes: their output, and their end by Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from typing import Any

import pytest

from reference.patience import PATIENCE

needs_sigint = pytest.mark.skipif(os.name != "posix", reason="needs SIGINT")


def run_python(program: str, *arguments: object, **settings: Any) -> subprocess.CompletedProcess[str]:
    """Run a program until it ends, with any exit code, and return its result."""
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    limits = {"timeout": PATIENCE, "check": False}
    return subprocess.run(command, capture_output=True, text=True, **limits, **settings)  # noqa: PLW1510


def run_program(program: str, *arguments: object) -> str:
    """Return the output of a program that succeeds."""
    done = run_python(program, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


# Prints "ready" when a solver has worked for half a second, because it calls twenty times per second.
ON_PROGRESS = """
import itertools
calls = itertools.count()

def on_progress(_progress):
    if next(calls) == 10:
        print("ready", flush=True)
"""


def check_interrupt(program: str) -> None:
    """Check that Ctrl-C ends a program that prints ``ready`` during work that would never end.

    The program may pass ``on_progress``, which prints ``ready``, to a solver.
    """
    command = [sys.executable, "-c", ON_PROGRESS + textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()  # no program outlives a failed test
    assert b"KeyboardInterrupt" in errors
