"""Split storage, compared with the other two storages and with kernel matrices."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import unkernel
import unkernel.poly._base as base_module
from reference import poly as reference
from reference.selection import few_examples, slow_after
from unkernel import PolySVC
from unkernel._core import distinct_examples
from unkernel.data.rows.csr import CsrRows, canonical_rows
from unkernel.models import ConjunctionModel, KernelModel


def make_word_rows(seed, *, rows=400, common=12, rare=300, words=4, classes=2):
    """Return rows of a few common features and some of many rare features, a few rows being equal.

    More than 4096 rows, or more than three rows per conjunction of a row, are never solved on their kernel
    matrix.
    """
    rng = np.random.default_rng(seed)
    often = rng.random((rows, common)) < 0.4
    topic = rng.integers(0, 40, rows)
    ids = (7 * topic[:, None] + rng.integers(0, 15, (rows, words))) % rare
    seldom = np.zeros((rows, rare), bool)
    seldom[np.arange(rows)[:, None], ids] = True
    X = sparse.csr_matrix(np.hstack([often, seldom]).astype(float))
    score = X @ rng.normal(size=common + rare) + 2 * (X[:, 0].toarray() * X[:, -1].toarray()).ravel()
    y = np.digitize(score, np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1]))
    return X, y


@pytest.mark.parametrize(
    ("degree", "loss"),
    slow_after(2, [(2, "squared_hinge"), (3, "hinge"), (2, "hinge"), (3, "squared_hinge")]),
)
def test_all_storages_visit_the_same_points(degree, loss):
    X, y = make_word_rows(degree, rows=4500, rare=1000, classes=3)
    options = {"C": 0.02, "gamma": 0.5, "coef0": 1.5, "loss": loss, "random_state": 1}
    split = PolySVC(degree, storage="split", **options).fit(X, y)
    condensed = PolySVC(degree, storage="condensed", **options).fit(X, y)
    assert split.storage_ == "split"
    assert split.n_iter_ == condensed.n_iter_
    assert split.objective_ == pytest.approx(condensed.objective_, rel=1e-9)
    assert split.gap_ == pytest.approx(condensed.gap_, abs=1e-9)
    assert split.decision_function(X) == pytest.approx(condensed.decision_function(X), rel=1e-9, abs=1e-9)
    assert np.array_equal(split.predict(X), condensed.predict(X))


@pytest.mark.parametrize("degree", [2, 3])
@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(2, 90),
    sizes=st.tuples(st.integers(1, 6), st.integers(1, 120)),
    coef0=st.sampled_from([0.0, 0.5, 2.0]),
)
@few_examples(5)
def test_reaches_the_optimum_of_the_kernel_matrix(degree, seed, rows, sizes, coef0):
    X, y = make_word_rows(seed, rows=rows, common=sizes[0], rare=sizes[1], words=2)
    y[:2] = [0, 1]
    weights = np.random.default_rng(seed).integers(1, 4, rows).astype(float)
    clf = PolySVC(degree, C=0.1, gamma=0.5, coef0=coef0, storage="split", tol=1e-6, max_iter=10**5)
    clf.fit(X, y, weights)
    K = reference.kernel(X.toarray(), X.toarray(), degree=degree, gamma=0.5, coef0=coef0)
    _, optimum = reference.solve_dual(K, 2.0 * y - 1, 0.1 * weights, "hinge", gap=1e-6)
    assert clf.gap_ <= 1e-6
    assert clf.objective_ == pytest.approx(optimum, rel=1e-5)


def test_the_model_has_the_reported_objective():
    """The scores, updated step by step in training, must stay equal to the scores of the model."""
    X, y = make_word_rows(5, rows=4200)
    clf = PolySVC(3, C=0.05, gamma=0.3, storage="split", tol=1e-5, max_iter=10**5).fit(X, y)
    model = clf.to_model()
    scores = model.scores(X)[:, 0]
    K = model.kernel.matrix(model.support_vectors, model.support_vectors)
    squared = model.coefficients[:, 0] @ K @ model.coefficients[:, 0]
    losses = np.maximum(0.0, 1.0 - (2 * y - 1) * scores).sum()
    assert clf.objective_ == pytest.approx(0.5 * squared + 0.05 * losses, rel=1e-9)


def test_the_model_does_not_depend_on_threads_and_row_order():
    X, y = make_word_rows(3, rows=9000, rare=1000)  # several tasks for the threads
    order = np.random.default_rng(0).permutation(len(y))
    options = {"C": 0.02, "gamma": 0.5, "storage": "split", "random_state": 0, "tol": 1e-2}
    single_threaded = PolySVC(3, n_jobs=1, **options).fit(X, y)
    reordered = PolySVC(3, n_jobs=2, **options).fit(X[order], y[order])
    assert np.array_equal(single_threaded.to_model().coefficients, reordered.to_model().coefficients)
    assert (single_threaded.to_model().support_vectors != reordered.to_model().support_vectors).nnz == 0


def test_rows_of_other_values_are_answered_as_the_kernel_would():
    X, y = make_word_rows(4)
    clf = PolySVC(3, C=0.05, gamma=0.5, storage="split").fit(X, y)
    rows = X[:30].toarray() * np.random.default_rng(0).normal(size=(30, X.shape[1]))
    assert clf.decision_function(rows) == pytest.approx(clf.to_model().scores(rows)[:, 0], rel=1e-9, abs=1e-9)


def test_its_model_is_made_of_support_vectors(tmp_path):
    X, y = make_word_rows(6)
    clf = PolySVC(2, C=0.05, gamma=0.5, storage="split").fit(X, y)
    model = clf.to_model()
    assert isinstance(model, KernelModel)
    assert 0 < model.n_support <= X.shape[0]
    assert isinstance(PolySVC(2, storage="condensed").fit(X, y).to_model(), ConjunctionModel)
    with pytest.raises(ValueError, match="read-only"):
        model.coefficients[:] = 0
    expected = clf.decision_function(X)
    clf.save(tmp_path / "model.uk")
    assert np.array_equal(unkernel.load(tmp_path / "model.uk").decision_function(X), expected)
    assert unkernel.compile(clf).decision_function(X) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert np.array_equal(pickle.loads(pickle.dumps(clf)).decision_function(X), expected)


def test_warm_start_resumes():
    X, y = make_word_rows(7, rows=1500)
    clf = PolySVC(2, C=0.1, gamma=0.5, tol=1e-4, storage="split", warm_start=True, random_state=0).fit(X, y)
    cold, objective = clf.n_iter_, clf.objective_
    clf.fit(X, y)
    assert clf.n_iter_ < cold / 2
    assert clf.objective_ == pytest.approx(objective, rel=2e-4)


def merge_examples(X, y):
    return distinct_examples(X, classes=y.astype(np.int32), weights=np.empty(0), threads=1)


def test_auto_chooses_it_if_no_other_storage_fits(monkeypatch):
    X, y = make_word_rows(8, rows=3000, rare=20_000)
    sizes = merge_examples(X, y).estimate_storage(degree=3, problems=1, memory=0.0)
    assert sizes["split_bytes"] < min(sizes["on_the_fly_bytes"], sizes["condensed_bytes"])
    assert PolySVC(3, gamma=0.5).fit(X, y).storage_ == "condensed"
    monkeypatch.setattr(base_module, "available_bytes", lambda: 1.1 * sizes["split_bytes"])
    assert PolySVC(3, gamma=0.5).fit(X, y).storage_ == "split"


def test_the_border_moves_with_the_memory_and_the_result_does_not(monkeypatch):
    """Little memory for the dense table makes more features rare."""
    X, y = make_word_rows(9, rows=2000, common=40, rare=400)
    examples = merge_examples(X, y)
    much_memory = examples.estimate_storage(degree=3, problems=1, memory=0.0)
    little_memory = examples.estimate_storage(degree=3, problems=1, memory=0.5 * much_memory["split_bytes"])
    assert little_memory["split_head"] != much_memory["split_head"]
    assert little_memory["split_bytes"] <= 0.5 * much_memory["split_bytes"]
    fits = []
    for sizes in (much_memory, little_memory):
        monkeypatch.setattr(base_module, "available_bytes", lambda sizes=sizes: 1.01 * sizes["split_bytes"])
        fits.append(PolySVC(3, C=0.02, gamma=0.5, storage="split", random_state=0).fit(X, y))
    monkeypatch.undo()
    assert fits[0].n_iter_ == fits[1].n_iter_
    assert fits[0].decision_function(X) == pytest.approx(fits[1].decision_function(X), rel=1e-9, abs=1e-9)


def test_pairs_of_long_rows_take_wider_words():
    rng = np.random.default_rng(0)
    X = np.zeros((5000, 1520))
    X[np.arange(5000)[:, None], rng.integers(0, 760, (5000, 20))] = 1
    X[:2] = 1
    X[1, 5:9] = 0
    X, y = sparse.csr_matrix(X), rng.integers(0, 2, 5000)
    assert merge_examples(X, y).estimate_storage(degree=2, problems=1, memory=0.0)["split_wide"]
    options = {"C": 0.1, "gamma": 0.1, "random_state": 0}
    split = PolySVC(2, storage="split", **options).fit(X, y)
    condensed = PolySVC(2, storage="condensed", **options).fit(X, y)
    assert split.n_iter_ == condensed.n_iter_
    assert split.decision_function(X) == pytest.approx(condensed.decision_function(X), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("options", "factor"), [({}, 0.5), ({"feature_map": "plain"}, 1.0)], ids=["real values", "plain map"]
)
def test_rows_that_are_not_binary_are_refused(options, factor):
    X, y = make_word_rows(1)
    with pytest.raises(ValueError, match=r"split.*0 or 1"):
        PolySVC(2, storage="split", **options).fit(X * factor, y)


def test_degree_1_is_stored_on_the_fly():
    X, y = make_word_rows(1)
    assert PolySVC(1, storage="split").fit(X, y).storage_ == "on_the_fly"


@pytest.mark.parametrize("binary", [True, False])
def test_chosen_rows_equal_rows_of_the_input(binary):
    """Frequencies of features determine their internal numbers, but not which rows are chosen."""
    rng = np.random.default_rng(3)
    table = (rng.random((40, 9)) < np.linspace(0.1, 0.9, 9)) * (1.0 if binary else rng.random((40, 9)))
    rows = distinct_examples(
        canonical_rows(table), classes=np.zeros(40, np.int32), weights=np.empty(0), threads=1
    )
    places = np.asarray(rows.places)
    selection = [3, 17, 0]
    offsets, columns, values = rows.choose(places[selection].astype(np.int64))
    assert CsrRows.of(offsets, columns, values, 9).toarray().tolist() == table[selection].tolist()
    with pytest.raises(IndexError, match="no row 40"):
        rows.choose(np.array([40]))
