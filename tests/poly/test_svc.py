"""PolySVC, compared with explicit maps, kernel matrices and LIBLINEAR."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import unkernel
import unkernel.poly._base as base_module
from reference import conjunctions
from reference import poly as reference
from reference.poly_problems import make_problem
from reference.processes import check_interrupt, needs_sigint
from reference.selection import few_examples, parametrize_pairs
from unkernel import PolyLogisticRegression, PolySVC


def model_objective(clf, X, y, costs):
    """Return the primal objective of a fitted binary model, from its stored weights alone."""
    model = clf.to_model()
    order = conjunctions.list_conjunctions(len(model.columns), model.degree, model.sets)
    squared = model.intercept[0] ** 2 / squared_constant(model, ()) if squared_constant(model, ()) else 0.0
    for key, (v,) in zip(model.keys.tolist(), model.weights, strict=True):
        squared += v**2 / squared_constant(model, order[key])
    scores = np.array([conjunctions.score(model, x)[0] for x in X])
    signs = np.where(y == clf.classes_[1], 1.0, -1.0)
    return 0.5 * squared + costs @ reference.loss(clf.loss, 1 - signs * scores)


def squared_constant(model, conjunction):
    """Return c^2 of a conjunction: of its monomial, or of all monomials with its support."""
    settings_ = {
        "degree": model.degree,
        "gamma": model.gamma,
        "coef0": model.coef0,
        "feature_map": model.feature_map,
    }
    if not model.sets:
        return reference.squared_constant(conjunction, **settings_)
    return sum(
        reference.squared_constant(m, **settings_)
        for m in reference.monomials(len(model.columns), model.degree)
        if set(m) == set(conjunction)
    )


@parametrize_with_checks([PolySVC()])
def test_passes_the_estimator_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        PolySVC(degree=3, loss="squared_hinge", storage="condensed"),
        PolySVC(degree=1, feature_map="plain", class_weight="balanced"),
    ]
)
def test_other_parameters_pass_the_estimator_checks_of_scikit_learn(estimator, check):
    check(estimator)


@parametrize_pairs(
    degree=[1, 2, 3],
    binary=[True, False],
    feature_map=["kernel", "plain"],
    loss=["hinge", "squared_hinge"],
    storage=["on_the_fly", "condensed"],
)
def test_reaches_the_optimum_on_the_explicit_map(degree, binary, feature_map, loss, storage):
    X, y = make_problem(degree, rows=32, features=5, binary=binary, duplicates=binary)
    weights = np.random.default_rng(5).integers(1, 4, len(y)).astype(float)
    clf = PolySVC(degree, C=0.1, gamma=0.5, coef0=2.0, loss=loss, feature_map=feature_map, storage=storage,
                  tol=1e-7, max_iter=100_000, random_state=0)  # fmt: skip
    clf.fit(X, y, weights)
    costs = 0.1 * weights
    assert clf.gap_ <= 1e-7
    assert clf.objective_ == pytest.approx(model_objective(clf, X, y, costs), rel=1e-9)
    Phi = reference.expand(X, degree=degree, gamma=0.5, coef0=2.0, feature_map=feature_map)
    signs = np.where(y == 1, 1.0, -1.0)
    _, optimum = reference.solve_dual(Phi @ Phi.T, signs, costs, loss, gap=1e-8)
    assert clf.objective_ == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("degree", [2, 3])
def test_objective_equals_liblinears(degree, loss):
    X, y = make_problem(11, rows=200, features=7, binary=False)
    weights = np.random.default_rng(1).random(200) + 0.5
    clf = PolySVC(degree, C=0.1, gamma=0.3, coef0=1.0, loss=loss, tol=1e-6, max_iter=100_000).fit(
        X, y, weights
    )
    Phi = reference.expand(X, degree=degree, gamma=0.3, coef0=1.0)
    peer = LinearSVC(
        C=0.1, loss=loss, dual=True, fit_intercept=False, tol=1e-8, max_iter=10**6, random_state=0
    )
    peer.fit(Phi, y, weights)
    signs = np.where(y == 1, 1.0, -1.0)
    expected = reference.primal(peer.coef_[0], Phi, signs, 0.1 * weights, loss)
    assert clf.objective_ == pytest.approx(expected, rel=1e-5)
    assert clf.decision_function(X) == pytest.approx(Phi @ peer.coef_[0], abs=2e-2)


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_scores_real_rows_as_the_kernel_would(degree, binary):
    """If the training data are binary, the model has weights of sets, but real rows are scored exactly."""
    X, y = make_problem(3, rows=32, features=5, binary=binary)
    signs = np.where(y == 1, 1.0, -1.0)
    K = reference.kernel(X, X, degree=degree, gamma=0.4, coef0=1.5)
    b, _ = reference.solve_dual(K, signs, np.full(len(y), 0.1), "squared_hinge", gap=1e-13)
    clf = PolySVC(degree, C=0.1, gamma=0.4, coef0=1.5, loss="squared_hinge", tol=1e-12, max_iter=10**6).fit(
        X, y
    )
    assert clf.to_model().sets == binary
    rows = np.random.default_rng(0).normal(size=(20, X.shape[1]))
    expected = reference.kernel(rows, X, degree=degree, gamma=0.4, coef0=1.5) @ b
    assert clf.decision_function(rows) == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("degree", [1, 2, 3])
@given(coef0=st.floats(0.25, 4), gamma=st.floats(0.1, 2), C=st.floats(0.01, 2))
@few_examples(5)
def test_coef0_can_be_moved_into_gamma_and_c(degree, coef0, gamma, C):
    """Appendix A of Chang et al.: the two problems have the same classifier."""
    X, y = make_problem(8)
    options = {"tol": 1e-11, "max_iter": 10**6, "loss": "squared_hinge", "random_state": 0}
    # The losses scale with C, so the squared-hinge diagonal of the second problem scales as well.
    original = PolySVC(degree, gamma=gamma, coef0=coef0, C=C, **options).fit(X, y)
    rescaled = PolySVC(degree, gamma=gamma / coef0, coef0=1.0, C=C * coef0**degree, **options).fit(X, y)
    assert original.decision_function(X) == pytest.approx(rescaled.decision_function(X), rel=1e-4, abs=1e-4)


def large_problem(binary, classes=2, rows=700):
    rng = np.random.default_rng(2)
    X = sparse.random(rows, 400, density=0.03, format="csr", random_state=rng)
    if binary:
        X.data[:] = 1
    w = rng.normal(size=400)
    y = np.digitize(X @ w, np.quantile(X @ w, np.linspace(0, 1, classes + 1)[1:-1]))
    return X, y


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("degree", [2, 3])
def test_the_model_does_not_depend_on_storage_and_threads(degree, binary):
    X, y = large_problem(binary, classes=3, rows=200)
    fits = [
        PolySVC(degree, C=0.1, storage=storage, n_jobs=jobs, random_state=1).fit(X, y)
        for storage, jobs in [("on_the_fly", 1), ("condensed", 1), ("condensed", 2), ("on_the_fly", 2)]
    ]
    expected = fits[0]
    for result in fits[1:]:
        assert result.n_iter_ == expected.n_iter_
        assert result.decision_function(X) == pytest.approx(expected.decision_function(X), rel=1e-9, abs=1e-9)
    assert np.array_equal(fits[1].to_model().weights, fits[2].to_model().weights)
    assert np.array_equal(fits[0].to_model().weights, fits[3].to_model().weights)


def test_weights_equal_repeated_rows_in_any_order():
    X, y = make_problem(4, rows=80, duplicates=True)
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 4, len(y)).astype(float)
    options = {"C": 3.0, "gamma": "scale", "class_weight": "balanced", "random_state": 0}
    weighted = PolySVC(**options).fit(X, y, weights)
    repeated = np.repeat(np.arange(len(y)), weights.astype(int))
    rng.shuffle(repeated)
    refitted = PolySVC(**options).fit(X[repeated], y[repeated])
    assert np.array_equal(weighted.to_model().weights, refitted.to_model().weights)
    assert weighted.gamma_ == refitted.gamma_


def test_conflicting_labels_are_solved_exactly():
    """Equal rows with both labels share one dual variable, which is a special case."""
    X = np.array([[1.0, 0], [1, 0], [0, 1], [0, 1], [1, 1]])
    y = np.array([0, 1, 0, 1, 1])
    weights = np.array([2.0, 3.0, 5.0, 1.0, 1.0])
    for loss in ("hinge", "squared_hinge"):
        clf = PolySVC(2, C=10, gamma=1, loss=loss, tol=1e-10, max_iter=10**5).fit(X, y, weights)
        K = reference.kernel(X, X, degree=2, gamma=1, coef0=1)
        _, optimum = reference.solve_dual(K, 2.0 * y - 1, 10 * weights, loss, gap=1e-10)
        assert clf.objective_ == pytest.approx(optimum, rel=1e-8)


def test_multi_class_is_one_against_the_rest():
    X, y = make_problem(6, rows=120, classes=4)
    clf = PolySVC(C=0.5, gamma=0.5, tol=1e-8, max_iter=10**5).fit(X, y)
    scores = clf.decision_function(X)
    assert scores.shape == (120, 4)
    for k in range(4):
        binary = PolySVC(C=0.5, gamma=0.5, tol=1e-8, max_iter=10**5).fit(X, y == k)
        assert scores[:, k] == pytest.approx(binary.decision_function(X), abs=2e-3)
    assert np.array_equal(clf.predict(X), clf.classes_[scores.argmax(axis=1)])


def test_warm_start_resumes_where_rows_are_known():
    X, y = large_problem(binary=True)
    clf = PolySVC(C=1.0, tol=1e-5, warm_start=True, random_state=0).fit(X, y)
    cold = clf.n_iter_
    objective = clf.objective_
    clf.fit(X[::-1], y[::-1])
    assert clf.n_iter_ < cold / 3
    assert clf.objective_ == pytest.approx(objective, rel=1e-4)
    clf.set_params(C=1.1).fit(X, y)
    fresh = PolySVC(C=1.1, tol=1e-5, random_state=0).fit(X, y)
    assert clf.objective_ == pytest.approx(fresh.objective_, rel=1e-4)


def test_dense_data_finish_in_kernel_space_at_the_same_optimum():
    rng = np.random.default_rng(0)
    X = rng.random((300, 40))
    y = (np.sin(5 * X[:, 0]) + X[:, 1] * X[:, 2] > 0.7).astype(int)
    clf = PolySVC(3, C=0.01, gamma=0.1, tol=1e-6, max_iter=10_000).fit(X, y)
    K = reference.kernel(X, X, degree=3, gamma=0.1, coef0=1.0)
    _, optimum = reference.solve_dual(K, 2.0 * y - 1, np.full(300, 0.01), "hinge", gap=1e-7)
    assert clf.objective_ == pytest.approx(optimum, rel=2e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("rows", [40, 400])
def test_badly_scaled_data_are_solved(rows, loss):
    """Coordinate descent alone would take a hundred thousand epochs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 8)) * np.logspace(0, 2, 8)
    y = (X[:, 0] + 0.01 * X[:, 5] + rng.normal(size=rows) > 0).astype(int)
    weights = np.where(np.arange(rows) % 3, 1.0, 2.0)
    X[rows // 2 :], y[: rows // 4] = X[: rows - rows // 2], 1 - y[: rows // 4]
    clf = PolySVC(2, C=1.0, gamma=0.01, loss=loss, tol=1e-6, max_iter=1000).fit(X, y, weights)
    assert clf.gap_ <= 1e-6
    if rows == 40:
        assert clf.objective_ == pytest.approx(model_objective(clf, X, y, weights), rel=1e-6)


def test_all_array_formats_are_accepted():
    X, y = large_problem(binary=False)
    expected = PolySVC(random_state=0).fit(X, y).decision_function(X)
    wide = X.copy()
    wide.indices, wide.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    for rows in (X.toarray(), sparse.csr_array(X), X.tocsc(), X.tocoo(), wide):
        assert PolySVC(random_state=0).fit(rows, y).decision_function(rows) == pytest.approx(expected)
    single = X.astype(np.float32)
    assert PolySVC(random_state=0).fit(single, y).decision_function(single) == pytest.approx(
        expected, abs=1e-2
    )


def test_huge_column_numbers_take_no_memory():
    X = sparse.csr_array(
        (
            np.ones(4),
            np.array([0, 2**40, 5, 2**40], dtype=np.int64),
            np.array([0, 1, 2, 3, 4], dtype=np.int64),
        ),
        shape=(4, 2**40 + 1),
    )
    clf = PolySVC(gamma=1.0).fit(X, [0, 1, 0, 1])
    assert clf.predict(X).tolist() == [0, 1, 0, 1]


def test_works_in_pipelines_grid_searches_and_pickles():
    X, y = large_problem(binary=False)
    search = GridSearchCV(
        make_pipeline(MaxAbsScaler(), PolySVC(random_state=0)), {"polysvc__C": [0.1, 1.0]}, cv=3
    )
    search.fit(X, y)
    clf = pickle.loads(pickle.dumps(search.best_estimator_))
    assert np.array_equal(clf.decision_function(X), search.decision_function(X))


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({"degree": 0}, "degree"),
        ({"degree": 9}, "degree"),
        ({"C": 0}, "C"),
        ({"C": -1.0}, "C"),
        ({"C": float("inf")}, "C"),
        ({"gamma": 0}, "gamma"),
        ({"gamma": "big"}, "gamma"),
        ({"coef0": -1.0}, "coef0"),
        ({"penalty": "l1"}, "penalty"),
        ({"loss": "log"}, "loss"),
        ({"storage": "disk"}, "storage"),
        ({"tol": 0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"class_weight": {7: 1.0}}, "class_weight"),
    ],
)
def test_bad_parameters_are_named(parameters, complaint):
    with pytest.raises(ValueError, match=complaint):
        PolySVC(**parameters).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    ("X", "y", "complaint"),
    [
        ([[0.0], [np.nan]], [0, 1], "NaN"),
        ([[0.0], [np.inf]], [0, 1], "infinity"),
        ([[0.0], [1.0]], [1, 1], "one class"),
        ([[0.0], [1.0]], [0.5, 1.7], "continuous"),
        ([[0.0], [1.0]], [0, 1, 1], "inconsistent"),
        (np.empty((0, 3)), [], "0 sample"),
    ],
)
def test_errors_for_bad_data_name_the_cause(X, y, complaint):
    with pytest.raises(ValueError, match=complaint):
        PolySVC().fit(X, y)


def test_bad_weights_are_named():
    X, y = [[0.0], [1.0]], [0, 1]
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        PolySVC().fit(X, y, [-1.0, 1.0])
    with pytest.raises(ValueError, match=r"[Ww]eight"):
        PolySVC().fit(X, y, [0.0, 0.0])
    with pytest.raises(ValueError, match="one class"):
        PolySVC().fit(X, y, [0.0, 1.0])


@pytest.mark.parametrize("scale", [1e-85, 1e85, 1e140])
def test_values_that_would_overflow_are_refused(scale):
    X, y = make_problem(2, binary=False)
    with pytest.raises(ValueError, match="scale"):
        PolySVC(2).fit(X * scale, y)


def test_costs_that_overflow_are_refused():
    X, y = make_problem(2, binary=False)
    with pytest.raises(ValueError, match="C"):
        PolySVC(C=1e307).fit(X, y)


def test_scores_that_overflow_are_refused():
    X, y = make_problem(2, binary=False)
    with pytest.raises(ValueError, match="scale"):
        PolySVC().fit(X, y).predict(X * 1e200)


def test_a_fitted_model_cannot_be_changed():
    X, y = make_problem(2)
    with pytest.raises(ValueError, match="read-only"):
        PolySVC().fit(X, y).to_model().weights[:] = 0


def test_wrong_feature_count_at_predict():
    clf = PolySVC().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    with pytest.raises(ValueError, match="features"):
        clf.predict([[1.0]])


def test_fits_that_do_not_converge_warn():
    X, y = make_problem(9, rows=200, binary=False)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        clf = PolySVC(C=1e4, gamma=5.0, tol=1e-9, max_iter=2).fit(X, y)
    assert clf.gap_ > 1e-9


def test_problems_too_large_for_memory_are_refused(monkeypatch):
    X, y = large_problem(binary=True)
    monkeypatch.setattr(base_module, "available_bytes", lambda: 100_000)
    for storage in ("auto", "on_the_fly", "condensed", "split"):
        with pytest.raises(MemoryError, match="available"):
            PolySVC(2, storage=storage).fit(X, y)


def test_verbose_prints_the_chosen_method(capsys):
    X, y = make_problem(1)
    PolySVC(verbose=1).fit(X, y)
    assert "storage=on_the_fly" in capsys.readouterr().out


@pytest.mark.hostile
@needs_sigint
def test_stops_promptly_on_ctrl_c():
    check_interrupt("""
        import numpy as np
        from unkernel import PolySVC
        rng = np.random.default_rng(0)
        X, y = rng.random((20000, 30)), rng.integers(0, 2, 20000)
        learner = PolySVC(3, C=1e6, gamma=10, tol=1e-12, max_iter=10**6)
        learner.fit_reporting(X, y, None, on_progress=on_progress)
    """)


@pytest.mark.parametrize("learner", [PolySVC(2, gamma=1), PolyLogisticRegression(2, gamma=1)])
def test_compiled_models_check_the_names_of_columns(learner):
    frame = pd.DataFrame([[0, 0], [0, 1], [1, 0], [1, 1]], columns=["a", "b"])
    fast = unkernel.compile(learner.fit(frame, [0, 1, 1, 0]))
    np.testing.assert_array_equal(fast.predict(frame), learner.predict(frame))
    with pytest.raises(ValueError, match="names"):
        fast.predict(frame[["b", "a"]])
