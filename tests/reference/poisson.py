"""Slow Poisson regressions: an explicit map, the deviance by its definition, and a general optimiser."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import xlogy


def half_deviance(y, mean):
    """Return half of the Poisson deviance of each count."""
    return xlogy(y, np.where(y > 0, y, 1.0) / mean) - y + mean


def objective(Phi, y, w, C, *, l1=0.0, l2=1.0, weights=None):
    """Return l1 |w|_1 + l2/2 |w|^2 + C times the half deviances of counts with mean(y) exp(Phi w)."""
    weights = np.ones(len(y)) if weights is None else weights
    mean = np.average(y, weights=weights)
    losses = half_deviance(y, mean * np.exp(Phi @ w))
    return l1 * np.abs(w).sum() + 0.5 * l2 * (w @ w) + C * (weights @ losses)


def minimise(Phi, y, C, *, l1=0.0, l2=1.0, weights=None):
    """Return the least objective and its w; w = p - n with p, n >= 0 makes it smooth."""
    weights = np.ones(len(y)) if weights is None else weights
    mean = np.average(y, weights=weights)
    costs, size = C * mean * weights, Phi.shape[1]

    def value(parts):
        w = parts[:size] - parts[size:]
        scores = np.minimum(Phi @ w, 700.0)
        gradient = Phi.T @ (costs * (np.exp(scores) - y / mean)) + l2 * w
        total = l1 * parts.sum() + 0.5 * l2 * (w @ w) + costs @ (np.exp(scores) - y / mean * scores)
        return total, np.concatenate([l1 + gradient, l1 - gradient])

    parts = np.zeros(2 * size)
    options = {"maxiter": 50_000, "maxfun": 200_000, "ftol": 1e-16, "gtol": 1e-10, "maxcor": 50}
    for _ in range(5):  # a further run continues from the apparent end
        bounds = [(0, None)] * (2 * size)
        parts = minimize(value, parts, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    w = parts[:size] - parts[size:]
    return objective(Phi, y, w, C, l1=l1, l2=l2, weights=weights), w
