"""Slow l1- and elastic-net-regularised models: explicit maps and a general optimiser."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize

from reference import conjunctions
from reference import poly as reference


def loss_and_gradient(kind, F, codes, costs, epsilon=0.0):
    """Return the loss of scores F (rows x outputs) and its gradient; with one output, class 1 is positive.

    The squared error has targets instead of codes, and errors up to `epsilon` cost nothing.
    """
    if kind == "squared_error":
        errors = F[:, 0] - codes
        errors = np.sign(errors) * np.maximum(np.abs(errors) - epsilon, 0)
        return costs @ errors**2, (2 * costs * errors)[:, None]
    if kind == "softmax":
        shifted = F - F.max(axis=1, keepdims=True)
        logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        true_class = np.eye(F.shape[1])[codes]
        return -costs @ (logs * true_class).sum(axis=1), costs[:, None] * (np.exp(logs) - true_class)
    y = np.where(codes == 1, 1.0, -1.0)
    f = F[:, 0]
    if kind == "squared_hinge":
        slack = np.maximum(1 - y * f, 0)
        return costs @ slack**2, (-2 * costs * y * slack)[:, None]
    return costs @ np.logaddexp(0, -y * f), (-costs * y / (1 + np.exp(y * f)))[:, None]


def minimise(kind, Phi, codes, costs, *, l1=1.0, l2=0.0, outputs=1, epsilon=0.0):
    """Return the least l1 |W|_1 + l2/2 |W|^2 + loss, and its W; W = P - N with P, N >= 0 makes it smooth."""
    size = Phi.shape[1] * outputs

    def value(parts):
        W = (parts[:size] - parts[size:]).reshape(-1, outputs)
        loss, by_score = loss_and_gradient(kind, Phi @ W, codes, costs, epsilon)
        gradient = (Phi.T @ by_score + l2 * W).ravel()
        total = l1 * parts.sum() + 0.5 * l2 * (W**2).sum() + loss
        return total, np.concatenate([l1 + gradient, l1 - gradient])

    solution = minimize(
        value,
        np.zeros(2 * size),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * (2 * size),
        options={"maxiter": 50_000, "maxfun": 200_000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 50},
    )
    return solution.fun, (solution.x[:size] - solution.x[size:]).reshape(-1, outputs)


def expand_sets(X, **options):
    """Return the map of binary rows over sets of features: the largest of all monomials with the same
    support.
    """
    columns = {}
    Phi = reference.expand(X, **options)
    for monomial, column in zip(reference.monomials(X.shape[1], options["degree"]), Phi.T, strict=True):
        largest = columns.setdefault(frozenset(monomial), column)
        if column.max() > largest.max():
            columns[frozenset(monomial)] = column
    return np.column_stack(list(columns.values()))


def constant_of(model, conjunction, reduce=max):
    """Return c of a conjunction: of its monomial, or the largest of all monomials with its support.

    Under an l2 penalty, a weight is spread over all these monomials; then `reduce` is `sum`.
    """
    options = {
        "degree": model.degree,
        "gamma": model.gamma,
        "coef0": model.coef0,
        "feature_map": model.feature_map,
    }
    if not model.sets:
        return math.sqrt(reference.squared_constant(conjunction, **options))
    return math.sqrt(
        reduce(
            reference.squared_constant(m, **options)
            for m in reference.monomials(len(model.columns), model.degree)
            if set(m) == set(conjunction)
        )
    )


def model_weights(model, reduce=max):
    """Return W of a model: its stored weights v = c w, the constant first."""
    order = conjunctions.list_conjunctions(len(model.columns), model.degree, model.sets)
    rows = [model.intercept / (constant_of(model, (), reduce) or 1.0)]
    rows += [
        v / constant_of(model, order[key], reduce)
        for key, v in zip(model.keys.tolist(), model.weights, strict=True)
    ]
    return np.array(rows)


def model_objective(kind, model, X, codes, costs, *, l1=1.0, l2=0.0, epsilon=0.0):
    """Return the objective of a model, from its stored weights alone."""
    W = model_weights(model, reduce=max if l1 > 0 else sum)
    F = np.array([conjunctions.score(model, x) for x in X])
    loss, _ = loss_and_gradient(kind, F, codes, costs, epsilon)
    return l1 * np.abs(W).sum() + 0.5 * l2 * (W**2).sum() + loss


def dual_bound(kind, Phi, F, codes, costs, *, l1=1.0, l2=0.0):
    """Return a lower bound of the optimum over all columns of Phi, by duality, from scores F of any model.

    With U = -dL/dF: max over s of sum_i g_i(s u_i) - sum_jk max(|Phi_j' s u_k| - l1, 0)^2 / (2 l2);
    for l2 = 0 no |Phi_j' s u_k| may exceed l1.
    """
    _, by_score = loss_and_gradient(kind, F, codes, costs)
    strengths = np.abs(Phi.T @ by_score)
    largest = max(strengths.max(), 1e-300)
    scales = [min(1.0, l1 / largest)] if l2 == 0 else np.linspace(0, 1, 2001)

    def value(s):
        excess = 0.0 if l2 == 0 else (np.maximum(s * strengths - l1, 0) ** 2).sum() / (2 * l2)
        return conjugate_sum(kind, s * by_score, codes, costs) - excess

    return max(value(s) for s in scales)


def conjugate_sum(kind, by_score, codes, costs):
    """Return sum_i g_i(u_i) for u_i = -by_score_i: min over t of L_i(t) + u_i't."""
    rows = costs > 0
    by_score, codes, costs = by_score[rows], codes[rows], costs[rows]
    if kind == "squared_hinge":
        a = np.abs(by_score[:, 0])
        return (a - a**2 / (4 * costs)).sum()
    if kind == "softmax":
        shares = by_score / costs[:, None] + np.eye(by_score.shape[1])[codes]
    else:
        lost = np.abs(by_score[:, 0]) / costs
        shares = np.column_stack([lost, 1 - lost])
    shares = np.clip(shares, 1e-300, 1.0)
    return -(costs[:, None] * shares * np.log(shares)).sum()
