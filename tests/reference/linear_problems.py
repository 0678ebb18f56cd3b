"""Rows with noisy labels for linear classifiers."""

from __future__ import annotations

import numpy as np
from scipy import sparse

EXACT = {"tol": 1e-7, "max_iter": 10_000}


def make_problem(seed, *, rows=120, features=6, classes=2):
    """Return rows with noisy labels, which no weights separate."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)) * (rng.random((rows, features)) < 0.7)
    value = X[:, 0] - X[:, 1] + 0.7 * rng.normal(size=rows)
    y = np.digitize(value, np.quantile(value, np.linspace(0, 1, classes + 1)[1:-1]))
    return X, y


def large_problem(classes=2, rows=1500):
    rng = np.random.default_rng(2)
    X = sparse.random(rows, 400, density=0.03, format="csr", random_state=rng)
    value = X @ rng.normal(size=400) + 0.2 * rng.normal(size=rows)
    return X, np.digitize(value, np.quantile(value, np.linspace(0, 1, classes + 1)[1:-1]))


def imbalanced_problem(rows=1500):
    """Return rows with labels that no linear model separates; one row in ten is positive."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(rows, 8))
    value = X[:, 0] + 0.5 * X[:, 1] + 0.8 * rng.normal(size=rows)
    return X, (value > np.quantile(value, 0.9)).astype(int)


def regulariser(model, problem=0):
    """Return 1/2 w'w of the model's weights, including the intercept's."""
    constant = model.intercept_[problem] / model.intercept_scaling if model.fit_intercept else 0.0
    return 0.5 * (model.coef_[problem] @ model.coef_[problem] + constant**2)
