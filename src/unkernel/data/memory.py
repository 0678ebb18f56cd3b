"""How much memory there is to use."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def available_bytes() -> int:
    """Bytes this process can still take without swapping; 0 where nobody can tell."""
    limits = [limit for limit in (_system_bytes(), _cgroup_bytes()) if limit > 0]
    return min(limits, default=0)


def _system_bytes() -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    with contextlib.suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 0


def _cgroup_bytes() -> int:
    folder = Path("/sys/fs/cgroup")
    with contextlib.suppress(OSError, ValueError):
        limit = int((folder / "memory.max").read_text(encoding="ascii"))
        return max(limit - int((folder / "memory.current").read_text(encoding="ascii")), 1)
    return 0
