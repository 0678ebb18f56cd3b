"""Numbers of conjunctions and their decoding: compared with explicit lists, and for the largest numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.numbering import conjunctions_in_order
from unkernel.models.numbering import decode

every_basis = pytest.mark.parametrize("sets", [True, False])
degrees = pytest.mark.parametrize("degree", [1, 2, 3])

MOST_FEATURES = {1: 2**31 - 1, 2: 2_000_000_000, 3: 3_000_000}


def number(ranks: list[int], degree: int, sets: bool) -> int:
    """Return the number of conjunctions before the one with these ranks, in unbounded integers."""
    repeats = 0 if sets else 1
    a, *lower = sorted(ranks, reverse=True)
    n_before = sum(math.comb(a + repeats * (size - 1), size) for size in range(degree + 1) if size > 0) + 1
    if not lower:
        return n_before
    b, *lowest = lower
    if not lowest:
        return n_before + 1 + b
    return n_before + 1 + a + repeats + math.comb(b + repeats, 2) + lowest[0]


@every_basis
@degrees
def test_equals_the_list_written_down(degree, sets):
    expected = conjunctions_in_order(17, degree, sets)
    padded = [[*ranks, *[-1] * (3 - len(ranks))] for ranks in expected]
    decoded = decode(np.arange(len(expected), dtype=np.uint64), degree, sets)
    np.testing.assert_array_equal(decoded, padded)


@every_basis
@degrees
@given(data=st.data())
def test_any_conjunction_is_decoded_from_its_number(degree, sets, data):
    rank = st.integers(0, MOST_FEATURES[degree] - 1)
    ranks = data.draw(st.lists(rank, min_size=1, max_size=degree, unique=sets))
    key = np.array([number(ranks, degree, sets)], dtype=np.uint64)
    expected = sorted(ranks, reverse=True) + [-1] * (3 - len(ranks))
    assert decode(key, degree, sets).tolist() == [expected]


@every_basis
@degrees
def test_numbers_after_the_last_conjunction_are_refused(degree, sets):
    largest_rank = MOST_FEATURES[degree] - 1
    ranks = [largest_rank - i if sets else largest_rank for i in range(degree)]
    key = number(ranks, degree, sets)
    assert decode(np.array([key], dtype=np.uint64), degree, sets)[0, :degree].tolist() == ranks
    for too_large_key in (key + 1, 2**64 - 1):
        with pytest.raises(ValueError, match=f"has the number {too_large_key}"):
            decode(np.array([too_large_key], dtype=np.uint64), degree, sets)


def test_empty_lists_are_decoded_and_invalid_degrees_refused():
    assert decode(np.empty(0, dtype=np.uint64), 3, sets=True).shape == (0, 3)
    with pytest.raises(ValueError, match="degree must be 1, 2 or 3"):
        decode(np.zeros(1, dtype=np.uint64), 4, sets=True)
