"""PolyLogisticRegression, compared with explicit maps, a general optimiser, LIBLINEAR and scikit-learn."""

from __future__ import annotations

import functools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import unkernel
from reference import conjunctions, poly_problems
from reference import poly as reference
from reference import sparse as twin
from reference.poly_problems import wide_problem
from reference.processes import check_interrupt, needs_sigint
from reference.selection import few_examples, parametrize_pairs
from unkernel import PolyLogisticRegression

SHARES = {"l1": (1.0, 0.0), "l2": (0.0, 1.0), "elasticnet": (0.3, 0.7)}
PENALTIES = ["l1", "l2", "elasticnet"]
make_problem = functools.partial(poly_problems.make_problem, rows=40, features=5)


def loss_kind(classes):
    return "logistic" if classes == 2 else "softmax"


def scores_of(clf, X):
    scores = clf.decision_function(X)
    return scores[:, None] if scores.ndim == 1 else scores


@parametrize_with_checks([PolyLogisticRegression(random_state=0)])
def test_passes_the_estimator_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        PolyLogisticRegression(1, class_weight="balanced"),
        PolyLogisticRegression(1, penalty="elasticnet"),
        PolyLogisticRegression(penalty="l2"),
    ]
)
def test_other_parameters_pass_the_estimator_checks_of_scikit_learn(estimator, check):
    check(estimator)


@parametrize_pairs(degree=[1, 2, 3], binary=[True, False], penalty=[*PENALTIES], classes=[2, 3])
def test_reaches_the_optimum_on_the_explicit_map(degree, binary, penalty, classes):
    X, y = make_problem(degree, binary=binary, duplicates=binary, classes=classes)
    weights = np.random.default_rng(5).integers(0, 4, len(y)).astype(float)
    weights[:classes] = 1.0
    clf = PolyLogisticRegression(
        degree, C=0.7, gamma=0.5, coef0=2.0, penalty=penalty, l1_ratio=0.3, tol=1e-8, random_state=0
    ).fit(X, y, weights)
    assert clf.gap_ <= 1e-7  # how close rounding allows it to the requested 1e-8 depends on the processor
    l1, l2 = SHARES[penalty]
    costs, kind = 0.7 * weights, loss_kind(classes)
    stored = twin.model_objective(kind, clf.to_model(), X, y, costs, l1=l1, l2=l2)
    assert clf.objective_ == pytest.approx(stored, rel=1e-8)
    expand = twin.expand_sets if penalty == "elasticnet" and binary else reference.expand
    Phi = expand(X, degree=degree, gamma=0.5, coef0=2.0)
    expected, _ = twin.minimise(kind, Phi, y, costs, l1=l1, l2=l2, outputs=1 if classes == 2 else classes)
    assert clf.objective_ == pytest.approx(expected, rel=2e-5)


@few_examples(10)
@given(
    seed=st.integers(0, 10**6),
    degree=st.integers(1, 3),
    binary=st.booleans(),
    classes=st.integers(2, 4),
    logarithm=st.floats(-3, 3),
)
def test_the_optimum_is_certified_for_any_c(seed, degree, binary, classes, logarithm):
    X, y = make_problem(seed, rows=25, features=4, binary=binary, duplicates=seed % 2 == 0, classes=classes)
    C, kind = 10.0**logarithm, loss_kind(classes)
    clf = PolyLogisticRegression(degree, C=C, gamma=0.7, tol=1e-5, max_iter=10**5, random_state=0).fit(X, y)
    costs = np.full(len(y), C)
    assert clf.gap_ <= 1e-5
    objective = twin.model_objective(kind, clf.to_model(), X, y, costs)
    assert clf.objective_ == pytest.approx(objective, rel=1e-8)
    Phi = reference.expand(X, degree=degree, gamma=0.7, coef0=1.0)
    assert twin.dual_bound(kind, Phi, scores_of(clf, X), y, costs) >= objective * (1 - 1e-4)


@few_examples(10)
@given(
    seed=st.integers(0, 10**6),
    degree=st.integers(1, 3),
    binary=st.booleans(),
    storage=st.sampled_from(["on_the_fly", "condensed"]),
    logarithm=st.floats(-4, 4),
)
def test_with_l2_the_optimum_is_certified_for_any_c_and_storage(seed, degree, binary, storage, logarithm):
    """Large C needs growing costs, and often Newton steps after the passes."""
    X, y = make_problem(seed, rows=25, features=4, binary=binary, duplicates=seed % 2 == 0)
    options = {"C": 10.0**logarithm, "gamma": 0.7, "tol": 1e-5, "max_iter": 10**5, "random_state": 0}
    clf = PolyLogisticRegression(degree, penalty="l2", storage=storage, **options).fit(X, y)
    costs = np.full(len(y), clf.C)
    assert clf.gap_ <= 1e-5
    objective = twin.model_objective("logistic", clf.to_model(), X, y, costs, l1=0.0, l2=1.0)
    assert clf.objective_ == pytest.approx(objective, rel=1e-8)
    Phi = reference.expand(X, degree=degree, gamma=0.7, coef0=1.0)
    bound = twin.dual_bound("logistic", Phi, scores_of(clf, X), y, costs, l1=0.0, l2=1.0)
    assert bound <= objective * (1 + 1e-9)


def test_with_l2_a_warm_start_needs_no_pass():
    X, y = wide_problem(True, 2)
    clf = PolyLogisticRegression(C=0.5, gamma=0.5, penalty="l2", warm_start=True, random_state=0).fit(X, y)
    weights, passes = clf.to_model().weights, clf.n_iter_
    assert clf.fit(X, y).n_iter_ == 0 < passes
    assert clf.to_model().weights == pytest.approx(weights, rel=1e-9, abs=1e-12)
    fresh = PolyLogisticRegression(C=0.6, gamma=0.5, penalty="l2", random_state=0).fit(X, y)
    warm = clf.set_params(C=0.6).fit(X, y)
    assert warm.n_iter_ < fresh.n_iter_
    assert warm.objective_ == pytest.approx(fresh.objective_, rel=2e-3)


@pytest.mark.parametrize("storage", ["on_the_fly", "condensed"])
def test_with_l2_results_do_not_depend_on_the_number_of_threads(storage):
    X, y = wide_problem(True, 2)
    options = {"C": 2.0, "penalty": "l2", "storage": storage, "random_state": 0}
    one = PolyLogisticRegression(**options).fit(X, y)
    three = PolyLogisticRegression(n_jobs=3, **options).fit(X, y)
    assert np.array_equal(one.to_model().weights, three.to_model().weights)
    assert (one.objective_, one.gap_) == (three.objective_, three.gap_)


def test_objective_equals_liblinears():
    X, y = make_problem(11, rows=300, features=7, binary=False)
    clf = PolyLogisticRegression(C=0.8, gamma=0.3, tol=1e-7).fit(X, y)
    Phi = reference.expand(X, degree=2, gamma=0.3, coef0=1.0)
    peer = LogisticRegression(
        l1_ratio=1, solver="liblinear", C=0.8, fit_intercept=False, tol=1e-9, max_iter=10**5, random_state=0
    )
    w = peer.fit(Phi, y).coef_[0]
    signs = np.where(y == 1, 1.0, -1.0)
    expected = np.abs(w).sum() + 0.8 * np.logaddexp(0, -signs * (Phi @ w)).sum()
    assert clf.objective_ == pytest.approx(expected, rel=1e-5)
    assert clf.decision_function(X) == pytest.approx(Phi @ w, abs=1e-2)
    assert clf.predict_proba(X) == pytest.approx(peer.predict_proba(Phi), abs=1e-3)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_probabilities_equal_scikit_learns(penalty):
    X, y = make_problem(12, rows=300, features=6, binary=False, classes=3)
    clf = PolyLogisticRegression(C=0.5, gamma=0.3, penalty=penalty, l1_ratio=0.3, tol=1e-8).fit(X, y)
    Phi = reference.expand(X, degree=2, gamma=0.3, coef0=1.0)
    peer = LogisticRegression(
        C=0.5, l1_ratio=SHARES[penalty][0], solver="saga", fit_intercept=False, tol=1e-8, max_iter=10**5
    ).fit(Phi, y)
    assert clf.predict_proba(X) == pytest.approx(peer.predict_proba(Phi), abs=1e-4)
    assert np.array_equal(clf.predict(X), peer.predict(Phi))


@pytest.mark.parametrize("classes", [2, 4])
def test_probabilities_follow_from_scores(classes):
    X, y = wide_problem(True, classes)
    clf = PolyLogisticRegression(C=2.0).fit(X, y)
    P = clf.predict_proba(X)
    assert P.shape == (600, classes)
    assert P.sum(axis=1) == pytest.approx(1.0)
    assert np.exp(clf.predict_log_proba(X)) == pytest.approx(P)
    scores = clf.decision_function(X)
    if classes == 2:
        assert P[:, 1] == pytest.approx(1 / (1 + np.exp(-scores)))
    else:
        assert pytest.approx(np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)) == P
    assert np.array_equal(clf.predict(X), clf.classes_[P.argmax(axis=1)])


def test_log_probabilities_do_not_underflow():
    clf = PolyLogisticRegression(1, C=1e6, gamma=1.0).fit([[0.0], [1.0]] * 20, [0, 1] * 20)
    logs = clf.predict_log_proba([[1e4], [-1e4]])
    assert np.isfinite(logs).all()
    assert logs.min() < -1000
    assert clf.predict_proba([[1e4]]).tolist() == [[0.0, 1.0]]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("engine", [None, "auto", "file"])
def test_probabilities_survive_files_and_compilation(tmp_path, classes, engine):
    X, y = wide_problem(True, classes)
    clf = PolyLogisticRegression(C=2.0).fit(X, y)
    path = tmp_path / "model.uk"
    if engine is None:
        clf.save(path)
    elif engine == "auto":
        unkernel.compile(clf).save(path)
    else:
        clf.save(path)
        unkernel.compile(path).save(path)
    loaded = unkernel.load(path)
    assert loaded.predict_proba(X) == pytest.approx(clf.predict_proba(X), abs=1e-12)
    assert np.array_equal(loaded.predict(X), clf.predict(X))


@pytest.mark.parametrize("degree", [2, 3])
@pytest.mark.parametrize("classes", [2, 3])
def test_results_do_not_depend_on_the_number_of_threads(degree, classes):
    X, y = wide_problem(True, classes)
    single_threaded = PolyLogisticRegression(degree, C=2.0, random_state=0).fit(X, y).to_model()
    multi_threaded = PolyLogisticRegression(degree, C=2.0, n_jobs=3, random_state=0).fit(X, y).to_model()
    assert np.array_equal(single_threaded.keys, multi_threaded.keys)
    assert np.array_equal(single_threaded.weights, multi_threaded.weights)


def test_sparser_models_for_smaller_c():
    X, y = wide_problem(True, 3)
    sizes = [PolyLogisticRegression(C=C).fit(X, y).to_model().n_conjunctions for C in (0.01, 0.3, 3.0)]
    assert sizes[0] < sizes[1] < sizes[2] < 5000


def test_weights_are_repeated_rows():
    X, y = make_problem(6, rows=60, binary=False, classes=3)
    repeats = np.random.default_rng(1).integers(0, 4, 60)
    repeats[:3] = 1
    options = {"C": 0.5, "tol": 1e-6, "random_state": 0}
    weighted = PolyLogisticRegression(**options).fit(X, y, repeats.astype(float)).to_model()
    repeated = (
        PolyLogisticRegression(**options).fit(np.repeat(X, repeats, 0), np.repeat(y, repeats)).to_model()
    )
    assert np.array_equal(weighted.keys, repeated.keys)
    assert np.array_equal(weighted.weights, repeated.weights)


def test_class_weight_multiplies_c():
    X, y = make_problem(7, classes=3)
    factors = {0: 1.0, 1: 3.0, 2: 0.5}
    by_class = PolyLogisticRegression(gamma=0.5, class_weight=factors, tol=1e-8).fit(X, y)
    by_row = PolyLogisticRegression(gamma=0.5, tol=1e-8).fit(X, y, np.array([factors[k] for k in y]))
    assert by_class.objective_ == pytest.approx(by_row.objective_, rel=1e-7)


def test_warm_start_along_a_path_of_c():
    X, y = wide_problem(True, 3)
    warm = PolyLogisticRegression(gamma=0.5, tol=1e-5, warm_start=True, random_state=0)
    steps = fresh_steps = 0
    for C in np.geomspace(0.2, 4.0, 6):
        warm.set_params(C=C).fit(X, y)
        fresh = PolyLogisticRegression(C=C, gamma=0.5, tol=1e-5, random_state=0).fit(X, y)
        assert warm.objective_ == pytest.approx(fresh.objective_, rel=3e-5)
        steps, fresh_steps = steps + warm.n_iter_, fresh_steps + fresh.n_iter_
    assert steps < fresh_steps
    warm.fit(X, y)
    assert warm.n_iter_ <= 1


def test_a_warm_start_helps_with_other_rows_and_features():
    X, y = wide_problem(True, 3)
    X, y = sparse.csr_matrix(X), np.asarray(y)
    fewer = sparse.csr_matrix(X.multiply(np.arange(X.shape[1]) % 9 > 0))  # without every ninth feature
    for first, second in ((X, X[len(y) // 10 :]), (X[len(y) // 10 :], X), (X, fewer), (fewer, X)):
        options = {"C": 2.0, "gamma": 0.5, "tol": 1e-4, "random_state": 0}
        warm = PolyLogisticRegression(warm_start=True, **options).fit(first, y[-first.shape[0] :])
        before = warm.to_model().columns
        warm.fit(second, y[-second.shape[0] :])
        fresh = PolyLogisticRegression(**options).fit(second, y[-second.shape[0] :])
        assert not np.array_equal(before, fresh.to_model().columns)
        assert warm.objective_ == pytest.approx(fresh.objective_, rel=3e-4)
        assert warm.n_iter_ < fresh.n_iter_


def test_a_tiny_c_gives_no_weights():
    X, y = make_problem(9, classes=3)
    clf = PolyLogisticRegression(C=1e-6).fit(X, y)
    assert clf.to_model().n_conjunctions == 0
    assert clf.gap_ <= 1e-15
    assert clf.predict_proba(X) == pytest.approx(1 / 3)


def test_works_in_grid_searches_and_pickles():
    X, y = wide_problem(False)
    search = GridSearchCV(
        PolyLogisticRegression(random_state=0), {"C": [0.1, 1.0]}, cv=3, scoring="neg_log_loss"
    )
    search.fit(X, y)
    clf = pickle.loads(pickle.dumps(search.best_estimator_))
    assert np.array_equal(clf.predict_proba(X), search.predict_proba(X))


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({"degree": 4}, "degree"),
        ({"C": 0}, "C"),
        ({"penalty": "l0"}, "penalty"),
        ({"l1_ratio": 1.5}, "l1_ratio"),
        ({"l1_ratio": 0.0}, "l1_ratio"),
        ({"gamma": 0}, "gamma"),
        ({"tol": 0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"class_weight": {7: 1.0}}, "class_weight"),
    ],
)
def test_bad_parameters_are_named(parameters, complaint):
    with pytest.raises(ValueError, match=complaint):
        PolyLogisticRegression(**parameters).fit([[0.0], [1.0]], [0, 1])


def test_costs_that_overflow_are_refused():
    X, y = make_problem(2, binary=False)
    with pytest.raises(ValueError, match="C"):
        PolyLogisticRegression(C=1e308).fit(X, y, np.full(len(y), 10.0))


def test_fits_that_do_not_converge_warn():
    X, y = make_problem(9, rows=200, binary=False)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        PolyLogisticRegression(C=1e4, gamma=5.0, tol=1e-9, max_iter=2).fit(X, y)


@pytest.mark.hostile
@needs_sigint
def test_stops_promptly_on_ctrl_c():
    check_interrupt("""
        import numpy as np
        from unkernel import PolyLogisticRegression
        rng = np.random.default_rng(0)
        X, y = rng.random((20000, 40)), rng.integers(0, 3, 20000)
        learner = PolyLogisticRegression(3, C=1e3, gamma=10, tol=1e-12, max_iter=10**6)
        learner.fit_reporting(X, y, None, on_progress=on_progress)
    """)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_objective_is_computed_from_the_weights_where_kernels_are_huge():
    """Kernel values of 1e20 have rounding errors: the objective is computed from weights instead."""
    rng = np.random.default_rng(41)
    X = rng.normal(size=(33, 4)) * [27, 4e-4, 2500, 5e-5]
    y = rng.integers(0, 2, 33)
    clf = PolyLogisticRegression(3, C=380.0, penalty="l2", feature_map="plain", tol=1e-6).fit(X, y)
    recomputed = twin.model_objective("logistic", clf.to_model(), X, y, np.full(33, 380.0), l1=0.0, l2=1.0)
    assert clf.objective_ == pytest.approx(recomputed, rel=1e-6)


def test_many_columns_with_few_entries_are_solved_to_the_optimum():
    """The Hessian is not formed: descent and joint moves work on the entries of the columns."""
    rng = np.random.default_rng(0)
    X = (rng.random((800, 300)) < 0.03).astype(float)
    y = X[:, 0] * X[:, 1] + X[:, :20].sum(axis=1) + 0.3 * rng.normal(size=800) > 0.6
    clf = PolyLogisticRegression(2, C=10.0, gamma=1.0, tol=1e-6, random_state=0).fit(X, y)
    assert clf.gap_ <= 1e-6
    mapped = reference.expand(X, degree=2, gamma=1.0, coef0=1.0)
    mapped = mapped[:, np.abs(mapped).sum(axis=0) > 0]
    peer = LogisticRegression(
        l1_ratio=1.0,
        C=10.0,
        solver="liblinear",
        fit_intercept=False,
        tol=1e-8,
        max_iter=10_000,
        random_state=0,
    ).fit(mapped, y)
    w = peer.coef_[0]
    margins = np.where(y, 1.0, -1.0) * (mapped @ w)
    assert clf.objective_ <= (np.abs(w).sum() + 10.0 * np.logaddexp(0.0, -margins).sum()) * (1 + 1e-6)
    weights = np.abs(clf.to_model().weights)
    assert weights[weights > 0].min() > 1e-10 * weights.max()  # descent sets weights to exactly 0


def _implied_problem():
    """Return rows where some features always occur together, so many conjunctions hold in the same rows."""
    rng = np.random.default_rng(3)
    X = (rng.random((150, 4)) < 0.4).astype(float)
    X = np.column_stack([X, X[:, 0], X[:, 0] * X[:, 1], np.ones(150)])
    margins = 2 * X[:, 0] * X[:, 1] - 2 * X[:, 2] + rng.normal(size=150)
    return X, (margins > 0).astype(int)


@parametrize_pairs(classes=[2, 3], coef0=[0.2, 1.0, 5.0], penalty=["l1", "elasticnet"])
def test_conjunctions_of_the_same_rows_reach_the_optimum(penalty, coef0, classes):
    X, y = _implied_problem()
    y = y + (classes == 3) * (X[:, 2] > 0)
    options = {"gamma": 0.5, "coef0": coef0}
    clf = PolyLogisticRegression(3, penalty=penalty, l1_ratio=0.3, tol=1e-8, random_state=0, **options)
    clf.fit(X, y)
    l1, l2 = SHARES[penalty]
    costs = np.ones(len(y))
    objective = twin.model_objective(loss_kind(classes), clf.to_model(), X, y, costs, l1=l1, l2=l2)
    assert clf.objective_ == pytest.approx(objective, rel=1e-9)
    Phi = twin.expand_sets(X, degree=3, **options)
    bound = twin.dual_bound(loss_kind(classes), Phi, scores_of(clf, X), y, costs, l1=l1, l2=l2)
    assert bound == pytest.approx(objective, rel=1e-5)


def test_of_conjunctions_of_the_same_rows_one_has_the_weight():
    X, y = _implied_problem()
    clf = PolyLogisticRegression(2, gamma=0.5, warm_start=True, tol=1e-6, random_state=0).fit(X, y)
    model = clf.to_model()
    order = conjunctions.list_conjunctions(len(model.columns), 2, model.sets)
    row_sets = {X[:, model.columns[list(order[key])]].all(axis=1).tobytes() for key in model.keys.tolist()}
    assert len(row_sets) == model.n_conjunctions > 3
    objective = clf.objective_
    assert clf.fit(X, y).objective_ == pytest.approx(objective, rel=1e-9)


def test_a_start_with_several_conjunctions_of_the_same_rows_keeps_their_sum():
    X, y = _implied_problem()
    clf = PolyLogisticRegression(2, gamma=0.5, penalty="elasticnet", warm_start=True, random_state=0)
    clf.fit(X, y)
    shared = clf.to_model().n_conjunctions
    clf.set_params(penalty="l1", tol=1e-8).fit(X, y)
    fresh = PolyLogisticRegression(2, gamma=0.5, tol=1e-8, random_state=0).fit(X, y)
    assert clf.objective_ == pytest.approx(fresh.objective_, rel=1e-7)
    assert clf.to_model().n_conjunctions < shared
