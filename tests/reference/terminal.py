"""Commands on a terminal, with the same output as for a user."""

from __future__ import annotations

import os
import pty
import select
import signal
import time

from reference.patience import PATIENCE


def run_until_interrupted(words: str, command: list[str], **environment: str) -> tuple[int, str]:
    """Run a command on a terminal; press Ctrl-C when it shows `words`; return exit code and output."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update({"TERM": "xterm", "COLUMNS": "120"} | environment)
        os.environ.pop("NO_COLOR", None)
        os.execv(command[0], command)
    seen, pressed, limit = "", False, time.monotonic() + PATIENCE
    while True:
        if time.monotonic() > limit:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise AssertionError(
                f"{'Ctrl-C did not end it' if pressed else f'never showed {words}'}: {seen[-500:]}"
            )
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                seen += os.read(terminal, 65536).decode(errors="replace")
            except OSError:  # Linux reports this way that the other side has closed
                break
        if not pressed and words in seen:
            os.write(terminal, b"\x03")
            pressed = True
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen
