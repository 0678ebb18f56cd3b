"""The one-slack loop against LIBLINEAR, explicit pairs, and piecewise problems that are solved by listing."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from reference import cutting_planes as reference
from unkernel import _core


def pack(X, *, may_round=False, threads=1):
    X = sparse.csr_matrix(X)
    return _core.pack_rows(
        offsets=X.indptr,
        columns=X.indices,
        values=X.data.astype(float),
        features=X.shape[1],
        may_round=may_round,
        threads=threads,
    )


def minimise(X, oracle, **options):
    """The core's loop with what most tests want; dense or sparse rows, or packed ones."""
    rows = X if isinstance(X, _core.RowStore) else pack(X)
    intercept = options.pop("intercept", 0.0)
    dimension = rows.features + bool(intercept)
    loop = {
        "bundle": _core.Bundle(dimension, options.pop("most_cuts", 200)),
        "start": np.zeros(dimension),
        "C": 1.0,
        "tolerance": 1e-6,
        "max_rounds": 2000,
        "threads": 1,
        "problem": 0,
        "problems": 1,
        "look": None,
        "observe": None,
    }
    return _core.minimise(rows=rows, oracle=oracle, intercept=intercept, **{**loop, **options})


def minimise_distant(risk, dimension, **options):
    loop = {
        "steps_at_once": 1,
        "bundle": _core.Bundle(dimension, 200),
        "start": np.zeros(dimension),
        "C": 1.0,
        "tolerance": 1e-6,
        "max_rounds": 2000,
        "threads": 1,
        "problem": 0,
        "problems": 1,
        "look": None,
        "observe": None,
    }
    return _core.minimise_distant(risk=risk, **{**loop, **options})


def make_rows(seed, *, rows=80, features=6):
    """Noisy labels, so that some rows lie on the wrong side whatever the weights are."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)) * (rng.random((rows, features)) < 0.7)
    y = np.where(X[:, 0] - X[:, 1] + 0.7 * rng.normal(size=rows) > 0.1, 1.0, -1.0)
    return X, y, rng


def check_outcome(found, X, C, risk, tolerance):
    """What is reported is true of the weights, and the gap is what was asked for."""
    assert found["converged"]
    assert found["objective"] == pytest.approx(reference.objective(found["weights"], X, C, risk), rel=1e-9)
    assert 0.0 <= found["bound"] <= found["objective"] * (1 + 1e-9)
    assert found["objective"] - found["bound"] <= tolerance * found["objective"]


def check_optimum(found, optimum, tolerance):
    """`optimum` is an objective that somebody else reached: a shade above the true one."""
    assert found["bound"] <= optimum * (1 + 1e-9)
    assert found["objective"] <= optimum / (1 - tolerance) + 1e-9 * optimum


def liblinear(X, y, costs, *, squared):
    """Weights of LIBLINEAR at its most patient. It has no constant feature of its own here."""
    loss = "squared_hinge" if squared else "hinge"
    peer = LinearSVC(
        loss=loss, dual=True, C=1.0, tol=1e-10, fit_intercept=False, max_iter=200_000, random_state=0
    )
    return peer.fit(X, y, sample_weight=costs).coef_[0]


# --- Rows by themselves ------------------------------------------------------------------------------


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("intercept", [0.0, 1.0, -3.0])
@pytest.mark.parametrize("C", [0.003, 0.3, 3.0])
def test_margins_reach_the_optimum_of_liblinear(squared, intercept, C):
    X, y, rng = make_rows(1)
    signed_costs = y * rng.choice([0.5, 1.0, 2.0], len(y))
    oracle = _core.margin_oracle(signed_costs, squared=squared)
    found = minimise(X, oracle, intercept=intercept, C=C)

    def risk(s):
        return reference.margin_risk(signed_costs, s, squared=squared)

    wide = reference.with_constant(X, intercept)
    check_outcome(found, wide, C, risk, 1e-6)
    peer = liblinear(wide, y, C * np.abs(signed_costs), squared=squared)
    check_optimum(found, reference.objective(peer, wide, C, risk), 1e-6)
    # P is strongly convex: weights are near where objectives are.
    assert np.sum((found["weights"] - peer) ** 2) <= 2 * (1e-6 + 1e-8) * found["objective"] * 4


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("intercept", [0.0, 2.0])
def test_cutting_planes_and_the_dual_solver_agree(squared, intercept):
    X, y, _ = make_rows(2, rows=200)
    y[::17] = 0.0  # rows that do not count
    cut = minimise(X, _core.margin_oracle(y, squared=squared), intercept=intercept, C=0.5)
    options = {
        "tolerance": 1e-7,
        "max_epochs": 10_000,
        "seed": 1,
        "threads": 1,
        "problem": 0,
        "problems": 1,
        "look": None,
    }
    dual = _core.train_dual(
        rows=pack(X), intercept=intercept, squared=squared, signed_costs=0.5 * y, duals=np.zeros(0), **options
    )
    assert dual["converged"]
    assert dual["objective"] == pytest.approx(cut["objective"], rel=2e-6)
    assert cut["bound"] <= dual["objective"] * (1 + 1e-9)
    assert dual["bound"] <= cut["objective"] * (1 + 1e-9)
    wide = reference.with_constant(X, intercept)
    np.testing.assert_allclose(dual["weights"], wide.T @ dual["duals"], atol=1e-9)
    again = _core.train_dual(
        rows=pack(X),
        intercept=intercept,
        squared=squared,
        signed_costs=0.5 * y,
        duals=dual["duals"],
        **options,
    )
    assert again["rounds"] <= 3
    assert again["objective"] == pytest.approx(dual["objective"], rel=1e-6)


def test_the_dual_solver_refuses_what_does_not_fit():
    X, y, _ = make_rows(2)
    rest = {
        "tolerance": 1e-3,
        "max_epochs": 10,
        "seed": 1,
        "threads": 1,
        "problem": 0,
        "problems": 1,
        "look": None,
    }
    for costs, duals in ((y[1:], np.zeros(0)), (y, np.zeros(3))):
        with pytest.raises(ValueError, match="differ in number"):
            _core.train_dual(
                rows=pack(X), intercept=0.0, squared=False, signed_costs=costs, duals=duals, **rest
            )


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
        ranks, rank_count=3, groups=groups, weights=weights, pair_weights=table.ravel(), accuracy=0.0
    )
    found = minimise(X, oracle, C=C)

    pairs = list(reference.ordered_pairs(ranks, groups, weights, table))
    total = weights.sum() if weighted else 40.0

    def risk(s):
        return reference.ordinal_risk(pairs, total, s)

    check_outcome(found, X, C, risk, 1e-6)
    i, j, v = (np.array(column) for column in zip(*pairs, strict=True))
    sides = np.where(np.arange(len(pairs)) % 2 == 0, 1.0, -1.0)  # LIBLINEAR wants two classes
    differences = (X[i] - X[j]) * sides[:, None]
    costs = C * reference.pair_scale(pairs, total) * v
    peer = liblinear(differences, sides, costs, squared=False)
    check_optimum(found, reference.objective(peer, X, C, risk), 1e-6)


# --- Measures ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [None, 3, 5])
@pytest.mark.parametrize("C", [0.05, 1.0])
def test_measures_are_at_their_optimum(k, C):
    """All labelings are the cuts of a piecewise problem: nobody finds a point below the bound."""
    X, y, rng = make_rows(4, rows=9, features=4)
    positive = y > 0
    cuts = reference.measure_cuts(positive, k=k)
    oracle = _core.f1_oracle(positive) if k is None else _core.precision_oracle(positive, k)
    found = minimise(X, oracle, C=C, tolerance=1e-8)

    def risk(s):
        return reference.largest_cut(cuts, s)

    check_outcome(found, X, C, risk, 1e-8)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(100):
            elsewhere = found["weights"] + size * rng.normal(size=4)
            assert reference.objective(elsewhere, X, C, risk) >= found["bound"]


# --- A risk that is a list of cuts -------------------------------------------------------------------


class ListedCuts:
    """R(w) = max(0, max_k offset_k - gradient_k'w), as a distant risk."""

    def __init__(self, gradients, offsets):
        self.gradients, self.offsets = gradients, offsets
        self.here = self.there = np.zeros(gradients.shape[1])

    def value(self, w):
        return max(0.0, float(np.max(self.offsets - self.gradients @ w)))

    def subgradient(self, w):
        """(offset, gradient) of the highest cut; zeros where none is above 0."""
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
    found = minimise_distant(ListedCuts(gradients, offsets), 4, C=C, tolerance=1e-9)
    assert found["converged"]
    assert found["bound"] <= optimum * (1 + 1e-9)
    assert found["objective"] >= optimum * (1 - 1e-9)
    assert np.sum((found["weights"] - masses @ gradients) ** 2) <= 4e-9 * found["objective"] + 1e-12


# --- Rows elsewhere ----------------------------------------------------------------------------------


class DistantRows:
    """Rows and a loss in plain numpy."""

    def __init__(self, X, signed_costs):
        self.X, self.signed_costs = X, signed_costs
        self.here = self.there = np.zeros(len(X))
        self.asked = []

    def at(self, step):
        return self.here + step * (self.there - self.here)

    def aim(self, weights):
        self.there = self.X @ weights

    def point(self, step):
        c = reference.margin_cut(self.signed_costs, self.at(step), squared=False)[1]
        return reference.margin_risk(self.signed_costs, self.at(step), squared=False), -c @ (
            self.there - self.here
        )

    def along(self, steps):
        self.asked.append(len(steps))
        return np.array([self.point(step) for step in steps])

    def cut(self, step):
        offset, c = reference.margin_cut(self.signed_costs, self.at(step), squared=False)
        return offset, self.X.T @ c

    def move(self, step):
        self.here = self.at(step)


@pytest.mark.parametrize("steps_at_once", [1, 5])
def test_distant_rows_reach_the_same_optimum(steps_at_once):
    X, y, _ = make_rows(5)
    near = minimise(X, _core.margin_oracle(y, squared=False))
    risk = DistantRows(X, y)
    far = minimise_distant(risk, X.shape[1], steps_at_once=steps_at_once)
    check_outcome(far, X, 1.0, lambda s: reference.margin_risk(y, s, squared=False), 1e-6)
    assert far["objective"] == pytest.approx(near["objective"], rel=2e-6)
    assert max(risk.asked) == max(2, steps_at_once)


@pytest.mark.parametrize("name", ["aim", "along", "cut", "move"])
def test_what_a_distant_risk_raises_comes_back(name):
    X, y, _ = make_rows(5)
    risk = DistantRows(X, y)

    def fail(*_):
        raise ConnectionError(f"{name} is gone")

    setattr(risk, name, fail)
    with pytest.raises(ConnectionError, match=f"{name} is gone"):
        minimise_distant(risk, X.shape[1])


def test_what_a_distant_risk_answers_must_fit():
    X, y, _ = make_rows(5)
    short, few = DistantRows(X, y), DistantRows(X, y)
    short.cut = lambda _: (1.0, np.zeros(X.shape[1] - 1))
    few.along = lambda _: []
    with pytest.raises(ValueError, match="wrong length"):
        minimise_distant(short, X.shape[1])
    with pytest.raises(IndexError):
        minimise_distant(few, X.shape[1])


# --- The bundle --------------------------------------------------------------------------------------


@pytest.mark.parametrize("most_cuts", [4, 6, 200])
@pytest.mark.parametrize("squared", [False, True])
def test_few_cuts_converge_and_bounds_hold_on_the_way(most_cuts, squared):
    X, y, _ = make_rows(6)
    oracle = _core.margin_oracle(y, squared=squared)
    best = minimise(X, oracle, tolerance=1e-10, C=0.2)
    history = []
    found = minimise(
        X,
        oracle,
        C=0.2,
        tolerance=1e-4,
        most_cuts=most_cuts,
        max_rounds=20_000,
        observe=lambda weights, objective, bound, rounds: history.append((weights, objective, bound, rounds)),
    )
    assert found["converged"]
    assert [rounds for *_, rounds in history] == list(range(1, found["rounds"] + 1))
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


def test_a_bundle_never_holds_more_than_it_may():
    X, y, _ = make_rows(6)
    bundle = _core.Bundle(X.shape[1], 5)
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


def test_cuts_serve_for_another_cost():
    X, y, _ = make_rows(7, rows=150)
    oracle = _core.margin_oracle(y, squared=False)
    bundle = _core.Bundle(X.shape[1], 200)
    first = minimise(X, oracle, bundle=bundle, C=0.1)
    rounds = []
    for C in (0.13, 0.05, 1.0):
        cold = minimise(X, oracle, C=C)
        warm = minimise(X, oracle, C=C, bundle=bundle, start=first["weights"])
        check_outcome(warm, X, C, lambda s: reference.margin_risk(y, s, squared=False), 1e-6)
        assert warm["objective"] == pytest.approx(cold["objective"], rel=2e-6)
        rounds.append((warm["rounds"], cold["rounds"]))
    assert np.less(*np.sum(rounds, axis=0))


def test_a_run_can_be_taken_up_from_saved_cuts():
    X, y, _ = make_rows(8)
    oracle = _core.margin_oracle(y, squared=True)
    bundle = _core.Bundle(X.shape[1], 200)
    whole = minimise(X, oracle, bundle=bundle)
    saved = [(bundle.gradient(k), bundle.offsets[k]) for k in range(len(bundle))], bundle.masses
    again = _core.Bundle(X.shape[1], 200)
    for gradient, offset in saved[0]:
        again.add(gradient, offset)
    again.set_masses(saved[1])
    assert np.array_equal(again.masses, bundle.masses)
    resumed = minimise(X, oracle, bundle=again, start=whole["weights"])
    assert resumed["converged"]
    assert resumed["rounds"] <= 1
    assert resumed["bound"] == pytest.approx(whole["bound"], rel=1e-6)
    interrupted = _core.Bundle(X.shape[1], 200)
    part = minimise(X, oracle, bundle=interrupted, max_rounds=whole["rounds"] // 2)
    assert not part["converged"]
    rest = minimise(X, oracle, bundle=interrupted, start=part["weights"])
    assert rest["objective"] == pytest.approx(whole["objective"], rel=2e-6)
    assert rest["rounds"] < whole["rounds"]


def test_a_bundle_refuses_what_does_not_fit():
    bundle = _core.Bundle(3, 10)
    with pytest.raises(ValueError, match="wrong number of weights"):
        bundle.add(np.zeros(4), 1.0)
    with pytest.raises(ValueError, match="a mass a cut"):
        bundle.set_masses(np.ones(1))
    with pytest.raises(IndexError, match="no such cut"):
        bundle.gradient(0)
    X, y, _ = make_rows(1)
    with pytest.raises(ValueError, match="differ in dimension"):
        minimise(X, _core.margin_oracle(y, squared=False), bundle=bundle)
    with pytest.raises(ValueError, match="differ in number"):
        minimise(X, _core.margin_oracle(y[1:], squared=False))


# --- The outside -------------------------------------------------------------------------------------


def test_what_observe_raises_comes_back():
    X, y, _ = make_rows(9)
    seen = []

    def fail(_weights, _objective, _bound, rounds):
        seen.append(rounds)
        if rounds == 3:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        minimise(X, _core.margin_oracle(y, squared=False), observe=fail)
    assert seen == [1, 2, 3]


def test_what_look_raises_ends_the_work():
    X, y, _ = make_rows(9)
    looks = []

    def look(progress):
        looks.append((progress.stage, progress.problem, progress.problems))
        raise RuntimeError("no more")

    options = {"look": look, "observe": lambda *_: time.sleep(0.03), "tolerance": 0.0, "max_rounds": 10**6}
    with pytest.raises(RuntimeError, match="no more"):
        minimise(X, _core.margin_oracle(y, squared=False), problem=2, problems=5, **options)
    with pytest.raises(RuntimeError, match="no more"):
        minimise_distant(DistantRows(X, y), X.shape[1], **options)
    assert looks == [("training", 2, 5), ("training", 0, 1)]


def test_rounds_that_run_out_are_said_so():
    X, y, _ = make_rows(10)
    oracle = _core.margin_oracle(y, squared=False)
    for rounds in (0, 1, 4):
        found = minimise(X, oracle, max_rounds=rounds, tolerance=1e-12)
        assert not found["converged"]
        assert found["rounds"] == rounds
        assert found["bound"] < found["objective"]
    assert minimise(X, oracle, max_rounds=0)["objective"] == len(y)


def test_nothing_that_counts_is_already_solved():
    X, y, _ = make_rows(10)
    found = minimise(X, _core.margin_oracle(0.0 * y, squared=False))
    assert found["converged"]
    assert found["objective"] == found["rounds"] == 0
    assert not found["weights"].any()


@pytest.mark.parametrize("X", [np.zeros((4, 2)), np.ones((4, 1))])
def test_rows_that_tell_nothing_are_solved_by_no_weights(X):
    """Cuts without a gradient: the risk is the same everywhere, and so is the bound."""
    found = minimise(X, _core.margin_oracle(np.array([1.0, -1.0, 1.0, -1.0]), squared=False), C=0.5)
    assert found["converged"]
    assert found["objective"] == pytest.approx(2.0)
    np.testing.assert_allclose(found["weights"], 0.0, atol=1e-6)


@pytest.mark.parametrize("squared", [False, True])
def test_no_finite_objective_is_an_error(squared):
    X, y, _ = make_rows(11)
    with pytest.raises(ValueError, match="not finite"):
        minimise(X, _core.margin_oracle(1e307 * y, squared=squared))
    with pytest.raises(ValueError, match="not finite"):
        minimise(X, _core.margin_oracle(y, squared=squared), C=1e308)
    with pytest.raises(ValueError, match="not finite"):
        minimise(X, _core.margin_oracle(y, squared=squared), start=np.full(X.shape[1], 1e200))


def test_an_oracle_can_be_used_again_and_again():
    """What one run left in it must not show in the next."""
    X, y, _ = make_rows(12)
    oracle = _core.margin_oracle(y, squared=False)
    first = minimise(X, oracle)
    minimise(3 * X, oracle)
    assert np.array_equal(minimise(X, oracle)["weights"], first["weights"])


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
    X, oracle = many_rows(kind, np.random.default_rng(13), 40_000)
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
    rows = _core.pack_rows(
        offsets=X.indptr.astype(index),
        columns=X.indices.astype(index),
        values=X.data,
        features=30,
        may_round=False,
        threads=2,
    )
    assert (rows.rows, rows.features, rows.entries) == (5000, 30, X.nnz)
    wide = reference.with_constant(X.toarray(), intercept)
    w, c = rng.normal(size=wide.shape[1]), rng.normal(size=5000)
    np.testing.assert_allclose(rows.scores(w, intercept, 2), wide @ w, atol=1e-12)
    np.testing.assert_allclose(rows.transposed(c, intercept, 2), wide.T @ c, atol=1e-10)
    with pytest.raises(ValueError, match="weights have the wrong length"):
        rows.scores(w[1:], intercept, 1)
    with pytest.raises(ValueError, match="coefficients have the wrong length"):
        rows.transposed(c[1:], intercept, 1)


def test_rounded_rows_are_those_of_single_precision():
    X, *_ = make_rows(15)
    w = np.random.default_rng(15).normal(size=X.shape[1])
    assert pack(X).nbytes > pack(X, may_round=True).nbytes
    np.testing.assert_allclose(pack(X).scores(w, 0.0, 1), X @ w, rtol=1e-13, atol=1e-13)
    rounded = X.astype(np.float32).astype(float)
    np.testing.assert_allclose(pack(X, may_round=True).scores(w, 0.0, 1), rounded @ w, rtol=1e-13, atol=1e-13)
