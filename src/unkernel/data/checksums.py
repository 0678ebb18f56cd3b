"""Compute XXH64 checksums of bytes and arrays. They detect damage, but not malicious changes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import checksum


def checksum_of(content: bytes | NDArray[Any]) -> int:
    """Return the XXH64 of bytes or of a contiguous array."""
    if isinstance(content, np.ndarray):
        return checksum(content.reshape(-1).view(np.uint8))
    return checksum(np.frombuffer(content, np.uint8))


def hexadecimal_checksum(content: bytes | NDArray[Any]) -> str:
    """Return the XXH64 as 16 hexadecimal digits, the form that files contain."""
    return f"{checksum_of(content):016x}"
