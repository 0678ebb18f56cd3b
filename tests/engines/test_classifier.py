"""CompiledClassifier against explicit sums of conjunctions."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from reference.conjunctions import number, score, score_entries
from reference.models import make_model
from reference.selection import parametrize_pairs
from unkernel import CompiledClassifier, FormatError, PolySVC, load
from unkernel.data.rows.csr import canonical_rows

every_basis = pytest.mark.parametrize("sets", [True, False])


def expect_scores(expected):
    """Return scores [row, score] as decision_function does: without the second axis if there is one score."""
    expected = np.array(expected)
    return expected[:, 0] if expected.shape[1] == 1 else expected


@st.composite
def models(draw):
    used = draw(st.integers(0, 7))
    return make_model(
        draw(st.integers(0, 2**32)),
        degree=draw(st.integers(1, 3)),
        sets=draw(st.booleans()),
        feature_map=draw(st.sampled_from(["kernel", "plain"])),
        gamma=draw(st.sampled_from([0.25, 1.0, 3.0])),
        coef0=draw(st.sampled_from([0.5, 1.0, 2.0])),
        used=used,
        n_features=max(1, used + draw(st.integers(0, 3))),
        classes=range(draw(st.integers(2, 4))),
        share=draw(st.sampled_from([0.0, 0.3, 1.0])),
    )


def make_rows(model, seed, binary, count=6):
    rng = np.random.default_rng(seed)
    X = (rng.random((count, model.n_features)) < 0.6).astype(float)
    X[0] = 0.0
    return X if binary else X * rng.normal(size=X.shape)


@given(model=models(), seed=st.integers(0, 2**32), binary=st.booleans())
def test_equals_the_sum_over_conjunctions(model, seed, binary):
    X = make_rows(model, seed, binary)
    expected = expect_scores([score(model, x) for x in X])
    by_entries = expect_scores([score_entries(model, dict(enumerate(x))) for x in X])
    np.testing.assert_allclose(by_entries, expected, rtol=1e-12, atol=1e-12)
    classifier = CompiledClassifier(model)
    for rows in (X, sparse.csr_array(X)):
        np.testing.assert_allclose(classifier.decision_function(rows), expected, rtol=1e-10, atol=1e-10)
    predicted = expected > 0 if expected.ndim == 1 else expected.argmax(axis=1)
    assert np.array_equal(classifier.predict(X), model.classes[predicted.astype(int)])


def rows_as_dicts(X):
    """Return the rows of a CSR matrix as dicts from columns to values."""
    for begin, end in pairwise(X.indptr):
        yield dict(zip(X.indices[begin:end].tolist(), X.data[begin:end].tolist(), strict=True))


def make_large_model(degree, sets, classes=2, *, real=False, rows=20, seed=0):
    """Return a model with so many features that part of it is hashed, and rows with its conjunctions."""
    rng = np.random.default_rng(seed)
    used = 3_000 if degree == 2 else 400
    X = sparse.lil_array((rows, used + 50))
    for i in range(rows):
        columns = rng.choice(used + 50, size=12, replace=False)
        X[[i], columns] = rng.normal(size=12) if real else 1.0
    X = X.tocsr()
    model = make_model(
        seed, degree=degree, sets=sets, used=used, n_features=used + 50, classes=range(classes), keys=[1]
    )
    ranks = dict(zip(model.columns.tolist(), range(used), strict=True))
    keys = {1}
    for row in rows_as_dicts(X):
        present = [ranks[c] for c in row if c in ranks]
        for size in range(1, degree + 1):
            conjunctions = [c for c in combinations(present, size) if rng.random() < 0.5]
            keys |= {number(c, degree, sets) for c in conjunctions}
        if not sets and degree > 1:
            keys |= {number((r, r), degree, sets) for r in present}
    all_keys = np.array(sorted(keys), dtype=np.uint64)
    weights = rng.normal(size=(len(all_keys), len(model.intercept)))
    return dataclasses.replace(model, keys=all_keys, weights=weights), X


@every_basis
@parametrize_pairs(real=[False, True], classes=[2, 4], degree=[2, 3])
def test_equals_the_sum_with_hashed_conjunctions(degree, sets, classes, real):
    model, X = make_large_model(degree, sets, classes, real=real)
    expected = expect_scores([score_entries(model, row) for row in rows_as_dicts(X)])
    np.testing.assert_allclose(
        CompiledClassifier(model).decision_function(X), expected, rtol=1e-10, atol=1e-10
    )


@every_basis
@pytest.mark.parametrize("degree", [2, 3])
def test_weights_only_in_the_dense_table(degree, sets):
    """Rows have columns beyond the dense table, although no conjunction there has a weight."""
    model = make_model(degree=degree, sets=sets, used=3000, n_features=3000, keys=[1, 2, 3])
    X = sparse.csr_array(np.eye(3000)[[0, 2999]] + np.eye(3000)[[1500, 1]])
    expected = expect_scores([score_entries(model, row) for row in rows_as_dicts(X)])
    np.testing.assert_allclose(CompiledClassifier(model).decision_function(X), expected)


@every_basis
def test_results_do_not_depend_on_the_number_of_threads(sets):
    model, X = make_large_model(2, sets, 3, real=True)
    X = sparse.vstack([X] * 150, format="csr")
    classifier = CompiledClassifier(model)
    on_one_thread = classifier.decision_function(X, n_jobs=1)
    for n_jobs in (2, 5):
        assert np.array_equal(classifier.decision_function(X, n_jobs=n_jobs), on_one_thread)
        assert np.array_equal(classifier.predict(X, n_jobs=n_jobs), classifier.predict(X))


def replace_indices(X, indptr, indices):
    wide = X.copy()
    wide.indptr, wide.indices = X.indptr.astype(indptr), X.indices.astype(indices)
    return wide


def test_all_array_formats_are_accepted():
    model = make_model(3, degree=3, sets=False, n_features=9, used=7, classes=["a", "b", "c"])
    X = make_rows(model, 0, binary=False)
    classifier = CompiledClassifier(model)
    expected = classifier.decision_function(X)
    csr = sparse.csr_matrix(X)
    assert csr.indices.dtype == np.int32
    for rows in (
        X.tolist(),
        np.asfortranarray(X),
        csr,
        sparse.csr_array(X),
        sparse.csc_array(X),
        sparse.coo_array(X),
        replace_indices(csr, np.int64, np.int64),
        replace_indices(csr, np.int64, np.int32),
    ):
        assert np.array_equal(classifier.decision_function(rows), expected)
    binary = make_rows(model, 0, binary=True)
    for dtype in (np.float32, np.int8, np.int64, bool):
        assert np.array_equal(
            classifier.decision_function(binary.astype(dtype)), classifier.decision_function(binary)
        )


def test_unsorted_and_repeated_entries_score_like_the_dense_matrix():
    model = make_model(4, degree=3, sets=False, n_features=6, used=6)
    # row 0: unsorted; row 1: column 2 twice; row 2: an entry that cancels out; row 3: a stored zero
    indices = np.array([5, 0, 3, 2, 4, 2, 1, 1, 0, 5])
    data = np.array([1.0, 2.0, 3.0, 0.5, 1.0, 0.25, 7.0, -7.0, 1.0, 0.0])
    X = sparse.csr_array((data.copy(), indices.copy(), np.array([0, 3, 6, 8, 10])), shape=(4, 6))
    expected = expect_scores([score(model, x) for x in X.toarray()])
    np.testing.assert_allclose(CompiledClassifier(model).decision_function(X), expected, rtol=1e-10)
    assert np.array_equal(X.indices, indices) and np.array_equal(X.data, data)  # the input is unchanged


def test_unused_features_do_not_change_scores():
    model = make_model(5, used=4, n_features=10)
    X = make_rows(model, 1, binary=True)
    X[:, np.setdiff1d(np.arange(10), model.columns)] = 0.0
    with_unseen = X.copy()
    with_unseen[:, np.setdiff1d(np.arange(10), model.columns)] = 3.0
    classifier = CompiledClassifier(model)
    # Rows that are not binary use another path, which adds in another order.
    np.testing.assert_allclose(
        classifier.decision_function(with_unseen), classifier.decision_function(X), rtol=1e-13
    )


def test_a_model_without_features_answers_its_constants():
    model = make_model(6, used=0, n_features=3, classes=range(3), keys=[])
    scores = CompiledClassifier(model).decision_function(np.ones((2, 3)))
    assert np.array_equal(scores, [model.intercept, model.intercept])


def test_a_score_of_zero_means_the_first_class():
    model = make_model(7, used=0, n_features=1, classes=["no", "yes"], keys=[])
    model = dataclasses.replace(model, intercept=np.zeros(1))
    assert CompiledClassifier(model).predict([[0.0]]).tolist() == ["no"]


@pytest.mark.parametrize(
    ("X", "complaint"),
    [
        ([[0.0] * 5], "X has 5 features, but the model was trained on 6"),
        (sparse.csr_array((2, 7)), "X has 7 features"),
        ([[0.0, 1, 2, 3, 4, np.nan]], "NaN"),
        ([[0.0, 1, 2, 3, 4, np.inf]], "infinity"),
        (sparse.csr_array(np.array([[0.0, np.nan, 0, 0, 0, 0]])), "NaN"),
        ([0.0] * 6, "2D array"),
        (np.empty((0, 6)), "0 sample"),
        ([["a"] * 6], "could not convert"),
    ],
)
def test_rows_that_do_not_fit_are_refused(X, complaint):
    with pytest.raises(ValueError, match=complaint):
        CompiledClassifier(make_model()).decision_function(X)


def test_index_pointers_out_of_range_are_refused():
    classifier = CompiledClassifier(make_model())
    X = sparse.csr_array(np.eye(6))
    for broken in ([0, 1, 2, 3, 4, 5, 7], [1, 1, 2, 3, 4, 5, 6], [0, 9, 2, 3, 4, 5, 6]):
        X.indptr = np.array(broken, dtype=X.indices.dtype)
        with pytest.raises(ValueError, match="index pointer"):
            classifier.score_csr(X, 1)


DAMAGE = {
    "a weight is not a number": {"weights": lambda m: m.weights * np.nan},
    "a weight is infinite": {"weights": lambda m: m.weights * np.inf},
    "a constant is not a number": {"intercept": lambda m: m.intercept * np.nan},
    "keys descend": {"keys": lambda m: m.keys[::-1].copy()},
    "a key repeats": {"keys": lambda m: np.maximum(m.keys, m.keys[1])},
    "a key is the constant's": {"keys": lambda m: m.keys - m.keys[0]},
    "a key is beyond the last": {"keys": lambda m: m.keys + np.uint64(11)},
    "a key is far beyond": {"keys": lambda m: m.keys + np.uint64(2**63)},
    "a column is outside": {"columns": lambda m: m.columns + 6},
    "a column is negative": {"columns": lambda m: m.columns - 6},
    "a column repeats": {"columns": lambda m: np.zeros_like(m.columns)},
    "a column is missing": {"columns": lambda m: m.columns[:2].copy()},
}


def make_damaged_model(damage):
    model = make_model(share=1.0)
    return dataclasses.replace(model, **{name: change(model) for name, change in DAMAGE[damage].items()})


@pytest.mark.parametrize("damage", DAMAGE)
def test_invalid_models_are_refused(damage, tmp_path):
    model = make_damaged_model(damage)
    with pytest.raises(ValueError, match="not a valid conjunction model"):
        CompiledClassifier(model).validate()
    with pytest.raises(ValueError, match="not a valid conjunction model"):
        CompiledClassifier(model).predict(np.zeros((1, 6)))
    model.save(tmp_path / "model.uk")
    with pytest.raises(FormatError, match="not a valid conjunction model") as caught:
        load(tmp_path / "model.uk")
    assert caught.value.file == str(tmp_path / "model.uk")


def test_survives_pickling_and_copying():
    model, X = make_large_model(2, True, 3)
    classifier = CompiledClassifier(model)
    expected = classifier.decision_function(X)
    for other in (pickle.loads(pickle.dumps(classifier)), copy.deepcopy(classifier), copy.copy(classifier)):
        assert np.array_equal(other.decision_function(X), expected)
        assert np.array_equal(other.classes_, classifier.classes_)
    assert "classes=3" in repr(classifier)
    assert classifier.nbytes >= model.weights.nbytes


@pytest.mark.parametrize("labels", [[0, 1], ["no", "yes"], [1, 2, 3], ["a", "ü", "猫"]])
def test_saved_estimators_give_the_same_scores(labels, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((60, 8)).round(1)
    y = np.array(labels)[rng.integers(0, len(labels), 60)]
    fitted = PolySVC(degree=2, random_state=0, tol=1e-2).fit(X, y)
    fitted.save(tmp_path / "svc.uk")
    loaded = load(tmp_path / "svc.uk")
    assert np.array_equal(loaded.decision_function(X), fitted.decision_function(X))
    assert np.array_equal(loaded.predict(X), fitted.predict(X))
    assert np.array_equal(loaded.classes_, fitted.classes_) and loaded.classes_.dtype == fitted.classes_.dtype
    assert loaded.n_features_in_ == 8
    loaded.save(tmp_path / "again.uk")
    assert (tmp_path / "again.uk").read_bytes() == (tmp_path / "svc.uk").read_bytes()
    unpickled = pickle.loads(pickle.dumps(loaded))  # arrays inside the file are included
    (tmp_path / "svc.uk").unlink()
    assert np.array_equal(unpickled.decision_function(X), fitted.decision_function(X))


@every_basis
def test_many_threads_can_score_at_once(sets):
    model, X = make_large_model(3, sets, 2, real=True)
    X = sparse.vstack([X] * 20, format="csr")
    expected = CompiledClassifier(model).decision_function(X)
    for _ in range(3):
        # All threads call a new classifier while it builds its tables.
        score_rows = CompiledClassifier(model).decision_function
        with ThreadPoolExecutor(8) as pool:
            futures = [pool.submit(score_rows, X, n_jobs=1 + k % 2) for k in range(16)]
        assert all(np.array_equal(answer.result(), expected) for answer in futures)


@pytest.mark.parametrize("offset", [-1, 1_000_000])
def test_offsets_out_of_range_are_refused(offset):
    """With these offsets, scipy would read out of bounds."""
    broken = sparse.csr_matrix(np.eye(4))
    broken.indptr[2] = offset
    broken.has_canonical_format = False
    with pytest.raises(ValueError, match="index pointer"):
        canonical_rows(broken)
