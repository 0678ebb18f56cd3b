"""CuttingPlaneSVC, compared with LIBLINEAR."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import unkernel
import unkernel.cutplane.svc as svc_module
from reference import cutting_planes as reference
from reference.linear_problems import EXACT, large_problem, make_problem, regulariser
from reference.selection import few_examples
from unkernel import CuttingPlaneSVC, FormatError


@parametrize_with_checks([CuttingPlaneSVC()])
def test_passes_the_estimator_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [CuttingPlaneSVC(loss="squared_hinge", class_weight="balanced"), CuttingPlaneSVC(solver="dual")]
)
def test_other_parameters_pass_the_estimator_checks_of_scikit_learn(estimator, check):
    check(estimator)


def compute_objective(model, X, signs, costs, *, squared, problem=0):
    """Return the objective of a fitted model's weights, for LinearSVC as well."""
    scores = X @ model.coef_[problem] + (model.intercept_[problem] if model.fit_intercept else 0.0)
    return regulariser(model, problem) + reference.margin_risk(signs * costs, scores, squared=squared)


def liblinear(**options):
    return LinearSVC(dual=True, tol=1e-9, max_iter=500_000, random_state=0, **options)


def check_against(clf, peer, X, signs, costs, *, problem=0):
    """Check that our objective is the reported one, and is within the gap of the peer's objective."""
    squared = clf.loss == "squared_hinge"
    objective = compute_objective(clf, X, signs, costs, squared=squared, problem=problem)
    peer_objective = compute_objective(peer, X, signs, costs, squared=squared, problem=problem)
    assert objective <= peer_objective / (1 - clf.tol) * (1 + 1e-9)
    assert peer_objective <= objective * (1 + 1e-5)  # otherwise LIBLINEAR has solved another problem
    return objective


# --- Against LIBLINEAR ---------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["cutting_plane", "dual"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize(
    "intercept",
    [{"fit_intercept": False}, {}, {"intercept_scaling": 5.0}],
    ids=["none", "1", "5"],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_objective_equals_the_objective_of_liblinear(solver, loss, intercept, weighted):
    X, y = make_problem(1)
    weights = np.random.default_rng(5).choice([0.0, 0.5, 1.0, 3.0], len(y)) if weighted else None
    options = {"C": 0.3, "loss": loss} | intercept
    clf = CuttingPlaneSVC(solver=solver, random_state=0, **options, **EXACT).fit(X, y, weights)
    peer = liblinear(**options).fit(X, y, weights)
    costs = 0.3 * (np.ones(len(y)) if weights is None else weights)
    objective = check_against(clf, peer, X, 2.0 * y - 1, costs)
    assert clf.solver_ == solver
    assert clf.objective_ == pytest.approx(objective, rel=1e-9)
    assert clf.gap_ <= clf.tol
    np.testing.assert_allclose(clf.coef_, peer.coef_, atol=5e-3)
    np.testing.assert_allclose(clf.intercept_, peer.intercept_ * np.ones(1), atol=5e-3)


@pytest.mark.parametrize("solver", ["cutting_plane", "dual"])
@pytest.mark.parametrize("class_weight", [{0: 0.5, 1: 4.0}, {1: 2.0}, "balanced"], ids=str)
def test_class_weights_have_the_effect_of_liblinears(solver, class_weight):
    X, y = make_problem(2)
    y[:40] = 0
    weights = np.random.default_rng(5).choice([0.5, 1.0, 3.0], len(y))
    clf = CuttingPlaneSVC(solver=solver, class_weight=class_weight, random_state=0, **EXACT)
    clf.fit(X, y, weights)
    if class_weight == "balanced":
        factors = weights.sum() / (2 * np.array([weights[y == 0].sum(), weights[y == 1].sum()]))
    else:
        factors = np.array([class_weight.get(0, 1.0), class_weight[1]])
    costs = factors[y] * weights
    peer = liblinear(loss="hinge").fit(X, y, costs)
    assert clf.objective_ == pytest.approx(check_against(clf, peer, X, 2.0 * y - 1, costs), rel=1e-9)


@pytest.mark.parametrize("weight", [-2.0, np.nan, np.inf])
def test_class_weights_are_not_negative(weight):
    X, y = [[0.0], [1.0]], [0, 1]
    with pytest.raises(ValueError, match=r"class_weight of 1 is .*: it must be 0 or a positive number"):
        CuttingPlaneSVC(class_weight={1: weight}).fit(X, y)


@pytest.mark.parametrize("solver", ["cutting_plane", "dual"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_many_classes_are_one_against_the_rest(solver, loss):
    X, y = make_problem(3, rows=150, classes=4)
    names = np.array(["north", "east", "south", "west"])
    options = {"C": 0.5, "loss": loss}
    clf = CuttingPlaneSVC(solver=solver, random_state=0, **options, **EXACT).fit(X, names[y])
    peer = liblinear(**options).fit(X, names[y])
    assert clf.classes_.tolist() == sorted(names)
    assert clf.coef_.shape == (4, 6)
    assert clf.intercept_.shape == (4,)
    costs = np.full(len(y), 0.5)
    total = sum(
        check_against(clf, peer, X, np.where(names[y] == name, 1.0, -1.0), costs, problem=problem)
        for problem, name in enumerate(clf.classes_)
    )
    assert clf.objective_ == pytest.approx(total, rel=1e-9)
    scores = clf.decision_function(X)
    np.testing.assert_allclose(scores, X @ clf.coef_.T + clf.intercept_, atol=1e-12)
    assert np.array_equal(clf.predict(X), clf.classes_[scores.argmax(axis=1)])


@few_examples(6, print_blob=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(4, 60),
    C=st.floats(1e-3, 30),
    loss=st.sampled_from(["hinge", "squared_hinge"]),
    intercept=st.sampled_from([0.0, 0.5, 3.0]),
)
def test_all_solvers_bound_each_other(seed, rows, C, loss, intercept):
    """The lower bound of each solver is below the objective of every solver."""
    X, y = make_problem(seed, rows=rows, features=4)
    y[:2] = [0, 1]
    weights = np.random.default_rng(seed).choice([0.5, 1.0, 2.0], rows)
    options = {"C": C, "loss": loss, "fit_intercept": bool(intercept), "tol": 9e-6, "max_iter": 100_000}
    options["intercept_scaling"] = intercept or 1.0
    fits = [
        CuttingPlaneSVC(solver=solver, random_state=0, **options).fit(X, y, weights)
        for solver in ("auto", "cutting_plane", "dual")
    ]
    for clf in fits:
        true = compute_objective(clf, X, 2.0 * y - 1, C * weights, squared=loss == "squared_hinge")
        assert clf.objective_ == pytest.approx(true, rel=1e-8)
        for other_clf in fits:
            assert clf.objective_ * (1 - clf.gap_) <= other_clf.objective_ * (1 + 1e-9)


@few_examples(6, print_blob=True)
@given(seed=st.integers(0, 2**32 - 1), factor=st.floats(0.1, 10))
def test_weights_equal_repeated_rows_and_labels_and_costs_scale(seed, factor):
    X, y = make_problem(seed, rows=40, features=4)
    y[:2] = [0, 1]
    weights = np.random.default_rng(seed).integers(0, 3, len(y))
    weights[:2] = 1
    clf = CuttingPlaneSVC(C=0.5, **EXACT).fit(X, y, weights)
    repetitions = np.repeat(np.arange(len(y)), weights)
    equivalent = [
        CuttingPlaneSVC(C=0.5 / factor, **EXACT).fit(X, y, factor * weights),
        CuttingPlaneSVC(C=0.5, **EXACT).fit(X[repetitions], y[repetitions]),
        CuttingPlaneSVC(C=0.5, **EXACT).fit(X, 1 - y, weights),
    ]
    for refitted, sign in zip(equivalent, (1, 1, -1), strict=True):
        assert refitted.objective_ == pytest.approx(clf.objective_, rel=2.5e-7)
        # 1/2 |w - w*|^2 <= P(w) - P(w*), twice
        assert np.sum((sign * refitted.coef_ - clf.coef_) ** 2) <= 8e-7 * clf.objective_


def test_auto_takes_the_dual_for_many_rows_in_memory(monkeypatch, tmp_path):
    X, y = make_problem(4)
    monkeypatch.setattr(svc_module, "_ROWS_FOR_DUAL", len(y))
    assert CuttingPlaneSVC().fit(X, y).solver_ == "dual"
    assert CuttingPlaneSVC().fit(X[1:], y[1:]).solver_ == "cutting_plane"
    for reason in ({"objective": "f1"}, {"warm_start": True}, {"checkpoint": tmp_path / "kept"}):
        assert CuttingPlaneSVC(**reason).fit(X, y).solver_ == "cutting_plane"
    with pytest.raises(ValueError, match="solver='dual' is for objective='error_rate'"):
        CuttingPlaneSVC(solver="dual", objective="roc_area").fit(X, y)


def test_the_seed_determines_the_order_of_rows_in_the_dual_solver():
    X, y = large_problem()
    first, repeated = (CuttingPlaneSVC(solver="dual", random_state=3).fit(X, y) for _ in range(2))
    other_seed = CuttingPlaneSVC(solver="dual", random_state=4).fit(X, y)
    assert np.array_equal(first.coef_, repeated.coef_)
    assert not np.array_equal(first.coef_, other_seed.coef_)
    assert first.objective_ == pytest.approx(other_seed.objective_, rel=2e-3)


# --- Shapes, copies, files -----------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_saved_pickled_and_compiled_models_give_the_same_scores(classes, tmp_path):
    X, y = large_problem(classes)
    clf = CuttingPlaneSVC().fit(X, y)
    scores = clf.decision_function(X)
    clf.save(tmp_path / "model.uk")
    for copy in (
        unkernel.load(tmp_path / "model.uk"),
        unkernel.compile(clf),
        unkernel.compile(clf.to_model()),
        pickle.loads(pickle.dumps(clf)),
    ):
        assert np.array_equal(copy.decision_function(X), scores)
        assert np.array_equal(copy.predict(X), clf.predict(X))
        assert np.array_equal(copy.classes_, clf.classes_)
    np.testing.assert_allclose(clf.to_model().scores(X), scores.reshape(len(y), -1), rtol=1e-10, atol=1e-12)
    origin = clf.to_model().origin
    assert (origin["learner"], origin["objective"]) == ("CuttingPlaneSVC", clf.objective_)


def test_a_fitted_model_cannot_be_changed():
    X, y = make_problem(2)
    clf = CuttingPlaneSVC().fit(X, y)
    for array in (clf.coef_, clf.intercept_):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0


def test_copies_have_the_parameters_and_no_more():
    X, y = make_problem(2)
    clf = CuttingPlaneSVC(C=3, loss="squared_hinge", max_cuts=10).fit(X, y)
    copy = clone(clf)
    assert copy.get_params() == clf.get_params()
    assert {"C", "k", "solver", "checkpoint", "cache", "max_cuts", "warm_start"} <= set(copy.get_params())
    with pytest.raises(NotFittedError):
        copy.predict(X)


@pytest.mark.parametrize("solver", ["cutting_plane", "dual"])
def test_all_array_formats_are_accepted(solver):
    X, y = large_problem(rows=500)
    clf = CuttingPlaneSVC(C=0.3, solver=solver, random_state=0, tol=9e-6)
    expected = clf.fit(X, y).coef_
    wide = X.copy()
    wide.indices, wide.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    scrambled = X.tocsr().copy()
    scrambled.data, scrambled.indices = scrambled.data[::-1].copy(), scrambled.indices[::-1].copy()
    scrambled.indptr = (X.nnz - X.indptr[::-1]).astype(np.int32)  # the rows from last to first
    scrambled.has_sorted_indices = False
    for rows in (
        X.toarray(),
        np.asfortranarray(X.toarray()),
        sparse.csr_array(X),
        X.tocsc(),
        X.tocoo(),
        wide,
    ):
        assert np.array_equal(clf.fit(rows, y).coef_, expected)
    backwards = clf.fit(scrambled, y[::-1])
    assert backwards.objective_ == pytest.approx(clf.fit(X, y).objective_, rel=1e-5)
    single = X.astype(np.float32)
    clf.fit(single, y)
    assert np.array_equal(clf.coef_, clone(clf).fit(single.astype(np.float64), y).coef_)
    np.testing.assert_allclose(clf.coef_, expected, atol=1e-2)
    assert clf.decision_function(single).dtype == np.float64


def test_huge_column_numbers_are_refused_or_cheap():
    offsets, columns = np.array([0, 1, 2, 3, 4]), np.array([0, 10**7, 5, 10**7])
    X = sparse.csr_array((np.ones(4), columns, offsets), shape=(4, 10**7 + 1))
    clf = CuttingPlaneSVC(C=10).fit(X, [0, 1, 0, 1])
    assert clf.predict(X).tolist() == [0, 1, 0, 1]
    assert np.count_nonzero(clf.coef_) <= 3


@pytest.mark.parametrize("objective", svc_module.OBJECTIVES)
def test_threads_do_not_change_a_bit(objective):
    X, y = large_problem(classes=3)
    fits = [
        CuttingPlaneSVC(
            objective=objective, k=100, solver="cutting_plane", n_jobs=jobs, max_iter=60, tol=1e-2
        )
        for jobs in (1, 2, -1)
    ]
    expected, *results = (clf.fit(X, y) for clf in fits)
    for result in results:
        assert np.array_equal(result.coef_, expected.coef_)
        assert np.array_equal(result.intercept_, expected.intercept_)
        assert (result.objective_, result.gap_, result.n_iter_) == (
            expected.objective_,
            expected.gap_,
            expected.n_iter_,
        )
        assert np.array_equal(result.decision_function(X), expected.decision_function(X))


def test_works_in_pipelines_and_grid_searches():
    X, y = large_problem()
    pipeline = make_pipeline(MaxAbsScaler(), CuttingPlaneSVC())
    search = GridSearchCV(pipeline, {"cuttingplanesvc__C": [0.1, 1.0]}, cv=3).fit(X, y)
    assert search.score(X, y) > 0.7


# --- Invalid arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "fitting", "complaint"),
    [
        ({"objective": "f1"}, {"sample_weight": np.ones(120)}, "neither sample_weight nor class_weight"),
        ({"objective": "roc_area", "class_weight": "balanced"}, {}, "neither sample_weight nor class_weight"),
        ({"objective": "precision_at_k"}, {}, "needs k"),
        ({"objective": "precision_at_k", "k": 121}, {}, "k"),
        ({"objective": "break_even", "loss": "squared_hinge"}, {}, "squared_hinge"),
        ({"objective": "accuracy"}, {}, "objective"),
        ({"objective": "precision_at_k", "k": 0}, {}, "'k' parameter"),
        ({"C": 0}, {}, "'C' parameter"),
        ({"C": np.inf}, {}, "C"),
        ({"tol": 0}, {}, "tol"),
        ({"max_cuts": 3}, {}, "max_cuts"),
        ({"max_iter": 0}, {}, "max_iter"),
        ({"intercept_scaling": 0.0}, {}, "intercept_scaling"),
        ({"solver": "simplex"}, {}, "solver"),
        ({"loss": "log"}, {}, "loss"),
        ({"class_weight": {7: 1.0}}, {}, "class_weight"),
        ({}, {"sample_weight": np.ones(3)}, "sample_weight"),
        ({}, {"sample_weight": -np.ones(120)}, "[Nn]egative"),
        ({}, {"sample_weight": np.zeros(120)}, "weight"),
    ],
    ids=str,
)
def test_bad_parameters_and_arrays_are_named(options, fitting, complaint):
    with pytest.raises(ValueError, match=complaint):
        CuttingPlaneSVC(**options).fit(*make_problem(1), **fitting)


@pytest.mark.parametrize(
    ("X", "y", "complaint"),
    [
        ([[0.0], [np.nan]], [0, 1], "NaN"),
        ([[0.0], [np.inf]], [0, 1], "infinity"),
        ([[0.0], [1.0]], [1, 1], "one class"),
        ([[0.0], [1.0]], [0.5, 1.7], "continuous"),
        ([[0.0], [1.0]], [0, 1, 1], "inconsistent"),
        (np.empty((0, 3)), [], "0 sample"),
        (np.empty((3, 0)), [0, 1, 1], "0 feature"),
    ],
)
def test_errors_for_bad_data_name_the_cause(X, y, complaint):
    with pytest.raises(ValueError, match=complaint):
        CuttingPlaneSVC().fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["cutting_plane", "dual"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-30, 1e30, 1e100, 1e200, 1e307])
def test_values_of_any_size_are_solved_or_refused(scale, loss, solver):
    X, y = make_problem(2)
    X = X / np.abs(X).max() * scale
    clf = CuttingPlaneSVC(loss=loss, solver=solver, max_iter=100)
    try:
        clf.fit(X, y)
    except ValueError as error:
        assert scale >= 1e30
        assert "scale" in str(error)
    else:
        assert np.isfinite(clf.coef_).all()
        assert np.isfinite(clf.objective_)
        assert 0 <= clf.gap_ <= 1


def test_rows_of_no_weight_do_not_count():
    X, y = make_problem(2)
    weights = np.ones(len(y))
    weights[::3] = 0
    X_spoilt, y_spoilt = X.copy(), y.copy()
    X_spoilt[::3], y_spoilt[::3] = 1e6, 9
    clf = CuttingPlaneSVC(**EXACT).fit(X_spoilt, y_spoilt, weights)
    on_weighted_rows = CuttingPlaneSVC(**EXACT).fit(X[weights > 0], y[weights > 0])
    assert clf.classes_.tolist() == [0, 1]
    assert clf.objective_ == pytest.approx(on_weighted_rows.objective_, rel=2e-7)


def test_a_saved_file_that_was_cut_is_refused(tmp_path):
    X, y = make_problem(2)
    path = tmp_path / "model.uk"
    CuttingPlaneSVC().fit(X, y).save(path)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(FormatError, match=r"model\.uk"):
        unkernel.load(path)
