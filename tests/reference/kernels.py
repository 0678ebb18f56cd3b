"""Random kernel machines, and slow versions of their scores and expansions."""

from __future__ import annotations

import math
from itertools import combinations, combinations_with_replacement, pairwise

import numpy as np
from scipy import sparse

from unkernel.data.rows.csr import CsrRows
from unkernel.models import Decision, KernelModel
from unkernel.models.kernel import Kernel

EXACT = ("inverted", "bitsliced", "expanded", "split")
EXPANDED = ("expanded", "split")
CLASSES = {1: 2, 3: 3, 6: 4}  # by the number of scores, one per pair of classes


def polynomial(degree, gamma=0.5, coef0=1.0):
    return Kernel("polynomial", degree, gamma, coef0)


def make_kernel_model(
    seed=0, kernel=None, *, vectors=40, features=12, scores=1, real=False, share=0.4, fixed_width=False
):
    """Return random support vectors; the last one is empty, and the last column but one is unused."""
    rng = np.random.default_rng(seed)
    S = (rng.random((vectors, features)) < share).astype(float)
    if real:
        S *= rng.normal(size=S.shape)
    S[-1:] = 0.0
    S[:, -2:-1] = 0.0
    count = CLASSES[scores]
    decision = Decision("binary" if count == 2 else "one_vs_one", np.arange(count) * 10)
    return KernelModel(
        kernel=kernel or polynomial(2),
        vectors=sparse.csr_matrix(S),
        coefficients=rng.normal(size=(vectors, scores)),
        intercept=rng.normal(size=scores),
        decision=decision,
        n_features=features,
        fixed_width=fixed_width,
        origin={},
    )


def rows_for(model, seed=0, *, real=False, count=12, extra_columns=3):
    """Return rows with more columns than the model: an empty row, one of unknown columns, and others."""
    rng = np.random.default_rng(seed)
    X = (rng.random((count, model.n_features + extra_columns)) < 0.5).astype(float)
    X[:2] = 0.0
    X[1, model.n_features :] = 1.0
    return X * rng.normal(size=X.shape) if real else X


def applicable(model, engines=EXACT):
    """Return the engines that support a model; linear models are only compiled to a table of weights."""
    kernel = model.kernel
    if kernel.name == "linear" or (kernel.name == "polynomial" and kernel.degree <= 1):
        return [engine for engine in engines if engine == "expanded"]
    if kernel.name != "polynomial" or kernel.degree > 4:
        engines = [engine for engine in engines if engine not in EXPANDED]
    return [engine for engine in engines if model.binary or engine in ("inverted", "expanded")]


def sizes(model, X):
    """Return sum_j |coefficient_j K(x, s_j)| + |intercept|, to which rounding errors are relative."""
    K = model.kernel.matrix(X, model.support_vectors)
    return np.abs(K) @ np.abs(model.coefficients) + np.abs(model.intercept)


def assert_scores(scores, model, X, tolerance=1e-10):
    """Check that scores are the model's own, up to rounding."""
    scores = np.asarray(scores).reshape(X.shape[0], model.n_scores)
    error = np.abs(scores - model.scores(X)) / sizes(model, X)
    assert error.max(initial=0.0) <= tolerance


def differences(kernel):
    """Return D_k: the k-th finite difference at 0 of the kernel as a function of the overlap."""
    f = [(kernel.gamma * c + kernel.coef0) ** kernel.degree for c in range(kernel.degree + 1)]
    return [
        sum((-1) ** (k - i) * math.comb(k, i) * f[i] for i in range(k + 1)) for k in range(kernel.degree + 1)
    ]


def set_weights(model):
    """Return the weights of sets of columns in the expansion, under a model of binary support vectors."""
    dense = model.support_vectors.toarray().astype(bool)
    D = differences(model.kernel)
    cache = {}

    def weights(columns):
        if columns not in cache:
            holders = dense[:, list(columns)].all(axis=1)
            cache[columns] = D[len(columns)] * model.coefficients[holders].sum(axis=0)
        return cache[columns]

    return weights


def make_slots_model(seed=0, degree=3, *, scores=1, vectors=40, slots=4, values=3, others=6):
    """Return support vectors with at most one value per slot, and some other columns.

    Columns are shuffled, so that their order shows neither slots nor frequencies. The last column is unused.
    """
    rng = np.random.default_rng(seed)
    S = np.zeros((vectors, slots * values + others + 1))
    chosen = np.minimum(
        rng.integers(0, values + 1, (vectors, slots)), rng.integers(0, values + 1, (vectors, slots))
    )
    for slot in range(slots):
        filled = np.flatnonzero(chosen[:, slot] < values)
        S[filled, slot * values + chosen[filled, slot]] = 1.0
    S[:, slots * values : -1] = rng.random((vectors, others)) < 0.15
    S[:, :-1] = S[:, rng.permutation(S.shape[1] - 1)]
    decision = Decision("binary", np.arange(2)) if scores == 1 else Decision("one_vs_rest", np.arange(scores))
    return KernelModel(
        kernel=polynomial(degree),
        vectors=sparse.csr_matrix(S),
        coefficients=rng.normal(size=(vectors, scores)),
        intercept=rng.normal(size=scores),
        decision=decision,
        n_features=S.shape[1],
        fixed_width=False,
        origin={},
    )


def make_rows_for(model, seed=0, count=10, extra_columns=3):
    """Return rows for a model of slots: support vectors, random rows, a full row, and rows of real values."""
    rng = np.random.default_rng(seed)
    width = model.n_features + extra_columns
    X = np.zeros((4 * count + 3, width))
    chosen = rng.integers(model.n_support, size=count)
    X[:count, : model.n_features] = model.support_vectors[chosen].toarray()
    X[count : 2 * count] = rng.random((count, width)) < 0.3
    X[2 * count : 3 * count] = X[:count] * (rng.random((count, width)) < 0.8)
    X[3 * count : 4 * count] = X[count : 2 * count] * rng.normal(size=(count, width))
    X[-1] = 1.0
    X[-2, model.n_features :] = 1.0
    return X


def assert_engine(engine, model, X, tolerance=1e-12, *, threads=(1, 2)):
    """Check that an engine gives a model's scores for many rows, and for single ones, ordered or not."""
    rows = sparse.csr_matrix(X)
    rng = np.random.default_rng(0)
    shuffled = [begin + rng.permutation(end - begin) for begin, end in pairwise(rows.indptr)]
    order = np.concatenate(shuffled)

    def check_scores(scores, X):
        scores = np.asarray(scores).reshape(X.shape[0], model.n_scores)
        # Values of both signs cancel out in the kernel before they do in an expansion.
        assert (np.abs(scores - model.scores(X)) <= tolerance * sizes(model, np.abs(X))).all()

    for count in threads:
        check_scores(engine.score(rows, count), X)
    disordered = CsrRows(rows.indptr, rows.indices[order], rows.data[order], rows.shape)
    check_scores(engine.score(disordered, 1), X)
    worker = engine.worker()
    for score_one in (engine.one_row.score_one, worker.score_one):
        check_scores([score_one(rows.indices[positions], rows.data[positions]) for positions in shuffled], X)
    check_scores(
        [worker.score_one(rows.indices[positions].tolist()) for positions in shuffled], (X != 0).astype(float)
    )


def set_contributions(model, columns):
    """Return the contribution of each set of a binary row's columns; support vectors are binary."""
    dense = model.support_vectors.toarray()
    D = differences(model.kernel)
    known_columns = [c for c in sorted(columns) if c < model.n_features]
    result = {}
    for size in range(model.kernel.degree + 1):
        for members in combinations(known_columns, size):
            holders = dense[:, list(members)].all(axis=1)
            result[members] = D[size] * model.coefficients[holders].sum(axis=0)
    result[()] = result[()] + model.intercept
    return result


def monomial_contributions(model, row):
    """Return the contribution of each monomial of a row {column: value}."""
    dense = model.support_vectors.toarray()
    kernel = model.kernel
    known_columns = sorted(c for c, value in row.items() if value != 0 and c < model.n_features)
    result = {}
    for size in range(kernel.degree + 1):
        for members in combinations_with_replacement(known_columns, size):
            repeats = math.prod(math.factorial(members.count(c)) for c in set(members))
            constant = math.comb(kernel.degree, size) * kernel.coef0 ** (kernel.degree - size)
            constant *= kernel.gamma**size * math.factorial(size) / repeats
            value = constant * math.prod(row[c] for c in members)
            result[members] = value * (dense[:, list(members)].prod(axis=1) @ model.coefficients)
    result[()] = result[()] + model.intercept
    return result


def make_pairs_model(seed=0, classes=3, kernel=None, *, vectors=60, features=5, share=1.0, shuffled=False):
    """Return a one-vs-one model of real vectors, in which some classes have no vectors."""
    rng = np.random.default_rng(seed)
    S = rng.normal(size=(vectors, features)) * (rng.random((vectors, features)) < share)
    class_of_vector = np.sort(rng.integers(classes, size=vectors))
    if shuffled:
        class_of_vector = rng.permutation(class_of_vector)
    coefficients = np.zeros((vectors, classes * (classes - 1) // 2))
    for vector, code in enumerate(class_of_vector):
        columns = [
            pair
            for pair, pair_of_classes in enumerate(combinations(range(classes), 2))
            if code in pair_of_classes
        ]
        coefficients[vector, columns] = rng.normal(size=classes - 1) * (rng.random(classes - 1) < 0.8)
    return KernelModel(
        kernel=kernel or Kernel("rbf", gamma=0.3),
        vectors=S,
        coefficients=coefficients,
        intercept=rng.normal(size=coefficients.shape[1]),
        decision=Decision("one_vs_one", np.arange(classes) * 3, shape="ovr", break_ties=bool(seed % 2)),
        n_features=features,
        fixed_width=True,
        origin={},
    )


def slow_votes(scores, classes):
    """Return the number of pairs that each class wins, and scikit-learn's decision values of classes."""
    votes = np.zeros((len(scores), classes), np.int64)
    votes_with_ties, sums = np.zeros((len(scores), classes)), np.zeros((len(scores), classes))
    for pair, (i, j) in enumerate(combinations(range(classes), 2)):
        score = scores[:, pair]
        votes[:, i] += score > 0
        votes[:, j] += ~(score > 0)
        votes_with_ties[:, i] += score >= 0
        votes_with_ties[:, j] += ~(score >= 0)
        sums[:, i] += score
        sums[:, j] -= score
    return votes, votes_with_ties + sums / (3 * (np.abs(sums) + 1))
