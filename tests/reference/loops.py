"""The core's one-slack loop in the form that tests need, and checks of its outcome."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from reference import cutting_planes as reference
from unkernel import _core
from unkernel.cutplane.options import LoopOptions


def pack(X, *, threads=1):
    X = sparse.csr_matrix(X)
    return _core.pack_rows(X, threads=threads)


def default_options(dimension, most_cuts):
    return {
        "bundle": _core.Bundle(dimension, most_cuts, of_rows=False),
        "start": np.zeros(dimension),
        "on_progress": None,
        "observe": None,
    }


def loop_options(options):
    """Remove the options of the loop from all options, and return them."""
    usual = {"C": 1.0, "tolerance": 1e-6, "max_rounds": 2000, "threads": 1, "problem": 0, "problems": 1}
    return LoopOptions(**{name: options.pop(name, value) for name, value in usual.items()})


def minimise(X, oracle, **options):
    """Run the core's loop with the usual options of tests, on dense, sparse or packed rows."""
    rows = X if isinstance(X, _core.RowStore) else pack(X)
    intercept = options.pop("intercept", 0.0)
    dimension = rows.features + bool(intercept)
    loop = default_options(dimension, options.pop("most_cuts", 200))
    loop_settings = loop_options(options)
    return _core.minimise(loop_settings, rows=rows, oracle=oracle, intercept=intercept, **{**loop, **options})


def minimise_remote_risk(risk, dimension, **options):
    loop = {"steps_at_once": 1} | default_options(dimension, 200)
    return _core.minimise_remote_risk(loop_options(options), risk=risk, **{**loop, **options})


def make_rows(seed, *, rows=80, features=6):
    """Return rows with noisy labels, which no weights separate."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)) * (rng.random((rows, features)) < 0.7)
    y = np.where(X[:, 0] - X[:, 1] + 0.7 * rng.normal(size=rows) > 0.1, 1.0, -1.0)
    return X, y, rng


def check_outcome(actual, X, C, risk, tolerance):
    """Check that reported values match the weights, and that the gap is as requested."""
    assert actual["converged"]
    assert actual["objective"] == pytest.approx(reference.objective(actual["weights"], X, C, risk), rel=1e-9)
    assert 0.0 <= actual["bound"] <= actual["objective"] * (1 + 1e-9)
    assert actual["objective"] - actual["bound"] <= tolerance * actual["objective"]


def check_optimum(actual, optimum, tolerance):
    """Check the result against `optimum`, an objective of another solver, slightly above the true optimum."""
    assert actual["bound"] <= optimum * (1 + 1e-9)
    assert actual["objective"] <= optimum / (1 - tolerance) + 1e-9 * optimum


def liblinear(X, y, costs, *, squared):
    """Return LIBLINEAR's weights with the smallest tolerance, without a constant feature of its own."""
    loss = "squared_hinge" if squared else "hinge"
    peer = LinearSVC(
        loss=loss, dual=True, C=1.0, tol=1e-10, fit_intercept=False, max_iter=200_000, random_state=0
    )
    return peer.fit(X, y, sample_weight=costs).coef_[0]


class RemoteRows:
    """Rows of a cluster and their loss, computed with numpy."""

    def __init__(self, X, signed_costs):
        self.X, self.signed_costs = X, signed_costs
        self.scores = self.target_scores = np.zeros(len(X))
        self.requested_steps = []

    def at(self, step):
        return self.scores + step * (self.target_scores - self.scores)

    def aim(self, weights):
        self.target_scores = self.X @ weights

    def point(self, step):
        c = reference.margin_cut(self.signed_costs, self.at(step), squared=False)[1]
        slope = -c @ (self.target_scores - self.scores)
        return reference.margin_risk(self.signed_costs, self.at(step), squared=False), slope

    def along(self, steps):
        self.requested_steps.append(len(steps))
        return np.array([self.point(step) for step in steps])

    def cut(self, step):
        offset, c = reference.margin_cut(self.signed_costs, self.at(step), squared=False)
        return offset, self.X.T @ c

    def move(self, step):
        self.scores = self.at(step)
