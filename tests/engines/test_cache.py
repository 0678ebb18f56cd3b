"""Cached scores equal the engine's to the last bit, after any requests and on any number of threads."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import unkernel
from reference.kernels import (
    EXACT,
    make_kernel_model,
    make_pairs_model,
    make_rows_for,
    make_slots_model,
    polynomial,
    rows_for,
)
from reference.models import make_model
from reference.remembered import RememberingScorer
from unkernel.engines.rows.answer_cache import CacheInfo
from unkernel.models.kernel import Kernel

MODEL = make_kernel_model(1, polynomial(3), vectors=80)
FAST = {engine: unkernel.compile(MODEL, engine, rare=30) for engine in EXACT}
every_engine = pytest.mark.parametrize("engine", EXACT)


def repeat_rows(X, seed=0, times=4):
    """Return the rows several times, shuffled."""
    X = sparse.csr_matrix(X)
    return X[np.random.default_rng(seed).permutation(np.tile(np.arange(X.shape[0]), times))]


def test_there_is_no_cache_by_default():
    fast = FAST["expanded"]
    assert fast.cache is None
    fast.predict(rows_for(MODEL))
    assert fast.cache_info() == CacheInfo(hits=0, misses=0, maxsize=0, currsize=0)
    fast.cache_clear()


@every_engine
@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("rows", [1, 3, 10, 1000])
def test_cached_answers_equal_computed_answers_to_the_last_bit(engine, real, rows):
    fast = FAST[engine]
    X = repeat_rows(rows_for(MODEL, real=real, count=50))
    for threads in (1, 2):
        cached = fast.with_cache(rows)
        for _ in range(2):
            np.testing.assert_array_equal(cached.score_csr(X, threads), fast.score_csr(X, threads))
            np.testing.assert_array_equal(cached.predict(X), fast.predict(X))
        info = cached.cache_info()
        assert info.hits + info.misses == 4 * X.shape[0]
        assert info.maxsize == rows and 0 < info.currsize <= rows


@given(
    st.lists(st.integers(0, 19), min_size=1, max_size=60),
    st.integers(1, 40),
    st.sampled_from(EXACT),
    st.data(),
)
def test_scores_and_counts_equal_the_slow_twin(requested_rows, rows, engine, data):
    pool = np.random.default_rng(5).random((20, 12)) < 0.4
    cached, twin = FAST[engine].with_cache(rows), RememberingScorer(FAST[engine])
    for row in requested_rows:
        ids = data.draw(st.permutations(np.flatnonzero(pool[row]).tolist()))
        values = data.draw(st.sampled_from([None, [1.0] * len(ids), [0.5] * len(ids)]))
        assert cached.score_one(ids, values) == twin.score_one(ids, values)
    info = cached.cache_info()
    assert info.hits + info.misses == len(requested_rows)
    assert info.hits <= twin.hits
    assert info.currsize <= min(rows, twin.rows)
    if twin.rows <= min(rows, 8):  # all rows fit into one set of the cache
        assert info.hits == twin.hits and info.currsize == twin.rows


@every_engine
def test_all_forms_of_a_row_share_one_cache_entry(engine):
    cached = FAST[engine].with_cache(100)
    expected = FAST[engine].score_one([1, 3, 6, 9])
    forms = [
        [1, 3, 6, 9],
        [9, 6, 3, 1],
        (1, 1, 3, 6, 9, 9),
        np.array([1, 3, 6, 9], np.int32),
        np.array([9, 1, 3, 6], np.int64),
    ]
    for form in forms:
        assert cached.score_one(form) == expected
    assert cached.score_one([1, 3, 6, 9], [1.0] * 4) == expected
    assert cached.worker().score_one([1, 3, 6, 9]) == expected
    X = np.zeros((1, 12))
    X[0, [1, 3, 6, 9]] = 1
    wide = sparse.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert cached.decision_function(X)[0] == cached.decision_function(wide)[0] == expected
    assert cached.cache_info()[:2] == (len(forms) + 3, 1)
    # Rows that differ only in columns ignored by the model are different: kernels may count these columns.
    for other in ([1, 3, 6], [1, 3, 6, 9, 2**30]):
        assert cached.score_one(other) == FAST[engine].score_one(other)
    assert cached.score_one([1, 3, 6, 9], [1, 1, 1, 2]) == FAST[engine].score_one([1, 3, 6, 9], [1, 1, 1, 2])
    assert cached.cache_info().misses == 4


def test_rows_that_cannot_be_cached_are_scored():
    cached = FAST["expanded"].with_cache(100)
    for ids in ([1, 2**40], list(range(2000))):
        for _ in range(2):
            assert cached.score_one(ids) == FAST["expanded"].score_one(ids)
    assert cached.cache_info() == CacheInfo(hits=0, misses=4, maxsize=100, currsize=0)


def test_rows_larger_than_the_previous_one_are_cached():
    cached = FAST["expanded"].with_cache(1)
    for count in (1, 3, 12, 500, 1000, 2, 1000):
        for _ in range(2):
            assert cached.score_one(range(count)) == FAST["expanded"].score_one(range(count))
    assert cached.cache_info() == CacheInfo(hits=7, misses=7, maxsize=1, currsize=1)


def test_cached_decisions_are_not_returned_as_scores():
    """Scoring for predictions stops when the class is certain; such scores are only used for predictions."""
    model = make_slots_model(1, 3)
    X = repeat_rows(make_rows_for(model))
    fast = unkernel.compile(model, "expanded", measure=False)
    cached = fast.with_cache(1000)
    for _ in range(2):
        np.testing.assert_array_equal(cached.predict(X), fast.predict(X))
        np.testing.assert_array_equal(cached.decision_function(X), fast.decision_function(X))
    earlier_counts = cached.cache_info()
    cached.predict(X)  # complete scores are used for predictions, too
    assert cached.cache_info().hits == earlier_counts.hits + X.shape[0]


@pytest.mark.parametrize(
    "model",
    [
        make_model(2, degree=2, used=10, n_features=12, classes=range(4)),
        make_kernel_model(3, Kernel("rbf", gamma=0.5)),
        make_pairs_model(4, 4, polynomial(2), features=12),
    ],
)
def test_models_of_several_scores_and_other_kernels(model):
    fast = unkernel.compile(model, measure=False)
    cached = fast.with_cache(200)
    X = repeat_rows(rows_for(model, count=30)[:, : model.n_features])
    np.testing.assert_array_equal(cached.decision_function(X), fast.decision_function(X))
    np.testing.assert_array_equal(cached.predict(X), fast.predict(X))
    for k in range(20):
        ids = X[k].indices.tolist()
        assert cached.score_one(ids) == fast.score_one(ids)
        assert cached.predict_one(ids) == fast.predict_one(ids)
    assert cached.cache_info().hits > 0


def test_changing_the_trie_clears_the_cache():
    model = make_slots_model(1, 3)
    rows = make_rows_for(model, 1, 60)
    cached = unkernel.compile(model, "expanded", trie=rows, trie_nodes=5, cache=1000)
    X = make_rows_for(model)
    cached.decision_function(X)
    cached.trie.grow(rows)
    assert cached.cache_info().currsize == 0
    other = unkernel.compile(model, "expanded", trie=rows, trie_nodes=5)
    other.trie.grow(rows)
    np.testing.assert_array_equal(cached.decision_function(X), other.decision_function(X))
    np.testing.assert_array_equal(cached.decision_function(X), other.decision_function(X))


def test_clearing_the_cache_resets_its_counts():
    cached = FAST["split"].with_cache(10)
    for _ in range(2):
        cached.score_one([1, 2])
    cached.cache_clear()
    assert cached.cache_info() == CacheInfo(hits=0, misses=0, maxsize=10, currsize=0)
    assert cached.score_one([1, 2]) == FAST["split"].score_one([1, 2])
    assert cached.cache_info() == CacheInfo(hits=0, misses=1, maxsize=10, currsize=1)


@every_engine
def test_threads_share_the_cache(engine):
    """There are few slots and many rows, so that threads overwrite slots while other threads read them."""
    fast = FAST[engine]
    pool = np.random.default_rng(3).random((60, 12)) < 0.4
    rows = [np.flatnonzero(row).astype(np.int32) for row in pool]
    expected = [fast.score_one(row) for row in rows]
    cached = fast.with_cache(20)
    X = repeat_rows(sparse.csr_matrix(pool * 1.0), times=20)
    batch = fast.decision_function(X)

    def count_errors(seed):
        score = cached.worker().score_one
        order = np.random.default_rng(seed).integers(0, len(rows), 3000)
        n_wrong = sum(score(rows[k]) != expected[k] for k in order)
        return n_wrong + np.count_nonzero(cached.decision_function(X, n_jobs=2) != batch)

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(count_errors, range(8))) == 0
    info = cached.cache_info()
    assert info.hits + info.misses == 8 * (3000 + X.shape[0])


def test_files_do_not_store_the_cache_and_copies_keep_it(tmp_path):
    cached = unkernel.compile(MODEL, "split", cache=50)
    without_cache = unkernel.compile(MODEL, "split", measure=False)
    without_cache.save(tmp_path / "plain.uk")
    without_cache.with_cache(50).save(tmp_path / "cached.uk")
    assert (tmp_path / "plain.uk").read_bytes() == (tmp_path / "cached.uk").read_bytes()
    loaded = unkernel.load(tmp_path / "cached.uk")
    assert loaded.cache is None
    cached_again = loaded.with_cache(50)
    for other in (pickle.loads(pickle.dumps(cached)), copy.deepcopy(cached), cached_again):
        assert other.cache == 50 and other.cache_info().maxsize == 50
        assert other.score_one([1, 2]) == cached.score_one([1, 2])
    assert cached.with_cache(None).cache_info().maxsize == 0
    assert cached.get_params()["cache"] == 50


def test_records_can_be_cached():
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.pipeline import make_pipeline

    records = [{"a": str(k % 3), "b": str(k % 5)} for k in range(60)]
    pipeline = make_pipeline(DictVectorizer(), unkernel.PolySVC())
    pipeline.fit(records, [k % 5 < 2 for k in range(60)])
    cached, without_cache = unkernel.compile(pipeline, cache=100), unkernel.compile(pipeline)
    assert cached.classifier.cache == 100
    assert [cached.score_one(record) for record in records] == [
        without_cache.score_one(record) for record in records
    ]
    np.testing.assert_array_equal(cached.decision_function(records), without_cache.decision_function(records))
    assert cached.cache_info().currsize == 15 and cached.cache_info().hits >= 105
    cached.cache_clear()
    assert without_cache.with_cache(7).cache_info() == CacheInfo(0, 0, 7, 0)


@pytest.mark.parametrize("rows", [0, -1, 2.0, True, "9", 1 << 40])
def test_invalid_cache_sizes_are_refused(rows):
    with pytest.raises(ValueError, match="cache must be a whole number of rows from 1 to"):
        unkernel.compile(MODEL, cache=rows)
    with pytest.raises(ValueError, match="cache must be a whole number of rows from 1 to"):
        FAST["split"].with_cache(rows)


def test_models_of_trees_refuse_a_cache():
    clf = unkernel.TreeSVC().fit(["(A (B b))", "(A (C c))"], [0, 1])
    with pytest.raises(ValueError, match="models of trees have no cache"):
        unkernel.compile(clf, cache=10)
