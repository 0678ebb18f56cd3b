"""Check the size of a cache of scores, and count its hits and misses."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unkernel._core import Engine

_MAX_CACHED_ROWS = 1 << 26


class CacheInfo(NamedTuple):
    """Statistics of a cache, as for ``functools.lru_cache``.

    Attributes
    ----------
    hits : int
        Number of rows that were found in the cache.
    misses : int
        Number of rows that were not in the cache and were scored.
    maxsize : int
        Largest number of rows in the cache; 0 if there is no cache.
    currsize : int
        Number of rows in the cache.

    See Also
    --------
    unkernel.CompiledClassifier.cache_info : Return these numbers.

    Examples
    --------
    >>> from unkernel import PolySVC, compile
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> fast = compile(PolySVC(C=10, gamma=1).fit(X, y), cache=10)
    >>> fast.predict_one([0]), fast.predict_one([0])
    (1, 1)
    >>> fast.cache_info()
    CacheInfo(hits=1, misses=1, maxsize=10, currsize=1)
    """

    hits: int
    misses: int
    maxsize: int
    currsize: int


def check_cache(rows: int | None) -> None:
    """Raise a ``ValueError`` unless `rows` is None or a valid number of rows to cache."""
    is_integer = isinstance(rows, int | np.integer) and not isinstance(rows, bool)
    if rows is not None and not (is_integer and 1 <= rows <= _MAX_CACHED_ROWS):
        raise ValueError(f"cache must be a whole number of rows from 1 to {_MAX_CACHED_ROWS:,}, got {rows!r}")


def get_cache_info(engine: Engine) -> CacheInfo:
    """Return the statistics of an engine's cache; all zero if there is no cache."""
    counts: Any = engine.cache_counts()
    return CacheInfo(0, 0, 0, 0) if counts is None else CacheInfo(*counts)
