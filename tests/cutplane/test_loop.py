"""The one-slack loop, compared with LIBLINEAR, with explicit pairs and with enumerated cuts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reference import cutting_planes as reference
from reference.loops import (
    RemoteRows,
    check_optimum,
    check_outcome,
    liblinear,
    make_rows,
    minimise,
    minimise_remote_risk,
    pack,
)
from unkernel import _core
from unkernel.cutplane.options import DualOptions

# --- Losses of single rows ---------------------------------------------------------------------------


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("intercept", [0.0, 1.0, -3.0])
@pytest.mark.parametrize("C", [0.003, 0.3, 3.0])
def test_margins_reach_the_optimum_of_liblinear(squared, intercept, C):
    X, y, rng = make_rows(1)
    signed_costs = y * rng.choice([0.5, 1.0, 2.0], len(y))
    oracle = _core.margin_oracle(signed_costs, squared=squared)
    solution = minimise(X, oracle, intercept=intercept, C=C)

    def risk(s):
        return reference.margin_risk(signed_costs, s, squared=squared)

    wide = reference.add_constant(X, intercept)
    check_outcome(solution, wide, C, risk, 1e-6)
    peer = liblinear(wide, y, C * np.abs(signed_costs), squared=squared)
    check_optimum(solution, reference.objective(peer, wide, C, risk), 1e-6)
    # P is strongly convex: similar objectives mean similar weights.
    assert np.sum((solution["weights"] - peer) ** 2) <= 2 * (1e-6 + 1e-8) * solution["objective"] * 4


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("intercept", [0.0, 2.0])
def test_cutting_planes_and_the_dual_solver_agree(squared, intercept):
    X, y, _ = make_rows(2, rows=200)
    y[::17] = 0.0  # rows without influence
    cut = minimise(X, _core.margin_oracle(y, squared=squared), intercept=intercept, C=0.5)
    options = DualOptions(tolerance=1e-7, max_epochs=10_000, seed=1, threads=1)
    arguments = {"rows": pack(X), "intercept": intercept, "squared": squared, "signed_costs": 0.5 * y}
    dual = _core.train_dual(options, **arguments, duals=np.zeros(0), on_progress=None)
    assert dual["converged"]
    assert dual["objective"] == pytest.approx(cut["objective"], rel=2e-6)
    assert cut["bound"] <= dual["objective"] * (1 + 1e-9)
    assert dual["bound"] <= cut["objective"] * (1 + 1e-9)
    wide = reference.add_constant(X, intercept)
    np.testing.assert_allclose(dual["weights"], wide.T @ dual["duals"], atol=1e-9)
    warm_started = _core.train_dual(options, **arguments, duals=dual["duals"], on_progress=None)
    assert warm_started["rounds"] <= 3
    assert warm_started["objective"] == pytest.approx(dual["objective"], rel=1e-6)


def test_the_dual_solver_refuses_arrays_of_wrong_length():
    X, y, _ = make_rows(2)
    options = DualOptions(tolerance=1e-3, max_epochs=10, seed=1, threads=1)
    arguments = {"rows": pack(X), "intercept": 0.0, "squared": False, "on_progress": None}
    for costs, duals in ((y[1:], np.zeros(0)), (y, np.zeros(3))):
        with pytest.raises(ValueError, match="per row"):
            _core.train_dual(options, **arguments, signed_costs=costs, duals=duals)
    with pytest.raises(TypeError, match="option 'seed' must be"):
        _core.train_dual(replace(options, seed=-1), **arguments, signed_costs=y, duals=np.zeros(0))


# --- Pairs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_pairs_reach_the_optimum_of_their_differences(grouped, weighted, C):
    X, _, rng = make_rows(3, rows=40, features=5)
    ranks = np.digitize(X[:, 0] + 0.5 * rng.normal(size=40), [-0.5, 0.5]).astype(np.int32)
    groups = rng.integers(0, 3, 40).astype(np.int32) if grouped else np.zeros(0, dtype=np.int32)
    weights = rng.choice([0.5, 1.0, 2.0], 40) if weighted else np.zeros(0)
    table = rng.choice([1.0, 3.0], (3, 3)) if weighted else np.zeros((0, 3))
    oracle = _core.ordinal_oracle(
        ranks,
        rank_count=3,
        groups=groups,
        weights=weights,
        pair_weights=table.ravel(),
        gains=np.zeros(0),
        discounts=np.zeros(0),
        accuracy=0.0,
    )
    solution = minimise(X, oracle, C=C)

    pairs = list(reference.ordered_pairs(ranks, groups, weights, table))
    total = weights.sum() if weighted else 40.0

    def risk(s):
        return reference.ordinal_risk(pairs, total, s)

    check_outcome(solution, X, C, risk, 1e-6)
    i, j, v = (np.array(column) for column in zip(*pairs, strict=True))
    sides = np.where(np.arange(len(pairs)) % 2 == 0, 1.0, -1.0)  # LIBLINEAR requires two classes
    differences = (X[i] - X[j]) * sides[:, None]
    costs = C * reference.pair_scale(pairs, total) * v
    peer = liblinear(differences, sides, costs, squared=False)
    check_optimum(solution, reference.objective(peer, X, C, risk), 1e-6)


# --- Measures ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [None, 3, 5])
@pytest.mark.parametrize("C", [0.05, 1.0])
def test_measures_are_at_their_optimum(k, C):
    """Every labeling is a cut, so the twin can check that no weights have an objective below the bound."""
    X, y, rng = make_rows(4, rows=9, features=4)
    positive = y > 0
    cuts = reference.measure_cuts(positive, k=k)
    oracle = _core.f1_oracle(positive) if k is None else _core.precision_oracle(positive, k)
    solution = minimise(X, oracle, C=C, tolerance=1e-8)

    def risk(s):
        return reference.largest_cut(cuts, s)

    check_outcome(solution, X, C, risk, 1e-8)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(100):
            elsewhere = solution["weights"] + size * rng.normal(size=4)
            assert reference.objective(elsewhere, X, C, risk) >= solution["bound"]


# --- A risk that is a list of cuts -------------------------------------------------------------------


class ListedCuts:
    """A remote risk with explicit cuts: R(w) = max(0, max_k offset_k - gradient_k'w)."""

    def __init__(self, gradients, offsets):
        self.gradients, self.offsets = gradients, offsets
        self.here = self.there = np.zeros(gradients.shape[1])

    def value(self, w):
        return max(0.0, float(np.max(self.offsets - self.gradients @ w)))

    def subgradient(self, w):
        """Return (offset, gradient) of the highest cut; zeros if none is above 0."""
        k = int(np.argmax(self.offsets - self.gradients @ w))
        if self.offsets[k] <= self.gradients[k] @ w:
            return 0.0, np.zeros(len(w))
        return float(self.offsets[k]), self.gradients[k]

    def at(self, step):
        return self.here + step * (self.there - self.here)

    def aim(self, weights):
        self.there = weights

    def along(self, steps):
        points = [self.at(t) for t in steps]
        return [(self.value(w), -float(self.subgradient(w)[1] @ (self.there - self.here))) for w in points]

    def cut(self, step):
        return self.subgradient(self.at(step))

    def move(self, step):
        self.here = self.at(step)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("C", [0.1, 1.0, 20.0])
def test_a_list_of_cuts_reaches_the_optimum_of_its_dual(seed, C):
    rng = np.random.default_rng(seed)
    gradients, offsets = rng.normal(size=(6, 4)), rng.normal(size=6) + 0.5
    optimum, masses = reference.solve_simplex_qp(gradients @ gradients.T, offsets, C)
    result = minimise_remote_risk(ListedCuts(gradients, offsets), 4, C=C, tolerance=1e-9)
    assert result["converged"]
    assert result["bound"] <= optimum * (1 + 1e-9)
    assert result["objective"] >= optimum * (1 - 1e-9)
    assert np.sum((result["weights"] - masses @ gradients) ** 2) <= 4e-9 * result["objective"] + 1e-12


# --- Remote rows ------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps_at_once", [1, 5])
def test_remote_rows_reach_the_same_optimum(steps_at_once):
    X, y, _ = make_rows(5)
    local = minimise(X, _core.margin_oracle(y, squared=False))
    risk = RemoteRows(X, y)
    remote = minimise_remote_risk(risk, X.shape[1], steps_at_once=steps_at_once)
    check_outcome(remote, X, 1.0, lambda s: reference.margin_risk(y, s, squared=False), 1e-6)
    assert remote["objective"] == pytest.approx(local["objective"], rel=2e-6)
    assert max(risk.requested_steps) == max(2, steps_at_once)


def test_a_remote_risk_can_choose_the_first_steps_of_line_searches():
    X, y, _ = make_rows(5)
    default_risk, risk = RemoteRows(X, y), RemoteRows(X, y)
    risk.first_steps = lambda: [0.0, 0.1, 0.3, 1.0]
    outcome, default_outcome = (
        minimise_remote_risk(each_risk, X.shape[1]) for each_risk in (risk, default_risk)
    )
    assert outcome["objective"] == pytest.approx(default_outcome["objective"], rel=2e-6)
    assert max(risk.requested_steps) == 4
    for steps in ([], [0.5, 1.0]):
        risk.first_steps = lambda steps=steps: steps
        with pytest.raises(ValueError, match="begins at a step of 0"):
            minimise_remote_risk(risk, X.shape[1])


def test_a_remote_risk_can_lower_the_accuracy_of_line_searches():
    X, y, _ = make_rows(5)
    default_risk, risk = RemoteRows(X, y), RemoteRows(X, y)
    risk.line_accuracy = 0.3
    outcome, default_outcome = (
        minimise_remote_risk(each_risk, X.shape[1]) for each_risk in (risk, default_risk)
    )
    assert outcome["objective"] == pytest.approx(default_outcome["objective"], rel=2e-6)
    assert (
        len(risk.requested_steps) / outcome["rounds"]
        < len(default_risk.requested_steps) / default_outcome["rounds"]
    )


@pytest.mark.parametrize("name", ["aim", "along", "cut", "move"])
def test_exceptions_of_a_remote_risk_are_passed_on(name):
    X, y, _ = make_rows(5)
    risk = RemoteRows(X, y)

    def fail(*_):
        raise ConnectionError(f"{name} is gone")

    setattr(risk, name, fail)
    with pytest.raises(ConnectionError, match=f"{name} is gone"):
        minimise_remote_risk(risk, X.shape[1])


def test_answers_of_a_remote_risk_are_checked():
    X, y, _ = make_rows(5)
    short_gradients, no_answers = RemoteRows(X, y), RemoteRows(X, y)
    short_gradients.cut = lambda _: (1.0, np.zeros(X.shape[1] - 1))
    no_answers.along = lambda _: []
    with pytest.raises(ValueError, match="wrong length"):
        minimise_remote_risk(short_gradients, X.shape[1])
    with pytest.raises(IndexError):
        minimise_remote_risk(no_answers, X.shape[1])
