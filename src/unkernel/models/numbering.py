"""Convert conjunctions of features to their numbers, and numbers to conjunctions.

The numbering is the same as in ``cpp/unkernel/kernels/conjunction_index.hpp``. Number 0 is the constant. The
rank of a feature is its position in the ``columns`` of the model. A conjunction consists of ranks a >= b >=
c. There is one block of numbers per a, in ascending order. A block has first a alone, then the pairs (a, b)
sorted by b, then the triples (a, b, c) sorted by b and c.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Ranks = NDArray[np.uint64]

# The largest number of features for each degree. The code below would not overflow even with one more.
_MAX_FEATURES = {1: 2**31 - 1, 2: 2_000_000_000, 3: 3_000_000}


def decode(keys: NDArray[np.uint64], degree: int, sets: bool) -> NDArray[np.int64]:
    """Return the ranks of each conjunction in descending order, of shape (n, 3) and padded with -1.

    Examples
    --------
    >>> decode(np.array([0, 1, 2, 3], dtype=np.uint64), degree=2, sets=True)
    array([[-1, -1, -1],
           [ 0, -1, -1],
           [ 1, -1, -1],
           [ 1,  0, -1]])
    """
    keys = np.asarray(keys, dtype=np.uint64)
    _check_keys(keys, degree, sets)
    result = np.full((len(keys), 3), -1, dtype=np.int64)
    nonzero = np.flatnonzero(keys > 0)
    a = _find_block(keys[nonzero], degree, sets)
    offset = keys[nonzero] - _find_block_begin(a, degree, sets)
    result[nonzero, 0] = a

    triples_begin = 1 + a + _shift(sets)
    is_pair = (offset > 0) & (offset < triples_begin)
    result[nonzero[is_pair], 1] = offset[is_pair] - 1

    is_triple = offset >= triples_begin
    offset_in_triples = offset[is_triple] - triples_begin[is_triple]
    b = _find_triangle(offset_in_triples, sets)
    result[nonzero[is_triple], 1] = b
    result[nonzero[is_triple], 2] = offset_in_triples - _choose2(b + _shift(sets))
    return result


def encode(ranks: NDArray[np.int64], degree: int, sets: bool) -> NDArray[np.uint64]:
    """Return the numbers of conjunctions, given as ranks in the form that :func:`decode` returns.

    Examples
    --------
    >>> encode(np.array([[-1, -1, -1], [1, -1, -1], [1, 0, -1]]), degree=2, sets=True)
    array([0, 2, 3], dtype=uint64)
    """
    a, b, c = (np.maximum(ranks[:, k], 0).astype(np.uint64) for k in range(3))
    keys = _find_block_begin(a, degree, sets)
    triples = keys + np.uint64(1) + a + _shift(sets) + _choose2(b + _shift(sets)) + c
    keys = np.where(ranks[:, 2] >= 0, triples, np.where(ranks[:, 1] >= 0, keys + np.uint64(1) + b, keys))
    encoded: NDArray[np.uint64] = np.where(ranks[:, 0] >= 0, keys, np.uint64(0))
    return encoded


def numbers_of(features: int, degree: int, sets: bool) -> int:
    """Return the number of conjunctions of `features` features, including the constant.

    Examples
    --------
    >>> numbers_of(3, degree=2, sets=True)
    7
    """
    if features > _MAX_FEATURES[degree]:
        raise ValueError(f"{features:,} features have too many conjunctions to number")
    return int(_find_block_begin(np.array([features], dtype=np.uint64), degree, sets)[0])


def _shift(sets: bool) -> np.uint64:
    """Return 1 for monomials, in which b may equal a, and 0 for sets, in which b is at most a - 1."""
    return np.uint64(0 if sets else 1)


def _check_keys(keys: Ranks, degree: int, sets: bool) -> None:
    if degree not in _MAX_FEATURES:
        raise ValueError(f"degree must be 1, 2 or 3, got {degree}")
    end = _find_block_begin(np.array([_MAX_FEATURES[degree]], dtype=np.uint64), degree, sets)[0]
    if len(keys) and keys.max() >= end:
        raise ValueError(f"no conjunction of degree {degree} has the number {keys.max()}")


def _find_block_begin(a: Ranks, degree: int, sets: bool) -> Ranks:
    """Return the first number of the block of rank a."""
    first = 1 + a
    if degree >= 2:
        first = first + _choose2(a + _shift(sets))
    if degree >= 3:
        first = first + _choose3(a + _shift(sets) + _shift(sets))
    return first


def _choose2(n: Ranks) -> Ranks:
    # For n = 0, the product 0 * (0 - 1) is 0 even with unsigned numbers.
    return n * (n - np.uint64(1)) // np.uint64(2)


def _choose3(n: Ranks) -> Ranks:
    """Return C(n, 3). To avoid an overflow, divide first: either C(n, 2) or n - 2 is a multiple of 3."""
    pairs, factor = _choose2(n), n - np.uint64(2)
    three = np.uint64(3)
    return np.where(pairs % three == 0, pairs // three * factor, factor // three * pairs)


def _find_block(keys: Ranks, degree: int, sets: bool) -> Ranks:
    """Return the rank a of the block that contains each number."""
    # The block of a begins at a^degree / degree! plus lower-order terms. These change the root by less than
    # 3.
    root = (math.factorial(degree) * keys.astype(np.float64)) ** (1.0 / degree)
    a: Ranks = np.maximum(root - 4, 0).astype(np.uint64)
    while True:
        is_too_small = _find_block_begin(a + 1, degree, sets) <= keys
        if not is_too_small.any():
            return a
        a = a + is_too_small


def _find_triangle(numbers: Ranks, sets: bool) -> Ranks:
    """Return the rank b of each triple, given its number among the triples of a."""
    b: Ranks = np.maximum(np.sqrt(2.0 * numbers.astype(np.float64)) - 2, 0).astype(np.uint64)
    while True:
        is_too_small = _choose2(b + np.uint64(1) + _shift(sets)) <= numbers
        if not is_too_small.any():
            return b
        b = b + is_too_small
