"""How much memory there is to use."""

from __future__ import annotations

import contextlib
import os


def available_bytes() -> int:
    """Bytes this process can still take without swapping; 0 where the system does not say."""
    limits = [limit for limit in (_system_bytes(), _cgroup_bytes()) if limit > 0]
    return min(limits, default=0)


def _system_bytes() -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in _read("/proc/meminfo").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    with contextlib.suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 0


def _cgroup_bytes() -> int:
    folder = "/sys/fs/cgroup"
    with contextlib.suppress(OSError, ValueError):
        limit = int(_read(f"{folder}/memory.max"))
        return max(limit - int(_read(f"{folder}/memory.current")), 1)
    return 0


def _read(path: str) -> str:
    with open(path, encoding="ascii") as file:  # noqa: PTH123 (pathlib is slow to import)
        return file.read()
