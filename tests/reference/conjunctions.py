"""Conjunction models scored with a dictionary and itertools."""

from __future__ import annotations

import math
from itertools import combinations, combinations_with_replacement

import numpy as np


def list_conjunctions(n_features, degree, sets):
    """Return all conjunctions in the order of their numbers, as descending tuples; the first is empty."""
    choose = combinations if sets else combinations_with_replacement
    order = [()]
    for a in range(n_features):
        for size in range(1, degree + 1):
            partners = range(a if sets else a + 1)
            other_members = [tuple(sorted(members, reverse=True)) for members in choose(partners, size - 1)]
            order += [(a, *members) for members in sorted(other_members)]
    return order


def score(model, x):
    """Return the scores of one dense row, conjunction by conjunction."""
    ranks = [r for r, column in enumerate(model.columns) if x[column] != 0]
    weights = dict(zip(model.keys.tolist(), model.weights, strict=True))
    total = np.array(model.intercept, dtype=float)
    for key, conjunction in enumerate(list_conjunctions(len(model.columns), model.degree, model.sets)):
        if key in weights and set(conjunction) <= set(ranks):
            total += weights[key] * factor(model, [x[model.columns[r]] for r in conjunction])
    return total


def number(ranks, degree, sets):
    """Return the number of a conjunction, which is the number of conjunctions before it."""
    repeats = 0 if sets else 1
    a, *rest = sorted(ranks, reverse=True)
    block = 1 + sum(math.comb(a + repeats * (size - 1), size) for size in range(1, degree + 1))
    if not rest:
        return block
    b, *last = rest
    return block + 1 + b if not last else block + 1 + a + repeats + math.comb(b + repeats, 2) + last[0]


def score_entries(model, entries):
    """Return the scores of one row given as {column: value}, like ``score``, for models of many features."""
    ranks = {column: rank for rank, column in enumerate(model.columns.tolist())}
    values = {ranks[column]: value for column, value in entries.items() if column in ranks and value != 0}
    weights = dict(zip(model.keys.tolist(), model.weights, strict=True))
    total = np.array(model.intercept, dtype=float)
    choose = combinations if model.sets else combinations_with_replacement
    for size in range(1, model.degree + 1):
        for conjunction in choose(sorted(values), size):
            key = number(conjunction, model.degree, model.sets)
            if key in weights:
                total += weights[key] * factor(model, [values[rank] for rank in conjunction])
    return total


def factor(model, values):
    """Return the factor of a conjunction of these values: their product, or the mean over its monomials."""
    if not model.sets:
        return math.prod(values)
    total = weight = 0.0
    for size in range(len(values), model.degree + 1):
        for exponents in _compositions(size, len(values)):
            c2 = _squared_constant(model, exponents)
            total += c2 * math.prod(v**e for v, e in zip(values, exponents, strict=True))
            weight += c2
    return total / weight


def _compositions(total, parts):
    if parts == 1:
        return [(total,)]
    return [
        (first, *r) for first in range(1, total - parts + 2) for r in _compositions(total - first, parts - 1)
    ]


def _squared_constant(model, exponents):
    if model.feature_map == "plain":
        return 1.0
    k = sum(exponents)
    multinomial = math.factorial(k) / math.prod(math.factorial(e) for e in exponents)
    return math.comb(model.degree, k) * model.coef0 ** (model.degree - k) * model.gamma**k * multinomial
