"""Updates of models with new rows, compared with a slow solution of the same problem."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import sparse as scipy_sparse

import unkernel
from reference.poly_problems import make_problem
from reference.update import Update, curvatures
from unkernel import PolyLogisticRegression, PolyRegressor, PolySVC

SHARES = {"l1": (1.0, 0.0), "l2": (0.0, 1.0), "elasticnet": (0.3, 0.7)}
OPTIONS = {"C": 0.7, "gamma": 0.5, "coef0": 2.0, "tol": 1e-7, "updatable": True, "random_state": 0}


def make_halves(*, degree=2, binary=True, classes=2):
    """Return old and new rows; the last feature occurs in new rows only."""
    X, y = make_problem(degree, rows=70, features=5, binary=binary, classes=classes)
    X[:40, 4] = 0
    return X[:40], y[:40], X[40:], y[40:]


def check_update(kind, clf, rows, *, old, penalty, forget=0.0):
    l1, l2 = SHARES[penalty]
    problem = Update(kind, old, clf.model_, rows, kept=1 - forget, l1=l1, l2=l2)
    assert problem.objective(clf.model_) == pytest.approx(problem.minimum(), rel=1e-6)


@pytest.mark.parametrize("forget", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("penalty", ["l1", "l2", "elasticnet"])
@pytest.mark.parametrize(("degree", "binary"), [(1, True), (2, True), (2, False), (3, True), (3, False)])
def test_logistic_updates_reach_the_optimum(degree, binary, penalty, classes, forget):
    X, y, X_new, y_new = make_halves(degree=degree, binary=binary, classes=classes)
    clf = PolyLogisticRegression(degree, penalty=penalty, l1_ratio=0.3, **OPTIONS).fit(X, y)
    old = clf.model_
    clf.update(X_new, y_new, forget=forget)
    kind = "logistic" if classes == 2 else "softmax"
    rows = X_new, y_new, np.full(len(y_new), 0.7)
    check_update(kind, clf, rows, old=old, penalty=penalty, forget=forget)
    assert clf.gap_ <= 1e-7


@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
def test_features_without_a_weight_keep_their_evidence(penalty):
    X, y, X_new, y_new = make_halves(degree=1)
    clf = PolyLogisticRegression(1, penalty=penalty, l1_ratio=0.9, **(OPTIONS | {"C": 0.1})).fit(X, y)
    for rows, targets in ((X_new[:15], y_new[:15]), (X_new[15:], y_new[15:])):
        old = clf.model_
        clf.update(rows, targets, forget=0.1)
        assert len(old.keys) < len(old.columns)
        problem = Update(
            "logistic",
            old,
            clf.model_,
            (rows, targets, np.full(len(targets), 0.1)),
            kept=0.9,
            l1=0.9 if penalty == "elasticnet" else 1.0,
            l2=0.1 if penalty == "elasticnet" else 0.0,
        )
        assert problem.objective(clf.model_) == pytest.approx(problem.minimum(), rel=1e-6)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_svm_updates_reach_the_optimum(penalty):
    X, y, X_new, y_new = make_halves()
    clf = PolySVC(2, penalty=penalty, loss="squared_hinge", class_weight={1: 3.0}, **OPTIONS).fit(X, y)
    old = clf.model_
    clf.update(X_new, y_new)
    rows = X_new, y_new, 0.7 * np.where(y_new == 1, 3.0, 1.0)
    check_update("squared_hinge", clf, rows, old=old, penalty=penalty)


@pytest.mark.parametrize("penalty", ["l1", "l2", "elasticnet"])
@pytest.mark.parametrize("binary", [True, False])
def test_regression_updates_reach_the_optimum(binary, penalty):
    X, _, X_new, _ = make_halves(binary=binary)
    rng = np.random.default_rng(0)
    y, y_new = rng.normal(5, 1, len(X)), rng.normal(7, 1, len(X_new))
    reg = PolyRegressor(2, penalty=penalty, l1_ratio=0.3, **OPTIONS).fit(X, y)
    old, centre = reg.model_, y.mean()
    reg.update(X_new, y_new)

    def remove_centre(model):
        return dataclasses.replace(model, intercept=model.intercept - centre)

    rows = X_new, y_new - centre, np.full(len(y_new), 0.7)
    l1, l2 = SHARES[penalty]
    problem = Update("squared_error", remove_centre(old), reg.model_, rows, kept=1, l1=l1, l2=l2)
    assert problem.objective(remove_centre(reg.model_)) == pytest.approx(problem.minimum(), rel=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("binary", [True, False])
def test_stored_curvatures_equal_the_slow_twin(binary, classes):
    X, y, _, _ = make_halves(binary=binary, classes=classes, degree=3)
    clf = PolyLogisticRegression(3, penalty="l2", **OPTIONS).fit(X, y)
    scores = clf.decision_function(X).reshape(len(X), -1)
    expected = curvatures(clf.model_, X, np.full(len(X), 0.7), scores)
    np.testing.assert_allclose(clf.model_.curvatures, expected, rtol=1e-5, atol=1e-12)
    errors = clf.predict_proba(X) - np.eye(classes)[y]
    slopes = 0.7 * X[:, clf.model_.columns].T @ errors[:, -scores.shape[1] :]
    np.testing.assert_allclose(clf.model_.slopes, slopes, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_forgetting_all_old_rows_is_a_fit_to_the_new_rows(penalty):
    X, y, X_new, y_new = make_halves()
    clf = PolyLogisticRegression(penalty=penalty, **OPTIONS).fit(X, y).update(X_new, y_new, forget=1)
    alone = PolyLogisticRegression(penalty=penalty, **OPTIONS).fit(X_new, y_new)
    np.testing.assert_allclose(clf.decision_function(X_new), alone.decision_function(X_new), atol=2e-3)
    assert clf.objective_ == pytest.approx(alone.objective_, rel=1e-5)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_an_update_comes_close_to_a_fit_to_all_rows(penalty):
    rng = np.random.default_rng(1)
    X = (rng.random((4000, 12)) < 0.4).astype(float)
    y = rng.random(4000) < 1 / (1 + np.exp(-2 * (X[:, 0] * X[:, 1] - X[:, 2] + X[:, 3] * X[:, 4])))
    options = {"penalty": penalty, "C": 0.1, "gamma": 0.5, "updatable": True}
    fitted = PolyLogisticRegression(**options).fit(X[:3000], y[:3000])
    updated = PolyLogisticRegression(**options).fit(X[:2700], y[:2700]).update(X[2700:3000], y[2700:3000])

    def log_loss(clf):
        return -np.mean(clf.predict_log_proba(X[3000:])[np.arange(1000), y[3000:].astype(int)])

    assert log_loss(updated) < 1.01 * log_loss(fitted)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_updates_do_not_depend_on_threads_storage_or_files(penalty, tmp_path):
    X, y, X_new, y_new = make_halves(binary=True)
    clf = PolyLogisticRegression(penalty=penalty, **OPTIONS).fit(X, y)
    clf.save(tmp_path / "model.uk")
    loaded = PolyLogisticRegression.load(tmp_path / "model.uk")
    loaded.set_params(n_jobs=2)
    scores = clf.update(X_new, y_new).decision_function(X)
    np.testing.assert_array_equal(
        scores, loaded.update(scipy_sparse.csr_matrix(X_new), y_new).decision_function(X)
    )
    np.testing.assert_array_equal(scores, unkernel.compile(loaded).decision_function(X))
    assert clf.model_.origin["updates"] == 1


def test_weights_count_as_repeated_rows():
    X, y, X_new, y_new = make_halves()
    weighted = PolyLogisticRegression(**OPTIONS).fit(X, y).update(X_new, y_new, np.full(len(y_new), 2.0))
    repeated = PolyLogisticRegression(**OPTIONS).fit(X, y).update(np.tile(X_new, (2, 1)), np.tile(y_new, 2))
    np.testing.assert_array_equal(weighted.model_.weights, repeated.model_.weights)


@pytest.mark.parametrize(
    ("learner", "options", "message"),
    [
        (PolyLogisticRegression, {"updatable": False}, "updatable=True"),
        (PolySVC, {"loss": "hinge"}, "squared_hinge"),
        (PolySVC, {"loss": "squared_hinge", "storage": "kernel"}, "storage"),
        (PolyRegressor, {"loss": "absolute_error"}, "squared_error"),
    ],
)
def test_learners_that_cannot_be_updated_say_why(learner, options, message):
    X, y, X_new, y_new = make_halves()
    with pytest.raises(ValueError, match=message):
        learner(**(OPTIONS | options)).fit(X, y).update(X_new, y_new)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X, y + 5), "class"),
        (lambda X, y: (X * 0.5, y), "0 and 1"),
        (lambda X, y: (X[:, :4], y), "features"),
        (lambda X, y: (np.where(X, np.nan, X), y), "NaN"),
        (lambda X, y: (X[:0], y[:0]), "0 sample"),
    ],
)
def test_bad_new_rows_are_refused_and_leave_the_model_unchanged(change, message):
    X, y, X_new, y_new = make_halves()
    clf = PolyLogisticRegression(**OPTIONS).fit(X, y)
    model = clf.model_
    with pytest.raises(ValueError, match=message):
        clf.update(*change(X_new, y_new))
    assert clf.model_ is model
    with pytest.raises(ValueError, match="forget"):
        clf.update(X_new, y_new, forget=1.5)


def test_parameters_that_define_the_model_cannot_change():
    X, y, X_new, y_new = make_halves()
    clf = PolyLogisticRegression(**OPTIONS).fit(X, y)
    for change in ({"degree": 3}, {"coef0": 5.0}, {"feature_map": "plain"}, {"penalty": "l2"}):
        original = {name: getattr(clf, name) for name in change}
        with pytest.raises(ValueError, match=next(iter(change))):
            clf.set_params(**change).update(X_new, y_new)
        clf.set_params(**original)


@pytest.mark.parametrize("C", [1e-2, 10.0, 1e3, 1e5])
@pytest.mark.parametrize("penalty", ["l1", "l2", "elasticnet"])
def test_updates_converge_for_any_cost(penalty, C):
    rng = np.random.default_rng(0)
    X = (rng.random((460, 12)) < 0.4).astype(float)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=460) > 0.8).astype(int)
    clf = PolyLogisticRegression(penalty=penalty, C=C, gamma=0.5, tol=1e-6, updatable=True, random_state=0)
    clf.fit(X[:400], y[:400]).update(X[400:], y[400:])
    assert clf.gap_ <= 1e-6


def test_a_row_without_a_loss_changes_nothing_and_converges():
    X, y, _, _ = make_halves()
    clf = PolyLogisticRegression(penalty="l2", **(OPTIONS | {"C": 1e4, "tol": 1e-3})).fit(X, y)
    surest = [int(np.abs(clf.decision_function(X)).argmax())]
    scores = clf.decision_function(X)
    clf.update(X[surest], y[surest])
    assert clf.gap_ <= 1e-3
    np.testing.assert_allclose(clf.decision_function(X), scores, rtol=1e-2)
