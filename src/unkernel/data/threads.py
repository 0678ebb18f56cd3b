"""Convert ``n_jobs`` to a number of threads."""

from __future__ import annotations

import contextlib
import math
import operator
import os
from typing import SupportsIndex

_MOST_THREADS = 1024
_CPU_QUOTA = "/sys/fs/cgroup/cpu.max"


def thread_count(n_jobs: SupportsIndex | None) -> int:
    """Return the number of threads for ``n_jobs``, by scikit-learn's rules.

    None means one thread, -1 means all cores that this process may use, -2 means all of them but one, and so
    on.

    Examples
    --------
    >>> thread_count(None), thread_count(3)
    (1, 3)
    """
    if n_jobs is None:
        return 1
    jobs = _check_whole_number(n_jobs)
    return min(jobs if jobs > 0 else max(available_cores() + 1 + jobs, 1), _MOST_THREADS)


def _check_whole_number(n_jobs: SupportsIndex) -> int:
    jobs = 0
    if not isinstance(n_jobs, bool):
        with contextlib.suppress(TypeError):
            jobs = operator.index(n_jobs)
    if jobs == 0:
        raise ValueError(
            f"n_jobs must be a number of threads, None for one or -1 for all cores, got {n_jobs!r}"
        )
    return jobs


def available_cores() -> int:
    """Return the number of cores that the CPU affinity and the container's CPU limit allow this process."""
    try:
        cores = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # on macOS and Windows
        cores = os.cpu_count() or 1
    return max(min(cores, _read_quota_cores() or cores), 1)


def _read_quota_cores() -> int | None:
    """Return the CPU limit of the control group, rounded up to cores; None if there is no limit."""
    with contextlib.suppress(OSError, ValueError):
        with open(_CPU_QUOTA, encoding="ascii") as file:  # noqa: PTH123 (pathlib is slow to import)
            quota, period = file.read().split()
        return math.ceil(int(quota) / int(period))
    return None
