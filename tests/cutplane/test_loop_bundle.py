"""The one-slack loop: bundles of cuts, observers, threads and packed rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from reference import cutting_planes as reference
from reference.loops import (
    RemoteRows,
    check_outcome,
    make_rows,
    minimise,
    minimise_remote_risk,
    pack,
)
from unkernel import _core

# --- The bundle --------------------------------------------------------------------------------------


@pytest.mark.parametrize("most_cuts", [4, 6, 200])
@pytest.mark.parametrize("squared", [False, True])
def test_few_cuts_converge_and_bounds_hold_on_the_way(most_cuts, squared):
    X, y, _ = make_rows(6)
    oracle = _core.margin_oracle(y, squared=squared)
    best = minimise(X, oracle, tolerance=1e-10, C=0.2)
    history = []
    solution = minimise(
        X,
        oracle,
        C=0.2,
        tolerance=1e-4,
        most_cuts=most_cuts,
        max_rounds=20_000,
        observe=lambda weights, objective, bound, rounds: history.append((weights, objective, bound, rounds)),
    )
    assert solution["converged"]
    assert [rounds for *_, rounds in history] == list(range(1, solution["rounds"] + 1))
    objectives, bounds = (np.array([entry[k] for entry in history]) for k in (1, 2))
    assert (np.diff(objectives) <= 0).all()
    assert (np.diff(bounds) >= 0).all()
    assert (bounds <= best["objective"] * (1 + 1e-9)).all()
    assert (objectives >= best["bound"] * (1 - 1e-9)).all()
    for weights, objective, *_ in history[:: max(1, len(history) // 20)]:
        expected = reference.objective(
            weights, X, 0.2, lambda s: reference.margin_risk(y, s, squared=squared)
        )
        assert objective == pytest.approx(expected, rel=1e-9)


def test_a_bundle_never_exceeds_its_limit():
    X, y, _ = make_rows(6)
    bundle = _core.Bundle(X.shape[1], 5, of_rows=False)
    sizes = []
    minimise(
        X,
        _core.margin_oracle(y, squared=False),
        bundle=bundle,
        max_rounds=60,
        tolerance=0.0,
        observe=lambda *_: sizes.append(len(bundle)),
    )
    assert max(sizes) == 5
    assert bundle.masses.sum() <= 1.0 + 1e-12


def test_cuts_can_be_reused_for_another_cost():
    X, y, _ = make_rows(7, rows=150)
    oracle = _core.margin_oracle(y, squared=False)
    bundle = _core.Bundle(X.shape[1], 200, of_rows=False)
    initial = minimise(X, oracle, bundle=bundle, C=0.1)
    rounds = []
    for C in (0.13, 0.05, 1.0):
        cold = minimise(X, oracle, C=C)
        warm = minimise(X, oracle, C=C, bundle=bundle, start=initial["weights"])
        check_outcome(warm, X, C, lambda s: reference.margin_risk(y, s, squared=False), 1e-6)
        assert warm["objective"] == pytest.approx(cold["objective"], rel=2e-6)
        rounds.append((warm["rounds"], cold["rounds"]))
    assert np.less(*np.sum(rounds, axis=0))


def test_a_run_can_resume_from_saved_cuts():
    X, y, _ = make_rows(8)
    oracle = _core.margin_oracle(y, squared=True)
    bundle = _core.Bundle(X.shape[1], 200, of_rows=False)
    complete = minimise(X, oracle, bundle=bundle)
    saved = [(bundle.gradient(k), bundle.offsets[k]) for k in range(len(bundle))], bundle.masses
    restored = _core.Bundle(X.shape[1], 200, of_rows=False)
    for gradient, offset in saved[0]:
        restored.add(gradient, offset)
    restored.set_masses(saved[1])
    assert np.array_equal(restored.masses, bundle.masses)
    resumed = minimise(X, oracle, bundle=restored, start=complete["weights"])
    assert resumed["converged"]
    assert resumed["rounds"] <= 1
    assert resumed["bound"] == pytest.approx(complete["bound"], rel=1e-6)
    interrupted = _core.Bundle(X.shape[1], 200, of_rows=False)
    part = minimise(X, oracle, bundle=interrupted, max_rounds=complete["rounds"] // 2)
    assert not part["converged"]
    continued = minimise(X, oracle, bundle=interrupted, start=part["weights"])
    assert continued["objective"] == pytest.approx(complete["objective"], rel=2e-6)
    assert continued["rounds"] < complete["rounds"]


def test_a_bundle_refuses_arrays_of_wrong_length():
    bundle = _core.Bundle(3, 10, of_rows=False)
    with pytest.raises(ValueError, match="one coefficient per weight"):
        bundle.add(np.zeros(4), 1.0)
    with pytest.raises(ValueError, match="one mass per cut"):
        bundle.set_masses(np.ones(1))
    with pytest.raises(IndexError, match="no such cut"):
        bundle.gradient(0)
    X, y, _ = make_rows(1)
    with pytest.raises(ValueError, match="differ in dimension"):
        minimise(X, _core.margin_oracle(y, squared=False), bundle=bundle)
    with pytest.raises(ValueError, match="one label per row"):
        minimise(X, _core.margin_oracle(y[1:], squared=False))


# --- Observers, threads and progress -----------------------------------------------------------------


def test_exceptions_of_observers_are_passed_on():
    X, y, _ = make_rows(9)
    observed_rounds = []

    def fail(_weights, _objective, _bound, rounds):
        observed_rounds.append(rounds)
        if rounds == 3:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        minimise(X, _core.margin_oracle(y, squared=False), observe=fail)
    assert observed_rounds == [1, 2, 3]


def test_exceptions_of_progress_callbacks_end_training():
    X, y, _ = make_rows(9)
    looks = []

    def on_progress(progress):
        if progress.stage:
            looks.append((progress.stage, progress.problem, progress.problems))
            raise RuntimeError("no more")

    options = {
        "on_progress": on_progress,
        "tolerance": 0.0,
        "max_rounds": 10**6,
    }
    with pytest.raises(RuntimeError, match="no more"):
        minimise(X, _core.margin_oracle(y, squared=False), problem=2, problems=5, **options)
    with pytest.raises(RuntimeError, match="no more"):
        minimise_remote_risk(RemoteRows(X, y), X.shape[1], **options)
    assert looks == [("training", 2, 5), ("training", 0, 1)]


def test_runs_that_reach_max_rounds_are_not_converged():
    X, y, _ = make_rows(10)
    oracle = _core.margin_oracle(y, squared=False)
    for rounds in (0, 1, 4):
        solution = minimise(X, oracle, max_rounds=rounds, tolerance=1e-12)
        assert not solution["converged"]
        assert solution["rounds"] == rounds
        assert solution["bound"] < solution["objective"]
    assert minimise(X, oracle, max_rounds=0)["objective"] == len(y)


def test_problems_without_costs_are_solved_at_once():
    X, y, _ = make_rows(10)
    solution = minimise(X, _core.margin_oracle(0.0 * y, squared=False))
    assert solution["converged"]
    assert solution["objective"] == solution["rounds"] == 0
    assert not solution["weights"].any()


@pytest.mark.parametrize("X", [np.zeros((4, 2)), np.ones((4, 1))])
def test_equal_rows_have_zero_weights(X):
    """Rows of equal values have cuts without a gradient: risk and bound are constant."""
    solution = minimise(X, _core.margin_oracle(np.array([1.0, -1.0, 1.0, -1.0]), squared=False), C=0.5)
    assert solution["converged"]
    assert solution["objective"] == pytest.approx(2.0)
    np.testing.assert_allclose(solution["weights"], 0.0, atol=1e-6)


@pytest.mark.parametrize("squared", [False, True])
def test_objectives_that_are_not_finite_are_refused(squared):
    X, y, _ = make_rows(11)
    with pytest.raises(ValueError, match="not finite"):
        minimise(X, _core.margin_oracle(1e307 * y, squared=squared))
    with pytest.raises(ValueError, match="not finite"):
        minimise(X, _core.margin_oracle(y, squared=squared), C=1e308)
    with pytest.raises(ValueError, match="not finite"):
        minimise(X, _core.margin_oracle(y, squared=squared), start=np.full(X.shape[1], 1e200))


def test_an_oracle_can_be_used_repeatedly():
    """What an oracle caches in one run must not affect the next run."""
    X, y, _ = make_rows(12)
    oracle = _core.margin_oracle(y, squared=False)
    expected = minimise(X, oracle)
    minimise(3 * X, oracle)
    assert np.array_equal(minimise(X, oracle)["weights"], expected["weights"])


# --- Threads -----------------------------------------------------------------------------------------


def many_rows(kind, rng, rows):
    y = np.where(rng.random(rows) < 0.5, 1.0, -1.0)
    X = sparse.random(rows, 40, density=0.2, random_state=1, format="csr")
    X[:, 0] = sparse.csr_matrix((y * (rng.random(rows) < 0.8)).reshape(-1, 1))
    if kind == "ordinal":
        ranks = (y > 0).astype(np.int32) + (rng.random(rows) < 0.2).astype(np.int32)
        groups = rng.integers(0, 100, rows).astype(np.int32)
        oracle = _core.ordinal_oracle(
            ranks,
            rank_count=3,
            groups=groups,
            weights=rng.random(rows),
            pair_weights=np.zeros(0),
            gains=np.zeros(0),
            discounts=np.zeros(0),
            accuracy=0.0,
        )
    elif kind == "f1":
        oracle = _core.f1_oracle(y > 0)
    else:
        oracle = _core.margin_oracle(y * rng.random(rows), squared=kind == "squared_hinge")
    return X.tocsr(), oracle


@pytest.mark.filterwarnings("ignore:Changing the sparsity structure")
@pytest.mark.parametrize("kind", ["hinge", "squared_hinge", "ordinal", "f1"])
def test_threads_do_not_change_a_bit(kind):
    X, oracle = many_rows(kind, np.random.default_rng(13), 20_000)
    runs = [
        minimise(pack(X, threads=threads), oracle, threads=threads, C=1e-3, tolerance=1e-2, intercept=1.0)
        for threads in (1, 2, 3)
    ]
    assert runs[0]["rounds"] > 1
    for run in runs[1:]:
        assert np.array_equal(run["weights"], runs[0]["weights"])
        assert (run["objective"], run["bound"]) == (runs[0]["objective"], runs[0]["bound"])


# --- Packed rows -------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [0.0, 1.5])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_packed_rows_multiply_like_the_matrix(intercept, index):
    rng = np.random.default_rng(14)
    X = sparse.random(5000, 30, density=0.3, random_state=2, format="csr")
    X.indptr, X.indices = X.indptr.astype(index), X.indices.astype(index)
    rows = _core.pack_rows(X, threads=2)
    assert (rows.rows, rows.features, rows.entries) == (5000, 30, X.nnz)
    wide = reference.add_constant(X.toarray(), intercept)
    w, c = rng.normal(size=wide.shape[1]), rng.normal(size=5000)
    np.testing.assert_allclose(rows.scores(w, intercept, 2), wide @ w, atol=1e-12)
    np.testing.assert_allclose(rows.transposed(c, intercept, 2), wide.T @ c, atol=1e-10)
    with pytest.raises(ValueError, match="weights have the wrong length"):
        rows.scores(w[1:], intercept, 1)
    with pytest.raises(ValueError, match="coefficients have the wrong length"):
        rows.transposed(c[1:], intercept, 1)


def test_packed_values_keep_all_their_digits():
    X, *_ = make_rows(15)
    w = np.random.default_rng(15).normal(size=X.shape[1])
    np.testing.assert_allclose(pack(X).scores(w, 0.0, 1), X @ w, rtol=1e-13, atol=1e-13)
    assert pack(X).nbytes > pack(X.astype(np.float32).astype(float)).nbytes  # four bytes hold these exactly
