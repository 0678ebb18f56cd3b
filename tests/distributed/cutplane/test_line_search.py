"""The table of a line says what the oracle says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unkernel._core import margin_oracle
from unkernel.distributed.cluster.packed_vectors import Answer, added, packed
from unkernel.distributed.cutplane.line_search import CELLS, Lacks, line_table, points_in_table


@given(seed=st.integers(0, 10**6), rows=st.integers(1, 60), squared=st.booleans())
def test_a_table_equals_the_oracle(seed: int, rows: int, squared: bool) -> None:
    generator = np.random.default_rng(seed)
    here, there = np.round(generator.normal(size=(2, rows)) * 2, 1)  # with ties
    costs = generator.choice([-2.0, -1.0, 0.0, 0.5, 1.0], rows)
    oracle = margin_oracle(costs, squared=squared)
    table = line_table(Lacks.of(here, there, costs), squared)
    steps = np.array([0.0, 1.0, *generator.integers(0, CELLS + 1, 30) / CELLS])
    points = points_in_table(table, steps)
    assert points is not None
    for step, (value, slope) in zip(steps.tolist(), points, strict=True):
        expected, _ = oracle.along(here, there, step, 1)
        assert value == pytest.approx(expected, abs=1e-9)
        # Where the sum has a corner, any slope between those on both sides will do.
        before, after = (oracle.along(here, there, step + shift, 1)[1] for shift in (-1e-7, 1e-7))
        assert before - 1e-4 <= slope <= after + 1e-4


def test_other_steps_are_not_in_the_table() -> None:
    table = np.zeros(2 * (CELLS + 1))
    assert points_in_table(table, np.array([0.5, 0.3])) is None
    assert points_in_table(table, np.array([2.0])) is None
    assert points_in_table(table, np.array([0.25])) == [(0.0, 0.0)]


@given(st.lists(st.sampled_from([0.0, 0.0, 0.0, 1.5, -2.0, 1e-300]), min_size=1, max_size=50))
def test_packed_vectors_are_exact_and_never_larger(values: list[float]) -> None:
    vector = np.array(values)
    message = packed(vector)
    assert message.nbytes <= vector.nbytes
    np.testing.assert_array_equal(message.unpacked(), vector)


def test_sums_of_sparse_and_dense_answers() -> None:
    sparse_one, dense = np.array([0.0, 0.0, 0.0, 2.0]), np.array([1.0, 2.0, 3.0, 4.0])
    total = added(Answer(packed(sparse_one)), Answer(packed(dense)), Answer(packed(sparse_one)))
    assert total.vector is not None
    np.testing.assert_array_equal(total.vector.unpacked(), [1.0, 2.0, 3.0, 8.0])
    lost = added(Answer(packed(dense)), Answer(None, (1,)), Answer(None, (2,)))
    assert lost.vector is None
    assert lost.unprepared == (1, 2)
