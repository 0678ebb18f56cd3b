"""Rows to rank, and rankers that are trained on all pairs."""

from __future__ import annotations

import numpy as np
from sklearn.svm import LinearSVC

from reference import cutting_planes as reference

EXACT = {"tol": 1e-7, "max_iter": 10_000}


def make_ranking(seed, *, rows=40, features=5, labels=(1, 2, 3), groups=0):
    """Return rows, noisy labels, and groups if requested."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)) * (rng.random((rows, features)) < 0.7)
    value = X[:, 0] - X[:, 1] + 0.7 * rng.normal(size=rows)
    codes = np.digitize(value, np.quantile(value, np.linspace(0, 1, len(labels) + 1)[1:-1]))
    return X, np.array(labels)[codes], rng.integers(0, groups, rows) if groups else None


def listed_pairs(y, qid=None, weights=None, pair_weight=None):
    """Return the slow twin's list of all pairs, and the total weight."""
    values, ranks = np.unique(y, return_inverse=True)
    table = ()
    if pair_weight == "ndcg":
        losses = reference.swap_losses(y, () if qid is None else qid, () if weights is None else weights)
        weight = np.ones(len(y)) if weights is None else np.asarray(weights)
        pairs = [(i, j, weight[i] * weight[j] * loss) for (i, j), loss in losses.items()]
        return pairs, float(weight.sum())
    if pair_weight:
        table = [[pair_weight.get((high, low), 1.0) for low in values] for high in values]
    weights_or_none = () if weights is None else weights
    pairs = list(reference.ordered_pairs(ranks, () if qid is None else qid, weights_or_none, table))
    return pairs, len(y) if weights is None else float(np.sum(weights))


def solve_pairs(X, C, pairs, total):
    """Return the least objective, by LIBLINEAR on the differences of all pairs."""
    i, j, v = (np.array(column) for column in zip(*pairs, strict=True))
    is_weighted = v > 0
    i, j, v = i[is_weighted], j[is_weighted], v[is_weighted]
    binary_labels = np.where(np.arange(len(i)) % 2 == 0, 1.0, -1.0)  # LIBLINEAR requires two classes
    peer = LinearSVC(loss="hinge", C=1.0, tol=1e-9, fit_intercept=False, max_iter=500_000, random_state=0)
    peer.fit(
        (X[i] - X[j]) * binary_labels[:, None], binary_labels, C * reference.pair_scale(pairs, total) * v
    )
    return reference.objective(peer.coef_[0], X, C, lambda s: reference.ordinal_risk(pairs, total, s))
