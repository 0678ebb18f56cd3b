"""How many threads an engine uses."""

from __future__ import annotations

import numpy as np
from joblib import effective_n_jobs

_MOST_THREADS = 1024


def thread_count(n_jobs: int | None) -> int:
    """How many threads that means; None and -1 are all cores."""
    is_number = isinstance(n_jobs, int | np.integer) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not is_number or n_jobs == 0):
        raise ValueError(f"n_jobs must be a number of threads, -1 or None for all cores, got {n_jobs!r}")
    return min(int(effective_n_jobs(-1 if n_jobs is None else n_jobs)), _MOST_THREADS)
