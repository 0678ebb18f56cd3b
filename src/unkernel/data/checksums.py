"""XXH64 of bytes and arrays: tells damage, not malice."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel._core import checksum


def checksum_of(content: bytes | NDArray[Any]) -> int:
    """XXH64 of these bytes, or of those of a contiguous array."""
    if isinstance(content, np.ndarray):
        return checksum(content.reshape(-1).view(np.uint8))
    return checksum(np.frombuffer(content, np.uint8))


def hexadecimal_checksum(content: bytes | NDArray[Any]) -> str:
    """Return the same, as the 16 digits that files hold."""
    return f"{checksum_of(content):016x}"
