"""Small rows whose labels depend on a conjunction of features, and on noise."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def make_problem(seed, *, rows=60, features=6, binary=True, classes=2, duplicates=False):
    """Return rows of all classes; with `duplicates`, only a quarter of the rows are distinct."""
    rng = np.random.default_rng(seed)
    X = (rng.random((rows, features)) < 0.5).astype(float)
    if not binary:
        X *= rng.normal(size=X.shape).round(2)
    if duplicates:
        X = X[rng.integers(0, max(rows // 4, 2), rows)]
    noisy = rng.random(rows) < 0.15
    y = np.where(noisy, rng.integers(0, classes, rows), X[:, 0] + 2 * X[:, 1] * X[:, 2] > 0.5).astype(int)
    y[:classes] = np.arange(classes)
    return X, y


def wide_problem(binary, classes=2, rows=600, features=150):
    """Return sparse rows; their classes are ranges of the scores of a linear model."""
    rng = np.random.default_rng(2)
    X = sparse.random(rows, features, density=0.06, format="csr", random_state=rng)
    if binary:
        X.data[:] = 1
    w = rng.normal(size=features)
    y = np.digitize(X @ w, np.quantile(X @ w, np.linspace(0, 1, classes + 1)[1:-1]))
    return X, y
