"""Conversion between conjunctions of features and their numbers.

The numbering is that of ``cpp/unkernel/kernels/conjunction_index.hpp``: all conjunctions a >= b >= c of ranks
are listed by a, where the block of a contains a alone, then (a, b) by b, then (a, b, c) by b and c; number 0
is the constant.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Ranks = NDArray[np.uint64]

# The largest number of features whose conjunctions have distinct numbers, by degree. With one rank more, the
# code below still does not overflow.
_MOST_FEATURES = {1: 2**31 - 1, 2: 2_000_000_000, 3: 3_000_000}


def decode(keys: NDArray[np.uint64], degree: int, sets: bool) -> NDArray[np.int64]:
    """Return the ranks of each conjunction, largest first, as an array of shape (n, 3) padded with -1.

    Examples
    --------
    >>> decode(np.array([0, 1, 2, 3], dtype=np.uint64), degree=2, sets=True)
    array([[-1, -1, -1],
           [ 0, -1, -1],
           [ 1, -1, -1],
           [ 1,  0, -1]])
    """
    keys = np.asarray(keys, dtype=np.uint64)
    _check_unnumbered(keys, degree, sets)
    result = np.full((len(keys), 3), -1, dtype=np.int64)
    proper = np.flatnonzero(keys > 0)
    a = _last_block_at_or_before(keys[proper], degree, sets)
    rest = keys[proper] - _block(a, degree, sets)
    result[proper, 0] = a

    triples_begin = 1 + a + _shift(sets)
    pairs = (rest > 0) & (rest < triples_begin)
    result[proper[pairs], 1] = rest[pairs] - 1

    triples = rest >= triples_begin
    within = rest[triples] - triples_begin[triples]
    b = _last_triangle_at_or_before(within, sets)
    result[proper[triples], 1] = b
    result[proper[triples], 2] = within - _choose2(b + _shift(sets))
    return result


def encode(ranks: NDArray[np.int64], degree: int, sets: bool) -> NDArray[np.uint64]:
    """Return the numbers of conjunctions, given as :func:`decode` gives them.

    Examples
    --------
    >>> encode(np.array([[-1, -1, -1], [1, -1, -1], [1, 0, -1]]), degree=2, sets=True)
    array([0, 2, 3], dtype=uint64)
    """
    a, b, c = (np.maximum(ranks[:, k], 0).astype(np.uint64) for k in range(3))
    keys = _block(a, degree, sets)
    triples = keys + np.uint64(1) + a + _shift(sets) + _choose2(b + _shift(sets)) + c
    keys = np.where(ranks[:, 2] >= 0, triples, np.where(ranks[:, 1] >= 0, keys + np.uint64(1) + b, keys))
    encoded: NDArray[np.uint64] = np.where(ranks[:, 0] >= 0, keys, np.uint64(0))
    return encoded


def numbers_of(features: int, degree: int, sets: bool) -> int:
    """Return the count of conjunctions of the features, including the constant.

    Examples
    --------
    >>> numbers_of(3, degree=2, sets=True)
    7
    """
    if features > _MOST_FEATURES[degree]:
        raise ValueError(f"{features:,} features have too many conjunctions to number")
    return int(_block(np.array([features], dtype=np.uint64), degree, sets)[0])


def _shift(sets: bool) -> np.uint64:
    """Return 1 for monomials, which may repeat a feature (b goes up to a), and 0 for sets (up to a - 1)."""
    return np.uint64(0 if sets else 1)


def _check_unnumbered(keys: Ranks, degree: int, sets: bool) -> None:
    if degree not in _MOST_FEATURES:
        raise ValueError(f"degree must be 1, 2 or 3, got {degree}")
    end = _block(np.array([_MOST_FEATURES[degree]], dtype=np.uint64), degree, sets)[0]
    if len(keys) and keys.max() >= end:
        raise ValueError(f"no conjunction of degree {degree} has the number {keys.max()}")


def _block(a: Ranks, degree: int, sets: bool) -> Ranks:
    """Return the first number of rank a's block."""
    first = 1 + a
    if degree >= 2:
        first = first + _choose2(a + _shift(sets))
    if degree >= 3:
        first = first + _choose3(a + _shift(sets) + _shift(sets))
    return first


def _choose2(n: Ranks) -> Ranks:
    # 0 * (0 - 1) is 0 for unsigned numbers, too.
    return n * (n - np.uint64(1)) // np.uint64(2)


def _choose3(n: Ranks) -> Ranks:
    """Return C(n, 3). C(n, 2) or n - 2 is a multiple of 3 and is divided first, to avoid an overflow."""
    pairs, rest = _choose2(n), n - np.uint64(2)
    three = np.uint64(3)
    return np.where(pairs % three == 0, pairs // three * rest, rest // three * pairs)


def _last_block_at_or_before(keys: Ranks, degree: int, sets: bool) -> Ranks:
    # block(a) is a^degree / degree! plus lower-order terms, which shift the root by less than 3.
    root = (math.factorial(degree) * keys.astype(np.float64)) ** (1.0 / degree)
    a: Ranks = np.maximum(root - 4, 0).astype(np.uint64)
    while (short := _block(a + 1, degree, sets) <= keys).any():
        a = a + short
    return a


def _last_triangle_at_or_before(numbers: Ranks, sets: bool) -> Ranks:
    b: Ranks = np.maximum(np.sqrt(2.0 * numbers.astype(np.float64)) - 2, 0).astype(np.uint64)
    while (short := _choose2(b + np.uint64(1) + _shift(sets)) <= numbers).any():
        b = b + short
    return b
