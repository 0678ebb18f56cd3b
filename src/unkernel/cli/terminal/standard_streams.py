"""Use standard input and output like files: their name in arguments, a path for stdin, bytes for stdout."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import BinaryIO, cast

STANDARD_STREAM = "-"


def stdin_path() -> Path:
    """Return the path of stdin.

    Raises
    ------
    ValueError
        If stdin has no path on this system (Windows).
    """
    if not os.path.lexists("/dev/stdin"):
        raise ValueError("-: this system cannot open stdin by a name; name a file instead")
    return Path("/dev/stdin")


class _TextSink:
    """Writes UTF-8 to a text stream that has replaced stdout, as ``contextlib.redirect_stdout`` does."""

    def write(self, data: bytes) -> int:
        sys.stdout.write(data.decode())
        return len(data)

    def flush(self) -> None:
        sys.stdout.flush()


def stdout_bytes() -> BinaryIO:
    """Return stdout as a stream of bytes, even if a stream of text has replaced it."""
    return getattr(sys.stdout, "buffer", None) or cast(BinaryIO, _TextSink())
