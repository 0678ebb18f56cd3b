"""Slow updates of models: explicit maps, curvatures by their definition, and a general optimiser."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from reference import conjunctions
from reference.sparse import constant_of, loss_and_gradient


class Update:
    """The problem of an update: new rows, and the loss of the old rows as a function of each weight.

    The new rows have the features of the updated model, in its order.
    """

    def __init__(self, kind, old, updated, rows, *, kept, l1, l2):
        X, targets, costs = rows
        self.kind, self.targets, self.costs, self.kept, self.l1, self.l2 = kind, targets, costs, kept, l1, l2
        order = conjunctions.list_conjunctions(len(updated.columns), updated.degree, updated.sets)
        self.order = order
        self.constants = np.array([constant_of(updated, T, max if l1 > 0 else sum) for T in order])
        X = X[:, updated.columns]
        self.monomials = np.column_stack([X[:, list(T)].prod(axis=1) for T in order])
        scores = len(old.intercept)
        self.old_weights = np.zeros((len(order), scores))
        self.curvatures = np.zeros((len(order), scores))
        self.old_weights[0], self.curvatures[0] = old.intercept, old.curvatures[0]
        features, weights = np.split(old.curvatures[1:].astype(float), [len(old.columns)])
        total = old.curvatures[0].astype(float)
        for j, T in enumerate(order):
            if l1 > 0 and j > 0 and all(rank < len(features) for rank in T):
                self.curvatures[j] = total * np.prod([features[rank] / total for rank in T], axis=0)
        self.old_weights[old.keys.astype(int)] = old.weights
        self.curvatures[old.keys.astype(int)] = weights
        c = self.constants[:, None]
        self.slopes = -(l1 * np.sign(self.old_weights) / c + l2 * self.old_weights / c**2)
        for j, T in enumerate(order):
            if len(T) == 1 and T[0] < len(old.slopes):
                limit = l1 / self.constants[j]
                known = old.slopes[T[0]].astype(float).clip(-limit, limit)
                self.slopes[j] = np.where(self.old_weights[j] == 0, known, self.slopes[j])
        self.slopes[self.curvatures == 0] = 0

    def smooth_part(self, v):
        """Return everything but the l1 penalty, and its gradient, at stored weights v."""
        distance = v - self.old_weights
        pull = self.slopes + 0.5 * self.curvatures * distance
        F = self.monomials @ v
        if self.kind == "squared_error":
            residuals = F[:, 0] - self.targets
            loss, by_score = self.costs @ residuals**2, (2 * self.costs * residuals)[:, None]
        else:
            loss, by_score = loss_and_gradient(self.kind, F, self.targets, self.costs)
        c = self.constants[:, None]
        value = loss + self.kept * (pull * distance).sum() + 0.5 * self.l2 * ((v / c) ** 2).sum()
        gradient = self.monomials.T @ by_score + self.l2 * v / c**2
        return value, gradient + self.kept * (self.slopes + self.curvatures * distance)

    def objective(self, model):
        """Return the objective of a model."""
        v = np.zeros_like(self.old_weights)
        v[0], v[model.keys.astype(int)] = model.intercept, model.weights
        return self.smooth_part(v)[0] + self.l1 * np.abs(v / self.constants[:, None]).sum()

    def minimum(self):
        """Return the smallest objective."""
        shape, size = self.old_weights.shape, self.old_weights.size
        costs_of_weights = self.l1 / np.repeat(self.constants, shape[1])

        def value(parts):
            smooth, gradient = self.smooth_part((parts[:size] - parts[size:]).reshape(shape))
            total = smooth + costs_of_weights @ (parts[:size] + parts[size:])
            gradient = gradient.ravel()
            return total, np.concatenate([costs_of_weights + gradient, costs_of_weights - gradient])

        return minimize(
            value,
            np.concatenate(
                [np.maximum(self.old_weights.ravel(), 0), np.maximum(-self.old_weights.ravel(), 0)]
            ),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * (2 * size),
            options={"maxiter": 50_000, "maxfun": 200_000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 50},
        ).fun


def curvatures(model, X, costs, scores):
    """Return the curvatures of the logistic loss in the intercept, the features and the conjunctions.

    The parabola of a row touches log(1 + exp(-f)) at the score f, and meets it at -f.
    """
    logits = scores
    if scores.shape[1] > 1:  # each class against the others
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        logits = np.log(shares / (1 - shares))
    by_row = costs[:, None] * np.tanh(logits / 2) / (2 * logits)
    order = conjunctions.list_conjunctions(len(model.columns), model.degree, model.sets)
    X = X[:, model.columns]
    products = [X[:, list(order[key])].prod(axis=1) for key in model.keys.astype(int)]
    return (np.column_stack([np.ones(len(X)), *X.T, *products]) ** 2).T @ by_row
