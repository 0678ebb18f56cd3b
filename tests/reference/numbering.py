"""The slow twin of the numbering of conjunctions: an explicit list."""

from __future__ import annotations

import itertools


def conjunctions_in_order(features: int, degree: int, sets: bool) -> list[tuple[int, ...]]:
    """Return all conjunctions of at most `degree` of the ranks 0 .. features - 1; number i is the i-th."""
    pick = itertools.combinations if sets else itertools.combinations_with_replacement
    conjunctions = [
        tuple(sorted(members, reverse=True))
        for size in range(degree + 1)
        for members in pick(range(features), size)
    ]
    return sorted(conjunctions, key=lambda ranks: (ranks[:1], len(ranks), ranks))
