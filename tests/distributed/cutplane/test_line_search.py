"""Losses that are looked up in the table of a line equal the losses of the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unkernel._core import margin_oracle
from unkernel.distributed.cutplane.line_search import CELLS, MarginDeficits, look_up_steps, tabulate_line


@given(seed=st.integers(0, 10**6), rows=st.integers(1, 60), squared=st.booleans())
def test_a_table_equals_the_oracle(seed: int, rows: int, squared: bool) -> None:
    generator = np.random.default_rng(seed)
    start, target = np.round(generator.normal(size=(2, rows)) * 2, 1)  # with ties
    costs = generator.choice([-2.0, -1.0, 0.0, 0.5, 1.0], rows)
    oracle = margin_oracle(costs, squared=squared)
    table = tabulate_line(MarginDeficits.between(start, target, costs), squared)
    steps = np.array([0.0, 1.0, *generator.integers(0, CELLS + 1, 30) / CELLS])
    points = look_up_steps(table, steps)
    assert points is not None
    for step, (value, slope) in zip(steps.tolist(), points, strict=True):
        expected, _ = oracle.along(start, target, step, 1)
        assert value == pytest.approx(expected, abs=1e-9)
        # At a corner of the sum, any slope between the slopes on both sides is accepted.
        slope_before, slope_after = (
            oracle.along(start, target, step + shift, 1)[1] for shift in (-1e-7, 1e-7)
        )
        assert slope_before - 1e-4 <= slope <= slope_after + 1e-4


def test_other_steps_are_not_in_the_table() -> None:
    table = np.zeros(2 * (CELLS + 1))
    assert look_up_steps(table, np.array([0.5, 0.3])) is None
    assert look_up_steps(table, np.array([2.0])) is None
    assert look_up_steps(table, np.array([0.25])) == [(0.0, 0.0)]
