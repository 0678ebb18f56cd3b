"""Losses that depend on all scores together, by enumerating all pairs or labelings, and training problems.

A cut is (offset, c) with risk(s') >= offset - c's' for all s', and equality at the scores where it was taken.
"""

from __future__ import annotations

from itertools import chain, combinations, permutations, product

import numpy as np

# --- Losses of single rows ------------------------------------------------------------------------


def margin_risk(signed_costs, scores, *, squared):
    """Return the sum of cost_i loss(1 - y_i s_i)."""
    lack = np.maximum(1.0 - np.sign(signed_costs) * scores, 0.0)
    return float(np.abs(signed_costs) @ (lack**2 if squared else lack))


def margin_cut(signed_costs, scores, *, squared):
    """Return the tangent at the scores: c = -dR/ds, and the offset R + c's."""
    lack = np.maximum(1.0 - np.sign(signed_costs) * scores, 0.0)
    c = signed_costs * (2.0 * lack if squared else lack > 0)
    # s = y (1 - lack) wherever c is not 0. In this form, the terms with a huge s do not cancel.
    loss_and_product = lack * (2.0 - lack) if squared else (lack > 0).astype(float)
    return float(np.abs(signed_costs) @ loss_and_product), c


# --- Pairs ----------------------------------------------------------------------------------------


def ordered_pairs(ranks, groups=(), weights=(), pair_weights=()):
    """Return (i, j, v) for all pairs in a group where i ranks above j; v is the pair's weight."""
    for i, j in product(range(len(ranks)), repeat=2):
        if ranks[i] > ranks[j] and (len(groups) == 0 or groups[i] == groups[j]):
            v = weights[i] * weights[j] if len(weights) else 1.0
            yield i, j, v * (pair_weights[ranks[i]][ranks[j]] if len(pair_weights) else 1.0)


def ndcg(relevance):
    """Return NDCG of rows in this order, without a cutoff."""
    discounts = 1.0 / np.log2(np.arange(len(relevance)) + 2.0)
    gains = np.exp2(np.asarray(relevance, dtype=float)) - 1.0
    return gains @ discounts / (np.sort(gains)[::-1] @ discounts)


def swap_losses(y, groups=(), weights=()):
    """Return {(i, j): mean loss of NDCG over all best orders of their group if i and j are swapped}."""
    y, losses = np.asarray(y), {}
    for group in np.unique(groups) if len(groups) else [None]:
        members = [
            i
            for i in range(len(y))
            if (group is None or groups[i] == group) and (len(weights) == 0 or weights[i] > 0)
        ]
        best = [order for order in permutations(members) if (np.diff(y[list(order)]) <= 0).all()]
        for i, j in product(members, repeat=2):
            if y[i] > y[j]:
                swapped_losses = [1.0 - ndcg(y[_swap(order, i, j)]) for order in best]
                losses[i, j] = float(np.mean(swapped_losses))
    return losses


def _swap(order, i, j):
    return [{i: j, j: i}.get(row, row) for row in order]


def pair_scale(pairs, total):
    """Return the factor that makes the mean over pairs as large as a sum over rows with this total weight."""
    return total / sum(v for _, _, v in pairs)


def ordinal_cut(pairs, total, scores):
    """Return the cut of the pairs that violate `s_j <= s_i - 1`, evaluated in floating point."""
    scale = pair_scale(pairs, total)
    offset, c = 0.0, np.zeros(len(scores))
    for i, j, v in pairs:
        if not scores[j] <= scores[i] - 1.0:
            offset += scale * v
            c[i] += scale * v
            c[j] -= scale * v
    return offset, c


def ordinal_risk(pairs, total, scores):
    """Return the sum over pairs of v max(0, 1 - (s_i - s_j)), times the scale."""
    return pair_scale(pairs, total) * sum(v * max(0.0, 1.0 - (scores[i] - scores[j])) for i, j, v in pairs)


def count_pairs(pairs, scores):
    """Return the weight of all pairs, and of the pairs in the right order; ties count half."""
    ordered = sum(v * ((scores[i] > scores[j]) + 0.5 * (scores[i] == scores[j])) for i, j, v in pairs)
    return sum(v for _, _, v in pairs), ordered


# --- Measures of a whole set of predictions -------------------------------------------------------


def f1_loss(truth, guess):
    return 1.0 - 2.0 * np.sum(truth & guess) / (np.sum(truth) + np.sum(guess))


def precision_loss(truth, guess):
    return 1.0 - np.sum(truth & guess) / np.sum(guess)


def measure_cuts(positive, *, k=None):
    """Return a cut (n loss, c) for every labeling, or every labeling with `k` positives.

    c_i is y_i where the labeling differs from the true label, and 0 elsewhere.
    """
    positive = np.asarray(positive)
    cuts = [(0.0, np.zeros(len(positive)))]
    for labels in product([False, True], repeat=len(positive)):
        guess = np.array(labels)
        if k is not None and guess.sum() != k:
            continue
        loss = f1_loss(positive, guess) if k is None else precision_loss(positive, guess)
        cuts.append((len(positive) * loss, np.where(guess == positive, 0.0, np.where(positive, 1.0, -1.0))))
    return cuts


def largest_cut(cuts, scores):
    """Return the highest of all cuts at the scores: R(s) = max over cuts of offset - c's."""
    return max(offset - c @ scores for offset, c in cuts)


# --- Problems -------------------------------------------------------------------------------------


def add_constant(X, value):
    """Return the rows with an additional constant feature, or unchanged if its value is 0."""
    return np.column_stack([X, np.full(len(X), value)]) if value else X


def objective(w, X, C, risk):
    """Return 1/2 w'w + C R(Xw)."""
    return float(0.5 * w @ w + C * risk(X @ w))


def solve_simplex_qp(G, b, C):
    """Return max b'a - 1/2 a'Ga for a >= 0 and sum(a) <= C, and a; tries every support, with and without
    sum(a) = C.
    """
    G, b = np.asarray(G, dtype=float), np.asarray(b, dtype=float)
    best, best_a = 0.0, np.zeros(len(b))
    supports = chain.from_iterable(combinations(range(len(b)), size) for size in range(1, len(b) + 1))
    for support in map(list, supports):
        for at_bound in (False, True):
            masses = _stationary(G[np.ix_(support, support)], b[support], C if at_bound else None)
            a = np.zeros(len(b))
            a[support] = masses
            if (a < -1e-12).any() or a.sum() > C * (1 + 1e-12):
                continue
            a = np.maximum(a, 0.0)
            if (value := b @ a - 0.5 * a @ G @ a) > best:
                best, best_a = value, a
    return float(best), best_a


def _stationary(G, b, total):
    """Solve Ga = b, or Ga + multiplier = b with sum(a) = total, by least squares, as G may be singular."""
    if total is None:
        return np.linalg.lstsq(G, b, rcond=None)[0]
    size = len(b)
    K = np.block([[G, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
    return np.linalg.lstsq(K, np.append(b, total), rcond=None)[0][:size]
