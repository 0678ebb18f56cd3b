"""Slow polynomial SVMs: explicit maps, full kernel matrices, plain loops."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import numpy as np


def kernel(A, B, *, degree, gamma, coef0):
    """Return (gamma <a, b> + coef0) ** degree for all pairs."""
    return (gamma * (A @ B.T) + coef0) ** degree


def monomials(n_features, degree):
    """Return every multiset of at most `degree` features, as tuples, the empty one first."""
    return [m for k in range(degree + 1) for m in combinations_with_replacement(range(n_features), k)]


def squared_constant(monomial, *, degree, gamma, coef0, feature_map):
    """Return c^2 of one monomial: its multinomial share of the kernel, or 1 under the plain map."""
    if feature_map == "plain":
        return 1.0
    k = len(monomial)
    repeats = math.prod(math.factorial(monomial.count(f)) for f in set(monomial))
    return math.comb(degree, k) * coef0 ** (degree - k) * gamma**k * math.factorial(k) / repeats


def expand(X, *, degree, gamma, coef0, feature_map="kernel"):
    """Return the mapped rows phi(x), dense, one column per monomial."""
    columns = []
    for monomial in monomials(X.shape[1], degree):
        c = math.sqrt(
            squared_constant(monomial, degree=degree, gamma=gamma, coef0=coef0, feature_map=feature_map)
        )
        columns.append(c * np.prod(X[:, list(monomial)], axis=1) if monomial else np.full(len(X), c))
    return np.column_stack(columns)


def loss(kind, slack):
    violation = np.maximum(slack, 0.0)
    return violation if kind == "hinge" else violation**2


def primal(w, Phi, y, costs, kind):
    """Return 1/2 |w|^2 + sum_i costs_i loss(1 - y_i w'phi_i)."""
    return 0.5 * w @ w + costs @ loss(kind, 1.0 - y * (Phi @ w))


def solve_dual(K, y, costs, kind, *, sweeps=20000, gap=1e-9):
    """Solve the dual by coordinate descent on the full kernel matrix, in order, until the gap is tiny.

    Return the coefficients b_i = y_i alpha_i and the primal objective.
    """
    Q = K * np.outer(y, y)
    diagonal = np.zeros(len(y)) if kind == "hinge" else 0.5 / costs
    upper = costs if kind == "hinge" else np.full(len(y), np.inf)
    alpha = np.zeros(len(y))
    margins = np.zeros(len(y))  # y_i f(x_i)
    for _ in range(sweeps):
        for i in range(len(y)):
            curvature = Q[i, i] + diagonal[i]
            gradient = margins[i] - 1.0 + diagonal[i] * alpha[i]
            new = np.clip(alpha[i] - gradient / curvature, 0.0, upper[i])
            margins += (new - alpha[i]) * Q[i]
            alpha[i] = new
        squared = alpha @ margins
        primal_value = 0.5 * squared + costs @ loss(kind, 1.0 - margins)
        dual_value = alpha.sum() - 0.5 * squared - 0.5 * diagonal @ alpha**2
        if primal_value - dual_value <= gap * primal_value:
            break
    return y * alpha, primal_value
