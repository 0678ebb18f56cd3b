"""Compiled models of scikit-learn behave as scikit-learn's users expect."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.svm import SVC, SVR, LinearSVC, OneClassSVM

import unkernel

RNG = np.random.default_rng(0)
BITS = RNG.integers(0, 2, (80, 5))
PARITY = BITS[:, 0] ^ BITS[:, 1]


@pytest.mark.parametrize(
    ("offset", "spread"), [(4e4, 1e-3), (4e4, 1.0), (-2e3, 1.0), (0.0, 1.0), (1e9, 10.0)]
)
def test_rbf_far_from_zero(offset, spread):
    """Distances between rows are exact even if the rows are far from 0 and close to each other."""
    X = offset + spread * np.random.default_rng(1).normal(size=(300, 2))
    y = ((X - offset).prod(axis=1) > 0).astype(int)
    svc = SVC().fit(X[:200], y[:200])
    fast = unkernel.compile(svc)
    np.testing.assert_allclose(fast.decision_function(X), svc.decision_function(X), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(fast.model.scores(X)[:, 0], svc.decision_function(X), rtol=1e-9, atol=1e-11)
    assert np.array_equal(fast.predict(X), svc.predict(X))


def test_rbf_of_sparse_rows_with_a_column_far_from_zero():
    X = np.random.default_rng(2).normal(size=(120, 4)) * (np.random.default_rng(3).random((120, 4)) < 0.4)
    X[::3, 3] += 5e4
    y = (X[:, 0] > X[:, 1]).astype(int)
    svc = SVC(gamma=0.5).fit(X, y)
    fast = unkernel.compile(svc)
    np.testing.assert_allclose(fast.decision_function(X), svc.decision_function(X), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_a_score_of_exactly_zero(kernel):
    svc = SVC(kernel=kernel).fit([[-1.0], [1.0]], [0, 1])
    row = [[0.0]]
    assert svc.decision_function(row)[0] == 0
    assert unkernel.compile(svc).predict(row) == svc.predict(row)
    linear = LinearSVC(fit_intercept=False).fit([[-1.0], [1.0]], [0, 1])
    assert unkernel.compile(linear).predict(row) == linear.predict(row)


def test_ties_survive_a_file(tmp_path):
    svc = SVC(kernel="linear").fit([[-1.0], [1.0]], [0, 1])
    unkernel.compile(svc).save(tmp_path / "m.uk")
    assert unkernel.load(tmp_path / "m.uk").predict([[0.0]]) == svc.predict([[0.0]])


def test_gamma_changed_after_fitting():
    svc = SVC(gamma=0.1).fit(BITS, PARITY)
    expected = svc.decision_function(BITS)
    svc.gamma = 5.0
    np.testing.assert_allclose(unkernel.compile(svc).decision_function(BITS), expected, rtol=1e-9)


def test_unscaled_values():
    svc = SVC().fit([[70000.0], [90000.0]], [0, 1])
    assert unkernel.compile(svc).predict([[70000.0], [90000.0]]).tolist() == [0, 1]


def test_columns_of_a_table_in_another_order():
    table = pd.DataFrame(BITS, columns=list("abcde"))
    fast = unkernel.compile(SVC(kernel="poly", degree=2, coef0=1).fit(table, PARITY))
    assert np.array_equal(fast.predict(table), fast.predict(BITS))
    with pytest.raises(ValueError, match="do not have the names, in the order"):
        fast.predict(table[list("bacde")])
    with pytest.raises(ValueError, match="do not have the names, in the order"):
        fast.explain(table[list("bacde")][:1])
    with pytest.raises(ValueError, match="do not have the names, in the order"):
        fast.explain(table[list("bacde")].iloc[0])
    assert fast.explain(table.iloc[0]).score == pytest.approx(fast.decision_function(table[:1])[0])


def test_compiled_models_are_classifiers_regressors_or_outlier_detectors():
    X, y = BITS.astype(float), np.linspace(0, 1, len(BITS))
    assert is_regressor(unkernel.compile(SVR().fit(X, y)))
    assert is_outlier_detector(unkernel.compile(OneClassSVM().fit(X)))
    assert is_classifier(unkernel.compile(SVC().fit(X, PARITY)))
    regression = unkernel.compile(SVR().fit(X, y))
    assert regression.score(X, y) == pytest.approx(SVR().fit(X, y).score(X, y))
    assert regression.score(X, np.ones(len(X))) == 0.0


def test_compiled_models_do_not_change_with_the_estimator():
    fast = unkernel.compile(SVC().fit(BITS, PARITY))
    with pytest.raises(TypeError, match="immutable"):
        fast.set_params(model=None)
    with pytest.raises(ValueError, match="n_jobs"):
        fast.predict(BITS, n_jobs="all")


def test_rows_of_values_are_not_explained_as_columns():
    table = pd.DataFrame(BITS, columns=list("abcde"))
    fast = unkernel.compile(SVC(kernel="poly", degree=2, coef0=1).fit(BITS, PARITY))
    expected = fast.decision_function(BITS[3:4])[0]
    for row in (table.iloc[[3]], table.iloc[3], BITS[3:4], (column for column in np.flatnonzero(BITS[3]))):
        assert fast.explain(row).score == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ValueError, match="occurs twice"):
        fast.explain(BITS[3])


def test_expansions_that_cannot_fit_are_not_built():
    X = (RNG.random((60, 90)) < 0.5).astype(float)
    fast = unkernel.compile(SVC(kernel="poly", degree=4, coef0=1).fit(X, X[:, 0] > 0))
    assert fast.engine in ("inverted", "bitsliced")
    assert any(candidate.note.startswith("not tried") for candidate in fast.candidates)
