"""Ways to finish training without sweeps: each one reaches the optimum, within the memory limit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import unkernel.poly._base as base_module
from reference import real_data
from unkernel import PolySVC

LARGEST_GRAM = 8 * 4096**2  # bytes


class ReportingSVC(PolySVC):
    """A PolySVC that stores the core's report about its training."""

    def _train(self, training_set, start, on_progress):
        self.report_ = super()._train(training_set, start, on_progress)
        return self.report_


def make_reporting_class(finish):
    return type("Only", (ReportingSVC,), {"_finish": finish})


def make_dense_rows(rows, features, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features))
    return X, X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=rows) > 0


def make_set_rows(rows, features, share, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.random((rows, features)) < share).astype(float)
    return sparse.csr_matrix(X), X[:, :5].sum(axis=1) + rng.normal(size=rows) > 5 * share


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("finish", ["sweeps", "kernel_space", "second_order"])
def test_each_alternative_alone_reaches_the_optimum(finish, loss):
    X, y = make_dense_rows(1500, 4)
    options = {"C": 1.0, "gamma": 4.0, "loss": loss, "random_state": 0}
    best = PolySVC(2, tol=1e-6, max_iter=10**6, **options).fit(X, y)
    clf = make_reporting_class(finish)(2, max_iter=10**5, **options).fit(X, y)
    assert clf.gap_ <= clf.tol
    assert best.objective_ * (1 - best.gap_) <= clf.objective_ <= best.objective_ * (1 + 2e-3)
    assert set(clf.report_.finishes) <= {"sweeps", finish}


def test_unknown_alternatives_are_refused():
    with pytest.raises(ValueError, match="finish must be"):
        make_reporting_class("guess")(2).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("storage", ["on_the_fly", "condensed"])
def test_rows_at_their_bound_are_not_finished_in_kernel_space(storage):
    """Nearly all dual variables reach their bound and are removed in the same epoch."""
    X, y = make_set_rows(5000, 60, 0.4)
    clf = ReportingSVC(3, C=1e-4, gamma=1.0, storage=storage, random_state=0).fit(X, y)
    assert clf.gap_ <= clf.tol
    assert clf.report_.matrix_bytes <= LARGEST_GRAM


@pytest.mark.parametrize("finish", ["kernel_space", "second_order"])
def test_matrices_fit_into_the_memory_that_is_left(finish, monkeypatch):
    in_kernel_space = finish == "kernel_space"
    degree, C = (3, 1e-4) if in_kernel_space else (2, 10.0)
    X, y = make_set_rows(5000, 60, 0.4) if in_kernel_space else make_dense_rows(2500, 6)
    options = {"C": C, "gamma": 1.0, "storage": "on_the_fly", "random_state": 0, "max_iter": 300}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        unlimited = make_reporting_class(finish)(degree, **options).fit(X, y)
        matrix_bytes = unlimited.report_.matrix_bytes
        assert unlimited.report_.finishes == [finish]
        limit = 0.5 * matrix_bytes + 2_000_000
        monkeypatch.setattr(base_module, "available_bytes", lambda: limit)
        limited = make_reporting_class(finish)(degree, **options).fit(X, y)
    assert matrix_bytes > 0
    assert limited.report_.matrix_bytes <= limit


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [0.1, 1.0])
def test_w8a(gamma):
    rows = real_data.load("w8a")
    clf = ReportingSVC(3, C=0.01, gamma=gamma, random_state=0).fit(rows.X, rows.y)
    assert clf.gap_ <= clf.tol
    assert clf.report_.matrix_bytes <= LARGEST_GRAM


@pytest.mark.slow
def test_w8a_converges_by_default_settings():
    """Sweeps alone take more than 3,000 epochs."""
    rows = real_data.load("w8a")
    clf = ReportingSVC(2, C=8, gamma=1 / 32, random_state=0).fit(rows.X, rows.y)
    assert clf.gap_ <= clf.tol
    assert clf.report_.finishes == ["kernel_space"]
