"""The initial guess of cutting planes for many rows: local passes of dual coordinate descent."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from reference.selection import slow_after
from unkernel._core import Bundle, margin_oracle, minimise, pack_rows, train_dual
from unkernel.cutplane.options import DualOptions, LoopOptions

ROWS = 70_000  # several parts of several blocks each


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(3)
    X = sparse.random(ROWS, 300, density=0.02, format="csr", random_state=rng)
    scores = X @ rng.standard_normal(300)
    y = np.where(scores + 0.3 * rng.standard_normal(ROWS) > 0, 1.0, -1.0)
    costs = y * rng.choice([0.0, 0.5, 1.0, 3.0], size=ROWS)
    store = pack_rows(X, threads=1)
    return store, costs


def train_by_cuts(problem, *, squared, intercept, threads=1, rounds=1000, tol=1e-4, start=0.0):
    store, costs = problem
    dimension = store.features + (intercept != 0)
    bundle = Bundle(dimension, 100, of_rows=False)
    ended = minimise(
        LoopOptions(C=0.05, tolerance=tol, max_rounds=rounds, threads=threads),
        rows=store, oracle=margin_oracle(costs, squared=squared), intercept=intercept, bundle=bundle,
        start=np.full(dimension, start), on_progress=None, observe=None,
    )  # fmt: skip
    return ended, bundle


def find_optimum(problem, *, squared, intercept):
    store, costs = problem
    return train_dual(
        DualOptions(tolerance=1e-8, max_epochs=20_000, seed=0, threads=1),
        rows=store, intercept=intercept, squared=squared, signed_costs=0.05 * costs, duals=np.empty(0),
        on_progress=None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("squared", "intercept"), slow_after(2, [(False, 2.0), (True, 0.0), (False, 0.0), (True, 2.0)])
)
def test_bounds_hold_from_the_guess_on(problem, squared, intercept):
    best = find_optimum(problem, squared=squared, intercept=intercept)
    for rounds in (3, 4, 6, 1000):
        ended, _ = train_by_cuts(problem, squared=squared, intercept=intercept, rounds=rounds)
        assert ended["bound"] <= best["objective"] * (1 + 1e-9)
        assert ended["objective"] >= best["bound"] * (1 - 1e-9)
    assert ended["converged"]
    assert ended["objective"] <= best["objective"] * (1 + 1e-4)


@pytest.mark.parametrize("squared", [False, True])
def test_the_cut_of_the_guess_is_below_the_risk_everywhere(problem, squared):
    store, costs = problem
    _, bundle = train_by_cuts(problem, squared=squared, intercept=1.0, rounds=3)
    oracle = margin_oracle(costs, squared=squared)
    rng = np.random.default_rng(0)
    for size in (0.0, 0.1, 1.0, 30.0):
        w = size * rng.standard_normal(bundle.dimension)
        scores = store.scores(w, 1.0, 1)
        risk, _ = oracle.along(scores, scores, 0.0, 1)
        for k, offset in enumerate(bundle.offsets):
            assert risk >= offset - bundle.gradient(k) @ w - 1e-9 * (risk + abs(offset))


def test_the_guess_counts_its_passes(problem):
    """A guess counts as two passes over the rows, before the first round; a given start needs no guess."""
    with_guess, _ = train_by_cuts(problem, squared=False, intercept=0.0, rounds=1, tol=1e-9)
    without_guess, _ = train_by_cuts(problem, squared=False, intercept=0.0, rounds=1, tol=1e-9, start=1e-9)
    assert with_guess["rounds"] == 3
    assert without_guess["rounds"] == 1
    assert with_guess["bound"] > without_guess["bound"]


def test_the_result_does_not_depend_on_the_number_of_threads(problem):
    expected, _ = train_by_cuts(problem, squared=False, intercept=1.0)
    for threads in (2, 3, 7):
        result, _ = train_by_cuts(problem, squared=False, intercept=1.0, threads=threads)
        np.testing.assert_array_equal(expected["weights"], result["weights"])
