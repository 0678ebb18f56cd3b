"""Standard input as a file: its name on the command line, and its path."""

from __future__ import annotations

import os
from pathlib import Path

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
