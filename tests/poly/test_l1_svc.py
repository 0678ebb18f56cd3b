"""PolySVC(penalty="l1"), compared with explicit maps, a general optimiser and LIBLINEAR."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import unkernel
import unkernel.poly._base as base_module
from reference import poly as reference
from reference import poly_problems
from reference import sparse as twin
from reference.poly_problems import wide_problem
from reference.selection import few_examples, parametrize_pairs
from unkernel import PolySVC


def l1_svc(degree=2, **options):
    return PolySVC(degree, penalty="l1", loss="squared_hinge", random_state=0, **options)


make_problem = functools.partial(poly_problems.make_problem, rows=40, features=5)


def optimum(X, y, costs, *, degree, gamma, coef0, feature_map="kernel"):
    Phi = reference.expand(X, degree=degree, gamma=gamma, coef0=coef0, feature_map=feature_map)
    return twin.minimise("squared_hinge", Phi, y, costs)[0]


@parametrize_with_checks([l1_svc()])
def test_passes_the_estimator_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([l1_svc(1, feature_map="plain", class_weight="balanced")])
def test_other_parameters_pass_the_estimator_checks_of_scikit_learn(estimator, check):
    check(estimator)


@parametrize_pairs(C=[0.05, 1.0], degree=[1, 2, 3], binary=[True, False], feature_map=["kernel", "plain"])
def test_reaches_the_optimum_on_the_explicit_map(degree, binary, feature_map, C):
    X, y = make_problem(degree, binary=binary, duplicates=binary)
    weights = np.random.default_rng(5).integers(0, 4, len(y)).astype(float)
    clf = l1_svc(degree, C=C, gamma=0.5, coef0=2.0, feature_map=feature_map, tol=1e-8).fit(X, y, weights)
    assert clf.gap_ <= 1e-8
    model = clf.to_model()
    assert clf.objective_ == pytest.approx(
        twin.model_objective("squared_hinge", model, X, y, C * weights), rel=1e-9
    )
    expected = optimum(X, y, C * weights, degree=degree, gamma=0.5, coef0=2.0, feature_map=feature_map)
    assert clf.objective_ == pytest.approx(expected, rel=1e-6)
    assert (model.weights != 0).all()


@few_examples(10)
@given(
    seed=st.integers(0, 10**6),
    degree=st.integers(1, 3),
    binary=st.booleans(),
    logarithm=st.floats(-4, 2),
    coef0=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_the_optimum_is_certified_for_any_c(seed, degree, binary, logarithm, coef0):
    X, y = make_problem(seed, rows=25, features=4, binary=binary, duplicates=seed % 2 == 0)
    C = 10.0**logarithm
    clf = l1_svc(degree, C=C, gamma=0.7, coef0=coef0, tol=1e-5, max_iter=10**5).fit(X, y)
    costs = np.full(len(y), C)
    assert clf.gap_ <= 1e-5
    objective = twin.model_objective("squared_hinge", clf.to_model(), X, y, costs)
    assert clf.objective_ == pytest.approx(objective, rel=1e-8)
    if C <= 10:  # the twin's bound comes from the last scores alone, and is weak for large costs
        Phi = reference.expand(X, degree=degree, gamma=0.7, coef0=coef0)
        bound = twin.dual_bound("squared_hinge", Phi, clf.decision_function(X)[:, None], y, costs)
        assert bound >= objective * (1 - 1e-4)


def test_objective_and_weights_equal_liblinears():
    X, y = make_problem(11, rows=300, features=7, binary=False)
    clf = l1_svc(C=0.3, gamma=0.3, tol=1e-7).fit(X, y)
    Phi = reference.expand(X, degree=2, gamma=0.3, coef0=1.0)
    peer = LinearSVC(
        penalty="l1", C=0.3, dual=False, fit_intercept=False, tol=1e-9, max_iter=10**5, random_state=0
    )
    w = peer.fit(Phi, y).coef_[0]
    signs = np.where(y == 1, 1.0, -1.0)
    expected = np.abs(w).sum() + 0.3 * (np.maximum(1 - signs * (Phi @ w), 0) ** 2).sum()
    assert clf.objective_ == pytest.approx(expected, rel=1e-5)
    assert clf.decision_function(X) == pytest.approx(Phi @ w, abs=1e-3)
    assert clf.to_model().n_conjunctions + 1 == pytest.approx((w != 0).sum(), abs=1)


@pytest.mark.parametrize("degree", [2, 3])
@pytest.mark.parametrize("binary", [True, False])
def test_no_conjunction_outside_the_model_violates_its_condition(degree, binary):
    """The explicit map checks the conjunctions that the bounded search skips."""
    X, y = wide_problem(binary, features=30, rows=200)
    C, gamma = 0.5, 0.5
    clf = l1_svc(degree, C=C, gamma=gamma, tol=1e-7).fit(X, y)
    assert 0 < clf.to_model().n_conjunctions < 400
    signs = np.where(y == 1, 1.0, -1.0)
    u = 2 * C * signs * np.maximum(1 - signs * clf.decision_function(X), 0)
    Phi = reference.expand(X.toarray(), degree=degree, gamma=gamma, coef0=1.0)
    assert np.abs(Phi.T @ u).max() == pytest.approx(1.0, abs=1e-3)


def test_multi_class_is_one_against_the_rest():
    X, y = wide_problem(True, classes=4)
    clf = l1_svc(C=0.2, gamma=0.5, tol=1e-7).fit(X, y)
    scores = clf.decision_function(X)
    assert scores.shape == (600, 4)
    objectives = 0.0
    for k in range(4):
        binary = l1_svc(C=0.2, gamma=0.5, tol=1e-7).fit(X, y == k)
        objectives += binary.objective_
        assert scores[:, k] == pytest.approx(binary.decision_function(X), abs=1e-3)
    assert clf.objective_ == pytest.approx(objectives, rel=1e-6)
    assert np.array_equal(clf.predict(X), clf.classes_[scores.argmax(axis=1)])


@pytest.mark.parametrize("degree", [2, 3])
@pytest.mark.parametrize("classes", [2, 3])
def test_results_do_not_depend_on_the_number_of_threads(degree, classes):
    X, y = wide_problem(True, classes)
    single_threaded = l1_svc(degree, C=0.5).fit(X, y).to_model()
    multi_threaded = l1_svc(degree, C=0.5, n_jobs=3).fit(X, y).to_model()
    assert np.array_equal(single_threaded.keys, multi_threaded.keys)
    assert np.array_equal(single_threaded.weights, multi_threaded.weights)


def test_weights_are_repeated_rows_and_order_does_not_matter():
    X, y = make_problem(6, rows=60, binary=False)
    repeats = np.random.default_rng(1).integers(0, 4, 60)
    repeats[:2] = 1
    weighted = l1_svc(C=0.5, tol=1e-6).fit(X, y, repeats.astype(float)).to_model()
    order = np.random.default_rng(2).permutation(repeats.sum())
    repeated = (
        l1_svc(C=0.5, tol=1e-6).fit(np.repeat(X, repeats, 0)[order], np.repeat(y, repeats)[order]).to_model()
    )
    assert np.array_equal(weighted.keys, repeated.keys)
    assert np.array_equal(weighted.weights, repeated.weights)


def test_class_weight_multiplies_c():
    X, y = make_problem(7)
    by_class = l1_svc(C=0.5, gamma=0.5, class_weight={0: 1.0, 1: 3.0}, tol=1e-8).fit(X, y)
    by_row = l1_svc(C=0.5, gamma=0.5, tol=1e-8).fit(X, y, np.where(y == 1, 3.0, 1.0))
    assert by_class.objective_ == pytest.approx(by_row.objective_, rel=1e-7)


def test_rows_without_features_and_features_without_variation():
    X, y = make_problem(8, features=6)
    X[:, 4] = 1.0
    X[:, 5] = 0.0
    X[::7] = 0.0
    clf = l1_svc(C=1.0, gamma=0.5, tol=1e-8).fit(X, y)
    assert clf.objective_ == pytest.approx(
        optimum(X, y, np.full(len(y), 1.0), degree=2, gamma=0.5, coef0=1.0), rel=1e-6
    )


def test_a_tiny_c_gives_no_weights():
    X, y = make_problem(9)
    clf = l1_svc(C=1e-6).fit(X, y)
    assert clf.to_model().n_conjunctions == 0
    assert clf.to_model().intercept.tolist() == [0.0]
    assert clf.gap_ == 0.0
    assert (clf.decision_function(X) == 0).all()


def test_warm_start_along_a_path_of_c():
    X, y = wide_problem(True)
    warm = l1_svc(gamma=0.5, tol=1e-5, warm_start=True)
    steps = fresh_steps = 0
    for C in np.geomspace(0.05, 1.0, 8):
        warm.set_params(C=C).fit(X, y)
        fresh = l1_svc(C=C, gamma=0.5, tol=1e-5).fit(X, y)
        assert warm.objective_ == pytest.approx(fresh.objective_, rel=3e-5)
        steps, fresh_steps = steps + warm.n_iter_, fresh_steps + fresh.n_iter_
    assert steps < fresh_steps
    objective = warm.objective_
    warm.fit(X, y)
    assert warm.n_iter_ <= 1
    assert warm.objective_ == pytest.approx(objective, rel=1e-5)
    warm.fit(X[:, :100], y)  # other features: it starts from scratch
    assert warm.objective_ == pytest.approx(l1_svc(C=1.0, gamma=0.5).fit(X[:, :100], y).objective_, rel=2e-3)


def test_saved_models_give_the_same_scores(tmp_path):
    X, y = wide_problem(True)
    clf = l1_svc(C=0.5).fit(X, y)
    clf.save(tmp_path / "model.uk")
    loaded = unkernel.load(tmp_path / "model.uk")
    assert np.array_equal(loaded.decision_function(X), clf.decision_function(X))
    assert loaded.model.n_conjunctions < 1000


def test_the_hinge_is_refused():
    with pytest.raises(ValueError, match="squared_hinge"):
        PolySVC(penalty="l1").fit([[0.0], [1.0]], [0, 1])


def test_fits_that_do_not_converge_warn():
    X, y = make_problem(9, rows=200, binary=False)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        clf = l1_svc(C=1e4, gamma=5.0, tol=1e-9, max_iter=2).fit(X, y)
    assert clf.gap_ > 1e-9
    assert clf.n_iter_ == 2


def test_problems_too_large_for_memory_are_refused(monkeypatch):
    X, y = wide_problem(True)
    monkeypatch.setattr(base_module, "available_bytes", lambda: 10_000)
    with pytest.raises(MemoryError, match="memory"):
        l1_svc(C=10.0).fit(X, y)


@pytest.mark.parametrize("scale", [1e-85, 1e85, 1e140])
def test_values_that_would_overflow_are_refused(scale):
    X, y = make_problem(2, binary=False)
    with pytest.raises(ValueError, match="scale"):
        l1_svc().fit(X * scale, y)


def test_badly_scaled_data_are_solved():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 8)) * np.logspace(0, 2, 8)
    y = (X[:, 0] + 0.01 * X[:, 5] + rng.normal(size=200) > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = l1_svc(C=1.0, gamma=0.01, tol=1e-6).fit(X, y)
    assert clf.gap_ <= 1e-6
