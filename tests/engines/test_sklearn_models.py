"""Estimators of scikit-learn, compiled: the same scores, classes and probabilities."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, NuSVR, OneClassSVM

import unkernel
from reference.kernels import applicable
from reference.selection import slow_after
from unkernel.models import from_estimator

KERNELS = {
    "linear": {"kernel": "linear"},
    "poly2": {"kernel": "poly", "degree": 2, "coef0": 1.0},
    "poly3": {"kernel": "poly", "degree": 3, "coef0": 1.0},
    "poly3 homogeneous": {"kernel": "poly", "degree": 3},
    "rbf": {"kernel": "rbf"},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.1},
}
FAR = np.random.default_rng(1).normal(size=(300, 15))  # rows with ties between classes
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


def data(classes=2, *, real=False, seed=0, rows=90):
    rng = np.random.default_rng(seed)
    X = (rng.random((rows, 15)) < 0.4).astype(float)
    if real:
        X *= rng.normal(size=X.shape)
    y = (X @ rng.normal(size=15) + rng.normal(size=rows)).argsort().argsort() * classes // rows
    return X, np.array(["b", "a", "e", "d", "c"])[y]


def engines_for(estimator):
    return ("auto", *applicable(from_estimator(estimator)))


def assert_same_scores(found, expected):
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@every_kernel
@pytest.mark.parametrize(
    ("classes", "shape", "break_ties"),
    slow_after(
        3,
        [
            (2, "ovr", False),
            (3, "ovr", True),
            (5, "ovo", False),
            (2, "ovr", True),
            (2, "ovo", False),
            (3, "ovr", False),
            (3, "ovo", False),
            (5, "ovr", False),
            (5, "ovr", True),
        ],
    ),
)
def test_svc(kernel, classes, shape, break_ties):
    X, y = data(classes)
    svc = SVC(**KERNELS[kernel], decision_function_shape=shape, break_ties=break_ties).fit(X, y)
    for engine in engines_for(svc):
        fast = unkernel.compile(svc, engine)
        for test in (X, FAR):
            assert_same_scores(fast.decision_function(test), svc.decision_function(test))
            assert np.array_equal(fast.predict(test), svc.predict(test))
        assert np.array_equal(fast.classes_, svc.classes_)


@every_kernel
@pytest.mark.parametrize("real", [False, True])
def test_svc_of_sparse_rows(kernel, real):
    X, y = data(3, real=real)
    rows = sparse.csr_matrix(X)
    svc = SVC(**KERNELS[kernel]).fit(rows, y)
    for engine in engines_for(svc):
        fast = unkernel.compile(svc, engine)
        for test in (rows, rows * 0.7):
            assert_same_scores(fast.decision_function(test), svc.decision_function(test))
        assert np.array_equal(fast.predict(rows), svc.predict(rows))


def test_the_accuracy_equals_scikit_learns():
    X, y = data(3)
    svc = SVC(kernel="poly", degree=2).fit(X[:30], y[:30])
    fast = unkernel.compile(svc)
    assert fast.score(X, y) == svc.score(X, y) < 1
    weights = np.arange(len(y))
    assert fast.score(X, y, weights) == pytest.approx(svc.score(X, y, weights))
    assert fast.score(X, y, sample_weight=weights) != fast.score(X, y)


def test_break_ties_makes_a_difference():
    """Otherwise the first test would pass without breaking ties."""
    X, y = data(5)
    for kernel in KERNELS.values():
        tied, broken = (SVC(**kernel, break_ties=b).fit(X, y).predict(FAR) for b in (False, True))
        assert not np.array_equal(tied, broken)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("kind", [SVC, NuSVC])
def test_probabilities(kind, classes):
    X, y = data(classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # probability= leaves scikit-learn in 1.11
        svc = kind(kernel="poly", degree=2, coef0=1.0, probability=True, random_state=0).fit(X, y)
        expected = svc.predict_proba(X)
    for engine in engines_for(svc):
        fast = unkernel.compile(svc, engine)
        assert hasattr(fast, "predict_proba")
        assert_same_scores(fast.predict_proba(X), expected)
        assert_same_scores(fast.predict_proba(sparse.csr_matrix(X)), expected)


@pytest.mark.parametrize("classes", [2, 3])
def test_calibration_gives_probabilities(classes):
    X, y = data(classes, rows=200)
    fast = unkernel.compile(SVC(kernel="poly", degree=2, coef0=1.0).fit(X[:100], y[:100]))
    assert is_classifier(fast)
    calibrated = CalibratedClassifierCV(FrozenEstimator(fast)).fit(X[100:], y[100:])
    probabilities = calibrated.predict_proba(X)
    assert probabilities.shape == (200, classes)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
    assert calibrated.score(X, y) > 1.2 / classes


def test_errors_about_missing_probabilities_name_a_remedy():
    X, y = data()
    fast = unkernel.compile(SVC(kernel="poly", degree=2).fit(X, y))
    assert not hasattr(fast, "predict_proba")
    with pytest.raises(AttributeError) as caught:
        fast.predict_proba(X)
    whole = f"{caught.value} {caught.value.__cause__}"
    assert "CalibratedClassifierCV(FrozenEstimator(" in whole


@every_kernel
def test_nu_svc(kernel):
    X, y = data(3)
    svc = NuSVC(**KERNELS[kernel], nu=0.3).fit(X, y)
    for engine in engines_for(svc):
        fast = unkernel.compile(svc, engine)
        assert_same_scores(fast.decision_function(X), svc.decision_function(X))
        assert np.array_equal(fast.predict(X), svc.predict(X))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "estimator", [LinearSVC(random_state=0), LinearSVC(fit_intercept=False), LogisticRegression()]
)
def test_linear_classifiers(estimator, classes):
    X, y = data(classes, real=True)
    fitted = clone(estimator).fit(X, y)
    fast = unkernel.compile(fitted)
    assert fast.engine == "expanded"
    assert_same_scores(fast.decision_function(X), fitted.decision_function(X))
    assert np.array_equal(fast.predict(X), fitted.predict(X))
    assert fast.score(X, y) == fitted.score(X, y)


@every_kernel
@pytest.mark.parametrize("kind", [SVR, NuSVR])
def test_regression(kernel, kind):
    X, _ = data(real=True)
    y = X @ np.arange(15.0) + X[:, 0] * X[:, 1]
    svr = kind(**KERNELS[kernel]).fit(X, y)
    for engine in engines_for(svr):
        fast = unkernel.compile(svr, engine)
        assert_same_scores(fast.predict(X), svr.predict(X))
        assert fast.score(X, y) == pytest.approx(svr.score(X, y), rel=1e-9)
        assert not hasattr(fast, "predict_proba")


def test_linear_regression():
    X, _ = data(real=True)
    ridge = Ridge().fit(X, X @ np.arange(15.0))
    assert_same_scores(unkernel.compile(ridge).predict(X), ridge.predict(X))


@every_kernel
def test_one_class(kernel):
    X, _ = data()
    machine = OneClassSVM(**KERNELS[kernel], nu=0.2).fit(X)
    for engine in engines_for(machine):
        fast = unkernel.compile(machine, engine)
        assert_same_scores(fast.decision_function(X), machine.decision_function(X))
        assert np.array_equal(fast.predict(X), machine.predict(X))
        assert set(fast.predict(X)) == {-1, 1}


def test_a_search():
    X, y = data()
    search = GridSearchCV(SVC(kernel="poly", coef0=1.0), {"degree": [2, 3]}, cv=2).fit(X, y)
    assert np.array_equal(unkernel.compile(search).predict(X), search.predict(X))


@pytest.mark.parametrize("engine", ["auto", "inverted", "bitsliced", "expanded", "split"])
def test_copies_answer_as_the_original(engine):
    X, y = data(3)
    fast = unkernel.compile(SVC(kernel="poly", degree=2, coef0=1.0).fit(X, y), engine)
    expected = fast.decision_function(X)
    row = np.flatnonzero(X[0]).tolist()
    fast.score_one(row)
    for other in (pickle.loads(pickle.dumps(fast)), copy.deepcopy(fast), copy.copy(fast), clone(fast)):
        assert other is not fast
        assert np.array_equal(other.decision_function(X), expected)
        assert other.score_one(row) == fast.score_one(row)
        assert (other.engine, other.exact, other.nbytes) == (fast.engine, fast.exact, fast.nbytes)
        assert other.candidates == fast.candidates


def test_compiled_models_cannot_be_fitted():
    X, y = data()
    with pytest.raises(TypeError, match="cannot be fitted"):
        unkernel.compile(LinearSVC().fit(X, y)).fit(X, y)


def test_rows_of_another_width_are_refused():
    X, y = data()
    fast = unkernel.compile(SVC(kernel="poly", degree=2).fit(X, y))
    with pytest.raises(ValueError, match="X has 14 features, but the model was trained on 15"):
        fast.predict(X[:, 1:])
