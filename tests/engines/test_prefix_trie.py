"""Prefix tries contain the same as a dictionary of prefixes, and scores do not depend on them."""

from __future__ import annotations

import copy
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from reference import prefix_tries
from reference.kernels import assert_engine, assert_scores, make_rows_for, make_slots_model, set_weights
from reference.models import make_model
from reference.patience import wait_for
from reference.selection import few_examples
from unkernel import CompiledClassifier, load
from unkernel.engines.tables import builders
from unkernel.engines.tables.builders import Head
from unkernel.engines.tables.prefix_trie import PrefixTrie, export_trie, grow
from unkernel.models import KernelModel


def build_by_frequency(model, nbytes=4e6, **options):
    return builders.build_expanded(builders.Machine(model), head=Head(nbytes, by_frequency=True), **options)


def make_typical_rows(model, seed=0, count=40):
    """Return binary rows that resemble the support vectors."""
    X = make_rows_for(model, seed, count)
    return X[: 3 * count]


def column_sets(X):
    return [frozenset(np.flatnonzero(row).tolist()) for row in np.asarray(X)]


def classifier_with_trie(model, rows=None, limit=50, nbytes=300, **options):
    """Return a classifier with a trie, without measurements."""
    tables = build_by_frequency(model, nbytes, **options)
    engine = tables.engine()
    grow(engine, sparse.csr_matrix(make_typical_rows(model) if rows is None else rows), limit, "counted", 1)
    arrays = tables.arrays | export_trie(engine, limit)
    return CompiledClassifier(model, type(tables)(tables.layout, tables.parameters, tables.numbers, arrays))


# --- Content -------------------------------------------------------------------------------------------


@few_examples(10)
@given(
    seed=st.integers(0, 10**6),
    degree=st.integers(1, 4),
    scores=st.sampled_from([1, 2, 5]),
    limits=st.lists(st.integers(1, 200), min_size=1, max_size=3),
    saving=st.sampled_from(["counted", "entries"]),
    nbytes=st.sampled_from([0, 200, 4e6]),
    rare=st.sampled_from([0, 4, 10**9]),
)
def test_nodes_equal_the_entries_of_the_dictionary(*, seed, degree, scores, limits, saving, nbytes, rare):
    model = make_slots_model(seed, degree, scores=scores)
    tables = build_by_frequency(model, nbytes, rare_below=rare)
    engine = tables.engine()
    cost = (
        prefix_tries.saved_sums(degree) if saving == "counted" else prefix_tries.saved_entries(tables, degree)
    )
    expected = {}
    for part, limit in enumerate(limits):
        X = make_typical_rows(model, seed + part, 8)
        grow(engine, sparse.csr_matrix(X), limit, saving, 1 + part % 2)
        expected = prefix_tries.grow(expected, prefix_tries.sequences(tables, column_sets(X)), limit, cost)
        result = prefix_tries.decode(engine.trie(), scores)
        assert {prefix: count for prefix, (count, _) in result.items()} == expected
        assert engine.trie_nodes == len(expected) - 1 <= limit
    engine.prune_trie(most_nodes=3, saving=saving)
    result = prefix_tries.decode(engine.trie(), scores)
    in_levels = dict(sorted(expected.items(), key=lambda item: (len(item[0]), item[0])))
    assert {p: count for p, (count, _) in result.items()} == prefix_tries.prune(in_levels, 3, cost)


@few_examples(10)
@given(
    seed=st.integers(0, 10**6),
    degree=st.integers(1, 4),
    scores=st.sampled_from([1, 3]),
    limit=st.integers(1, 120),
    nbytes=st.sampled_from([0, 200, 4e6]),
    rare=st.sampled_from([0, 4]),
)
def test_sums_are_those_over_all_sets(*, seed, degree, scores, limit, nbytes, rare):
    model = make_slots_model(seed, degree, scores=scores)
    tables = build_by_frequency(model, nbytes, rare_below=rare)
    engine, weights = tables.engine(), set_weights(model)
    columns = tables.arrays["columns"].tolist()
    for part in range(2):
        grow(engine, sparse.csr_matrix(make_typical_rows(model, seed + part, 6)), limit, "counted", 1)
    for prefix, (_, sums) in prefix_tries.decode(engine.trie(), scores).items():
        expected = prefix_tries.partial_sum(weights, prefix, columns, degree)
        np.testing.assert_allclose(sums, np.broadcast_to(expected, scores), rtol=1e-10, atol=1e-11)


@few_examples(8)
@given(seed=st.integers(0, 10**6), limit=st.integers(1, 100), nbytes=st.sampled_from([0, 200, 4e6]))
def test_the_longest_stored_prefix_is_used(seed, limit, nbytes):
    """Each node's sum is replaced by a unique number, so that the score of a row identifies its node."""
    model = make_slots_model(seed, 2)
    tables = build_by_frequency(model, nbytes)
    engine, without_trie = tables.engine(), tables.engine()
    grow(engine, sparse.csr_matrix(make_typical_rows(model, seed, 6)), limit, "counted", 1)
    arrays = {name: np.array(array) for name, array in engine.trie().items()}
    stored = prefix_tries.decode(arrays, 1)
    numbers_of_nodes = dict(zip(stored, 1e3 * 2.0 ** np.arange(len(stored)) % 9973, strict=True))
    arrays["sums"] = arrays["sums"] + np.array(list(numbers_of_nodes.values()))
    engine.set_trie(arrays)
    for row in column_sets(make_typical_rows(model, seed + 1, 6)):
        (sequence,) = prefix_tries.sequences(tables, [row])
        longest = prefix_tries.longest_prefix(stored, sequence)
        ids = sorted(row)
        assert engine.one_row.score_one(ids) - without_trie.one_row.score_one(ids) == pytest.approx(
            numbers_of_nodes[longest], abs=1e-6
        )


# --- Scores --------------------------------------------------------------------------------------------


@few_examples(10)
@given(
    seed=st.integers(0, 10**6),
    degree=st.integers(1, 4),
    scores=st.sampled_from([1, 2, 3, 5]),
    limit=st.integers(1, 60) | st.just(10**6),
    saving=st.sampled_from(["counted", "entries"]),
    nbytes=st.sampled_from([0, 8, 200, 3000, 4e6]),
    rare=st.sampled_from([0, 2, 4, 9, 10**9]),
)
def test_tries_do_not_change_scores(*, seed, degree, scores, limit, saving, nbytes, rare):
    model = make_slots_model(seed, degree, scores=scores)
    tables = build_by_frequency(model, nbytes, rare_below=rare)
    engine = tables.engine()
    X = make_rows_for(model, seed)
    for part in range(2):
        grow(engine, sparse.csr_matrix(make_typical_rows(model, seed + part, 10)), limit, saving, 2)
        assert engine.trie_nodes <= limit
        assert_engine(engine, model, X)
    engine.drop_trie()
    assert engine.trie() is None and engine.trie_nodes == 0
    assert_engine(engine, model, X)


@few_examples(10)
@given(
    seed=st.integers(0, 10**6),
    degree=st.integers(1, 3),
    classes=st.sampled_from([2, 3, 5]),
    limit=st.integers(1, 300),
    nbytes=st.sampled_from([0, 300, 4e6]),
)
def test_trained_models(seed, degree, classes, limit, nbytes):
    model = make_model(seed, degree=degree, used=10, n_features=14, classes=range(classes), share=0.5)
    rng = np.random.default_rng(seed)
    X = (rng.random((40, 17)) < 0.4).astype(float)
    X[0] = 0.0
    without_trie = builders.build_conjunctions(model, head=Head()).engine()
    engine = builders.build_conjunctions(model, head=Head(nbytes, by_frequency=True)).engine()
    grow(engine, sparse.csr_matrix(X[:25]), limit, "counted", 1)
    sizes = np.abs(model.intercept).sum() + np.abs(model.weights).sum()
    for rows, scale in ((sparse.csr_matrix(X), 1.0), (sparse.csr_matrix(X * rng.random(X.shape)), 1.0)):
        expected = np.asarray(without_trie.score(rows, 1))
        for threads in (1, 2):
            result = engine.score(rows, threads)
            assert np.abs(np.asarray(result) - expected).max() <= 1e-13 * sizes * scale


@pytest.mark.parametrize("scores", [1, 2])
def test_tries_over_pruned_weights(scores):
    model = make_slots_model(5, 3, scores=scores)
    X = sparse.csr_matrix(make_rows_for(model))
    engine = build_by_frequency(model, 300, threshold=0.8).engine()
    expected = np.asarray(engine.score(X, 1))
    grow(engine, sparse.csr_matrix(make_typical_rows(model)), 70, "entries", 1)
    assert engine.trie_nodes == 70
    result = engine.score(X, 1)
    np.testing.assert_allclose(result, expected, rtol=1e-11, atol=1e-11)


def test_columns_that_are_already_by_frequency():
    """Columns that are already in the order of their frequency are accepted."""
    S = np.tril(np.ones((8, 8)))
    base = make_slots_model(1, 3, vectors=8)
    model = KernelModel(
        kernel=base.kernel,
        vectors=sparse.csr_matrix(S),
        coefficients=base.coefficients,
        intercept=base.intercept,
        decision=base.decision,
        n_features=8,
        fixed_width=False,
        origin={},
    )
    for nbytes in (0, 8, 100, 4e6):
        engine = build_by_frequency(model, nbytes).engine()
        grow(engine, model.support_vectors, 5, "counted", 1)
        assert engine.trie_nodes == 5
        assert_engine(engine, model, make_rows_for(model))


def test_rows_without_common_prefixes_are_accepted():
    """Empty rows, unknown columns, huge columns, other values and no rows at all."""
    model = make_slots_model(2, 3)
    engine = build_by_frequency(model, 300).engine()
    wide = sparse.csr_matrix(
        (np.ones(6), np.array([0, 2**31 - 1, 2**31, 2**40, 2**62, 2**62 + 1]), [0, 6]), (1, 2**62 + 2)
    )
    for rows in (sparse.csr_matrix((0, 5)), sparse.csr_matrix((3, 0)), sparse.csr_matrix((3, 50)), wide):
        grow(engine, rows, 9, "counted", 1)
        assert_engine(engine, model, make_rows_for(model))
    assert engine.trie_nodes == 1
    grow(engine, sparse.csr_matrix(make_typical_rows(model) * 0.5), 9, "counted", 1)
    assert_engine(engine, model, make_rows_for(model))
    with pytest.raises(ValueError, match="saving"):
        grow(engine, wide, 9, "most", 1)


def test_many_rows_on_two_threads():
    model = make_slots_model(1, 3, vectors=60, scores=2)
    X = np.tile(make_rows_for(model, count=30), (12, 1))
    engine = build_by_frequency(model, 300, rare_below=4).engine()
    grow(engine, sparse.csr_matrix(X), 500, "counted", 2)
    assert_engine(engine, model, X, threads=(1, 2, 3))
    other = build_by_frequency(model, 300, rare_below=4).engine()
    grow(other, sparse.csr_matrix(X), 500, "counted", 1)
    for name, array in engine.trie().items():
        assert np.array_equal(array, other.trie()[name])


def test_engines_without_conjunctions_have_no_trie():
    model = make_slots_model(1, 2)
    for tables in (
        builders.build_inverted(builders.Machine(model)),
        builders.build_bitsliced(builders.Machine(model)),
    ):
        with pytest.raises(ValueError, match="only engines of conjunctions"):
            grow(tables.engine(), model.support_vectors, 5, "counted", 1)
    fused = builders.build_expanded(builders.Machine(model), head=Head(4e6, fused=2))
    grouped = builders.build_expanded(builders.Machine(model), head=Head(4e6, grouped=4, sum_bytes=1e5))
    for tables in (fused, grouped):
        with pytest.raises(ValueError, match="fused or grouped"):
            grow(tables.engine(), model.support_vectors, 5, "counted", 1)


# --- During growth ------------------------------------------------------------------------------------


@pytest.mark.parametrize("scores", [1, 3])
def test_scores_are_correct_while_a_trie_grows(scores):
    model = make_slots_model(3, 3, scores=scores, vectors=60)
    fast = classifier_with_trie(model, limit=20, rare_below=4)
    X = np.tile(make_rows_for(model, count=25), (12, 1))
    parts = [make_typical_rows(model, seed, 10) for seed in range(6)]
    stop = threading.Event()
    node_sets = set()
    rounds = [0, 0, 0]

    def score(scorer):
        worker = fast.worker()
        row = np.flatnonzero(X[3]).tolist()
        while not stop.is_set():
            assert_scores(fast.decision_function(X, n_jobs=2), model, X, 1e-12)
            assert_scores([worker.score_one(row)], model, X[3:4], 1e-12)
            assert_scores([fast.score_one(row)], model, X[3:4], 1e-12)
            rounds[scorer] += 1

    with ThreadPoolExecutor(4) as pool:
        scoring = [pool.submit(score, scorer) for scorer in range(3)]
        try:
            while min(rounds) < 10 and not any(future.done() for future in scoring):
                for part in parts:
                    fast.trie.grow(part, n_jobs=1)
                    assert fast.trie.nodes <= 20
                    node_sets.add(tuple(fast._engine.trie()["ranks"].tolist()))
        finally:
            stop.set()
        for future in scoring:
            future.result()
    assert len(node_sets) > 1


def test_growing_from_several_threads_counts_all_rows():
    model = make_slots_model(3, 2)
    fast = classifier_with_trie(model, limit=10**6)
    earlier = int(fast._engine.trie()["counts"][0])
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda seed: fast.trie.grow(make_typical_rows(model, seed, 5), n_jobs=1), range(12)))
    assert int(fast._engine.trie()["counts"][0]) == earlier + 12 * 15


def test_the_first_threads_share_one_engine():
    model = make_slots_model(3, 2)
    for _ in range(20):
        fast = copy.copy(classifier_with_trie(model))
        start = threading.Barrier(4)

        def get_trie_and_engine(fast=fast, start=start):
            start.wait()
            return fast.trie, fast._engine

        with ThreadPoolExecutor(4) as pool:
            result = [future.result() for future in [pool.submit(get_trie_and_engine) for _ in range(4)]]
        assert len({id(trie) for trie, _ in result}) == len({id(engine) for _, engine in result}) == 1


def is_growing():
    return any(thread.name.endswith("(grow)") for thread in threading.enumerate())


@pytest.mark.parametrize("share", [1.0, 0.25])
def test_sampling_grows_in_the_background(share):
    model = make_slots_model(3, 3)
    fast = classifier_with_trie(model, rows=np.zeros((1, 5)), limit=30)
    assert fast.trie.nodes == 0
    assert fast.trie.sample(share, batch=50) is fast.trie
    X = make_typical_rows(model, 1, 20)
    for _ in range(3):
        assert_scores(fast.decision_function(X), model, X, 1e-12)
    assert fast.trie.nodes == 0 or share == 1.0  # 45 of 180 rows are not a batch yet
    fast.predict(make_typical_rows(model, 2, 40))
    wait_for(lambda: fast.trie.nodes > 0)
    assert fast.trie.nodes <= 30
    assert_scores(fast.decision_function(X), model, X, 1e-12)
    fast.trie.sample(0)
    wait_for(lambda: not is_growing())
    earlier = int(fast._engine.trie()["counts"][0])
    for _ in range(3):
        fast.predict(make_typical_rows(model, 3, 40))
    assert not is_growing()
    assert int(fast._engine.trie()["counts"][0]) == earlier


def test_sampling_counts_each_row_once():
    model = make_slots_model(3, 2)
    fast = classifier_with_trie(model, rows=np.zeros((1, 5)), limit=1000)
    X = make_typical_rows(model, 1, 5)
    fast.trie.sample(1.0, batch=len(X))
    for row in X:
        assert fast.trie.nodes == 0
        fast.predict(row[None, :])
    wait_for(lambda: fast.trie.nodes > 0)
    sequences = prefix_tries.sequences(fast.tables, column_sets(X))
    expected = prefix_tries.grow({(): 1}, sequences, 1000, prefix_tries.saved_sums(2))
    result = prefix_tries.decode(fast._engine.trie(), 1)
    assert {prefix: count for prefix, (count, _) in result.items()} == expected


def test_sampled_rows_can_differ_in_width():
    model = make_slots_model(3, 2)
    fast = classifier_with_trie(model, rows=np.zeros((1, 5)), limit=1000)
    fast.trie.sample(1.0, batch=30)
    for width in (3, 30, 7, 500):
        X = np.zeros((10, width))
        X[:, : min(width, model.n_features)] = make_typical_rows(model, 1, 10)[
            :10, : min(width, model.n_features)
        ]
        assert_scores(
            fast.decision_function(X), model, X, 1e-12
        ) if width > model.n_features else fast.predict(X)
    wait_for(lambda: fast.trie.nodes > 0)


@pytest.mark.parametrize(
    ("share", "batch"),
    [
        *((share, 10) for share in (-0.1, 1.5, float("nan"), True, "0.1", None)),
        *((0.5, batch) for batch in (0, True, 1.5, "x", float("inf"))),
    ],
)
def test_invalid_sample_options_are_refused(share, batch):
    with pytest.raises(ValueError, match=r"(share|batch) must be"):
        classifier_with_trie(make_slots_model(3, 2)).trie.sample(share, batch=batch)


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "many", None, 2**31])
def test_invalid_limits_are_refused(limit):
    fast = classifier_with_trie(make_slots_model(3, 2))
    with pytest.raises(ValueError, match="limit must be a whole number from 1"):
        fast.trie.limit = limit
    assert fast.trie.limit == 50


def test_the_limit_can_be_changed(tmp_path):
    model = make_slots_model(3, 2)
    fast = classifier_with_trie(model)
    assert fast.trie.nodes == 50 and repr(fast.trie) == "PrefixTrie(nodes=50, limit=50)"
    fast.trie.limit = 7
    assert fast.trie.grow(make_typical_rows(model)).nodes == 7
    fast.save(tmp_path / "fast.uk")
    assert load(tmp_path / "fast.uk").trie.limit == 7


def test_rows_to_grow_from_are_checked():
    fast = classifier_with_trie(make_slots_model(3, 2))
    with pytest.raises(ValueError, match="NaN"):
        fast.trie.grow([[np.nan] * 19])
    with pytest.raises(ValueError, match="saving must be one of counted, entries"):
        fast.trie.grow(np.zeros((1, 19)), saving="most")


# --- Files and copies ----------------------------------------------------------------------------------


def copy_by_file(fast, folder):
    fast.save(folder / "fast.uk")
    return load(folder / "fast.uk")


COPIES = {
    "file": copy_by_file,
    "pickle": lambda fast, _: pickle.loads(pickle.dumps(fast)),
    "deepcopy": lambda fast, _: copy.deepcopy(fast),
    "copy": lambda fast, _: copy.copy(fast),
}


@pytest.mark.parametrize("copy_method", COPIES)
def test_copies_keep_the_grown_trie_and_grow_apart(copy_method, tmp_path):
    model = make_slots_model(3, 3, scores=3)
    fast = classifier_with_trie(model, limit=40, rare_below=4)
    fast.trie.grow(make_typical_rows(model, 5))
    X = make_rows_for(model)
    other = COPIES[copy_method](fast, tmp_path)
    assert isinstance(other.trie, PrefixTrie) and other.trie is not fast.trie
    assert (other.trie.nodes, other.trie.limit) == (fast.trie.nodes, fast.trie.limit) == (40, 40)
    assert other.trie.nbytes == fast.trie.nbytes > 0 and other.nbytes == fast.nbytes
    earlier = {name: np.array(array) for name, array in fast._engine.trie().items()}
    for name, array in other._engine.trie().items():
        assert np.array_equal(array, earlier[name])
    assert np.array_equal(other.decision_function(X), fast.decision_function(X))
    other.trie.limit = 90
    other.trie.grow(make_typical_rows(model, 7))
    assert other.trie.nodes == 90
    assert_scores(other.decision_function(X), model, X, 1e-12)
    for name, array in fast._engine.trie().items():
        assert np.array_equal(array, earlier[name])
    second_copy = COPIES[copy_method](other, tmp_path)
    assert second_copy.trie.nodes == 90


def test_a_saved_trie_gives_the_same_bytes(tmp_path):
    fast = classifier_with_trie(make_slots_model(3, 3))
    fast.save(tmp_path / "one.uk")
    load(tmp_path / "one.uk").save(tmp_path / "two.uk")
    assert (tmp_path / "one.uk").read_bytes() == (tmp_path / "two.uk").read_bytes()


def test_files_can_be_saved_while_the_trie_grows(tmp_path):
    model = make_slots_model(3, 2)
    fast = classifier_with_trie(model, limit=30)
    X = make_rows_for(model)
    with ThreadPoolExecutor(1) as pool:
        growing = pool.submit(
            lambda: [fast.trie.grow(make_typical_rows(model, s, 10), n_jobs=1) for s in range(40)]
        )
        while not growing.done():
            fast.save(tmp_path / "fast.uk")
            assert_scores(load(tmp_path / "fast.uk").decision_function(X), model, X, 1e-12)
        growing.result()


def test_the_queue_of_sampled_rows_is_bounded():
    classifier = classifier_with_trie(make_slots_model(0, 2))
    trie = classifier.trie.sample(1.0, batch=10)
    with trie._growing:  # simulates a long growth
        for _ in range(5):
            classifier.predict(np.ones((200, classifier.n_features_in_)))
        assert sum(part.shape[0] for part in trie._sampler._waiting) <= 20
    trie._sampler._thread.join()


# Python warns of forks while threads run, which this test needs.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_locks_that_are_held_at_a_fork_are_free_in_the_child():
    fast = classifier_with_trie(make_slots_model(3, 2))
    fast.trie.sample(1.0, batch=5)
    X = np.ones((6, fast.n_features_in_))
    with fast.trie._growing, fast.trie._sampler._lock:  # simulates other working threads
        child = os.fork()
        if child == 0:
            fast.trie.grow(X)
            fast.predict(X)
            os._exit(7)
        exit_statuses: list[int] = []

        def has_ended() -> bool:
            pid, status = os.waitpid(child, os.WNOHANG)
            exit_statuses.extend([status] if pid else [])
            return bool(exit_statuses)

        wait_for(has_ended)
    assert os.waitstatus_to_exitcode(exit_statuses[0]) == 7
