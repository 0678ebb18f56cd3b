"""Standard input and output as files: their name on the command line, the path of stdin, bytes for stdout."""

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
    """Writes UTF-8 to the text stream that has replaced stdout (``contextlib.redirect_stdout``, say)."""

    def write(self, data: bytes) -> int:
        sys.stdout.write(data.decode())
        return len(data)

    def flush(self) -> None:
        sys.stdout.flush()


def stdout_bytes() -> BinaryIO:
    """Return stdout as a stream of bytes, even if it was replaced by a stream of text."""
    return getattr(sys.stdout, "buffer", None) or cast(BinaryIO, _TextSink())
