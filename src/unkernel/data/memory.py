"""Parse and format sizes of memory, and find the available memory."""

from __future__ import annotations

import contextlib
import math
import os
import re

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def parse_bytes(text: str, argument: str = "memory") -> float:
    """Return the number of bytes in a text such as ``200M`` or ``1.5 GB``; units are powers of 1000."""
    match = re.fullmatch(
        r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([KMGT]?)B?\s*", text, re.ASCII | re.IGNORECASE
    )
    amount = float(match[1]) * _UNITS[match[2].upper()] if match else 0.0
    if not 0 < amount < math.inf:
        raise ValueError(f"{argument} must be bytes, such as 200M, 1.5G or 1000000, got {text!r}")
    return amount


def format_bytes(nbytes: float) -> str:
    """Return a number of bytes as text with a unit.

    >>> format_bytes(1.25e9), format_bytes(8e6)
    ('1.25 GB', '8 MB')
    """
    unit, size = ("GB", 1e9) if nbytes >= 1e9 else ("MB", 1e6)
    return f"{nbytes / size:.3g} {unit}"


def available_bytes() -> int:
    """Return the number of bytes that this process can still allocate without swapping; 0 if unknown."""
    limits = [
        limit for limit in (_count_system_bytes(), _count_cgroup_bytes(), _count_process_bytes()) if limit > 0
    ]
    return min(limits, default=0)


def _count_system_bytes() -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in _read("/proc/meminfo").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    with contextlib.suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 0


def _count_cgroup_bytes() -> int:
    folder = "/sys/fs/cgroup"
    with contextlib.suppress(OSError, ValueError):
        limit = int(_read(f"{folder}/memory.max"))
        return max(limit - int(_read(f"{folder}/memory.current")), 1)
    return 0


def _count_process_bytes() -> int:
    """Return the number of bytes that ``ulimit -v`` still allows; 0 if there is no such limit."""
    with contextlib.suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            return max(limit - resource.getpagesize() * int(_read("/proc/self/statm").split()[0]), 1)
    return 0


def _read(path: str) -> str:
    with open(path, encoding="ascii") as file:  # noqa: PTH123 (pathlib is slow to import)
        return file.read()
