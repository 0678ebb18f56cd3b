"""Counts on a grid of scores give an upper bound of the risk of all pairs, and cuts a lower bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import cutting_planes as pairs_twin
from reference import score_grids as twin
from unkernel._core import RowsOnGrid
from unkernel.cutplane.rankings import weigh_rank_pairs
from unkernel.distributed.cutplane.score_grids import Grid, coarsen_counts, compute_grid_risk

RANKS = 3


def make_scored_rows(seed: int, rows: int) -> tuple[Any, ...]:
    """Return ranks, weights, and scores at both ends of a line, some of which are equal or on edges."""
    generator = np.random.default_rng(seed)
    ranks = generator.integers(0, RANKS, rows).astype(np.int32)
    weights = generator.choice([0.0, 0.5, 1.0, 2.0], rows)
    start, target = np.round(generator.normal(scale=3.0, size=(2, rows)) * 4) / 4 + generator.choice(
        [0.0, 0.01], (2, rows)
    )
    return ranks, weights, start, target


GRID = Grid(centre=0.3, width=2.0, cells=8, levels=4)


def at_step(start: np.ndarray, target: np.ndarray, step: float) -> np.ndarray:
    return start + step * (target - start)


def test_edges() -> None:
    np.testing.assert_allclose(GRID.edges() + GRID.centre, twin.list_edges(0.3, 2.0, 8, 4), atol=1e-12)
    assert len(GRID.edges()) == GRID.size


@given(seed=st.integers(0, 10**6), rows=st.integers(0, 40), step=st.sampled_from([0.0, 0.3, 1.0, 1.7]))
def test_counts_and_interpolation(seed: int, rows: int, step: float) -> None:
    ranks, weights, start, target = make_scored_rows(seed, rows)
    edges, scores = twin.list_edges(0.3, 2.0, 8, 4), at_step(start, target, step)
    grid_rows = RowsOnGrid(ranks, rank_count=RANKS, weights=weights)
    outside, counts, changes = grid_rows.count(start, target, step=step, grid=GRID, threads=2)
    assert outside == np.sum((scores < edges[0]) | (scores > edges[-1]))
    if outside:
        return
    expected = twin.counts(edges, ranks, RANKS, weights, scores)
    np.testing.assert_allclose(counts.reshape(RANKS, -1), expected, atol=1e-9)
    moved = twin.counts(edges, ranks, RANKS, weights * (target - start), scores)
    np.testing.assert_allclose(changes.reshape(RANKS, -1), moved, atol=1e-9)
    table = np.random.default_rng(seed).normal(size=expected.shape)
    values = grid_rows.interpolate(start, target, step=step, grid=GRID, table=table.ravel(), threads=2)
    for k in range(rows):
        share = sum(table[ranks[k], e] * part for e, part in twin.shares(edges, scores[k]).items())
        assert values[k] == pytest.approx(weights[k] * share, abs=1e-8)


@given(seed=st.integers(0, 10**6))
def test_the_risk_on_edges_equals_the_risk_of_all_pairs_of_edges(seed: int) -> None:
    grid = Grid(0.0, 1.0, 2, 2)
    generator = np.random.default_rng(seed)
    counts = generator.choice([0.0, 0.5, 1.0, 3.0], (RANKS, grid.size))
    weights = np.tri(RANKS, k=-1) * generator.choice([0.0, 1.0, 2.0], (RANKS, RANKS))
    risks = compute_grid_risk(grid, counts, weights)
    value, offset, coefficients = twin.risk(twin.list_edges(0.0, 1.0, 2, 2), counts, weights)
    assert risks.value == pytest.approx(value, abs=1e-9)
    assert risks.offset == pytest.approx(offset, abs=1e-9)
    with_rows = counts > 0  # other entries need no coefficients
    np.testing.assert_allclose(risks.coefficients[with_rows], coefficients[with_rows], atol=1e-9)
    changes = np.where(with_rows, generator.normal(size=counts.shape), 0.0)
    assert risks.slope(changes) == pytest.approx(-np.sum(coefficients * changes), abs=1e-9)
    coarse = compute_grid_risk(grid.coarser(), coarsen_counts(counts), weights)
    assert coarse.value >= risks.value - 1e-9


@given(seed=st.integers(0, 10**6), rows=st.integers(3, 30), cells=st.sampled_from([2, 8, 64]))
def test_the_value_and_the_cut_bound_the_risk(seed: int, rows: int, cells: int) -> None:
    """The value is at least the risk; the cut is at most the risk, at these scores and at others."""
    ranks, weights, start, target = make_scored_rows(seed, rows)
    pairs = list(pairs_twin.ordered_pairs(ranks, (), weights))
    totals = np.bincount(ranks, weights, minlength=RANKS)
    if sum(v for _, _, v in pairs) == 0:
        with pytest.raises(ValueError, match="no pair"):
            weigh_rank_pairs(np.arange(RANKS), totals, np.ones(RANKS, int), None)
        return
    scaled = weigh_rank_pairs(np.arange(RANKS), totals, np.ones(RANKS, int), None)
    grid, step = Grid(0.1, 4.0, cells, 6), 0.4
    grid_rows = RowsOnGrid(ranks, rank_count=RANKS, weights=weights)
    outside, counts, _ = grid_rows.count(start, target, step=step, grid=grid, threads=1)
    assert outside == 0
    risks = compute_grid_risk(grid, counts.reshape(RANKS, -1), scaled)
    table = risks.coefficients.ravel()
    c = grid_rows.interpolate(start, target, step=step, grid=grid, table=table, threads=1)
    scores = at_step(start, target, step)
    risk = pairs_twin.ordinal_risk(pairs, weights.sum(), scores)
    assert risks.value >= risk - 1e-9
    assert risks.offset - c @ scores <= risk + 1e-9
    if cells == 64:
        assert risks.value <= risk + weights.sum() / 16  # no pair is overestimated by more than a cell
        assert risks.offset - c @ scores >= risk - weights.sum() / 16
    for _ in range(5):
        other_scores = np.random.default_rng(seed).normal(scale=3.0, size=rows)
        assert (
            risks.offset - c @ other_scores
            <= pairs_twin.ordinal_risk(pairs, weights.sum(), other_scores) + 1e-9
        )


def test_scores_that_are_not_numbers_are_outside() -> None:
    grid_rows = RowsOnGrid(np.zeros(3, np.int32), rank_count=1, weights=np.empty(0))
    scores = np.array([np.nan, np.inf, 1.0])
    assert grid_rows.count(scores, scores, step=0.0, grid=GRID, threads=1)[0] == 2


@pytest.mark.parametrize(
    ("ranks", "weights", "message"), [([0, 3], [], "outside"), ([-1], [], "outside"), ([0], [1, 1], "weight")]
)
def test_ranks_that_do_not_fit(ranks: list[int], weights: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RowsOnGrid(np.array(ranks, np.int32), rank_count=3, weights=np.array(weights, float))


def test_scores_and_tables_that_do_not_fit() -> None:
    grid_rows = RowsOnGrid(np.zeros(3, np.int32), rank_count=1, weights=np.empty(0))
    scores = np.zeros(3)
    with pytest.raises(ValueError, match="one score"):
        grid_rows.count(scores[1:], scores, step=0.0, grid=GRID, threads=1)
    with pytest.raises(ValueError, match="grid"):
        grid_rows.count(scores, scores, step=0.0, grid=Grid(0.0, 0.0, 1, 1), threads=1)
    with pytest.raises(ValueError, match="table"):
        grid_rows.interpolate(scores, scores, step=0.0, grid=GRID, table=scores, threads=1)
