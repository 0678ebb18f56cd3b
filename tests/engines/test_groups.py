"""Groups of features, records of rare features and the order of the head do not change scores."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import unkernel
from reference.grouped import (
    count_states,
    count_sums,
    list_conjunctions,
    read_groups,
    read_states,
    sum_weights,
)
from reference.kernels import (
    assert_engine,
    make_kernel_model,
    make_rows_for,
    make_slots_model,
    polynomial,
    set_weights,
)
from reference.models import count_conjunctions, make_model
from reference.selection import few_examples
from unkernel.engines.tables import builders
from unkernel.engines.tables.builders import Head
from unkernel.models import KernelModel

MAX_GROUPS = 24


def build_tables(model, head, **options):
    return builders.build_expanded(builders.Machine(model), head=head, **options)


def column_sets(X):
    return [frozenset(np.flatnonzero(row).tolist()) for row in X]


def build_groups(model, features, sums=1e5, nbytes=4e6, **options):
    return build_tables(
        model, Head(nbytes, grouped=features, sum_bytes=8.0 * model.n_scores * sums), **options
    )


# --- Choice of groups ---------------------------------------------------------------------------------


@few_examples(10)
@given(
    seed=st.integers(0, 10**6),
    degree=st.integers(1, 4),
    features=st.integers(1, 18),
    sums=st.sampled_from([1, 20, 300, 1e4]),
)
def test_states_equal_states_of_the_support_vectors(seed, degree, features, sums):
    model = make_slots_model(seed, degree)
    tables = build_groups(model, features, sums)
    rows = column_sets(model.support_vectors.toarray())
    groups = read_groups(tables)
    if not groups:
        assert features > MAX_GROUPS
        return
    frequencies = np.bincount(model.support_vectors.indices, minlength=model.n_features)
    grouped_columns = [column for group in groups for column in group]
    assert len(set(grouped_columns)) == len(grouped_columns) == min(features, np.count_nonzero(frequencies))
    other_columns = set(np.flatnonzero(frequencies).tolist()) - set(grouped_columns)
    assert min(frequencies[grouped_columns]) >= max((frequencies[c] for c in other_columns), default=0)
    stored, state_counts = read_states(tables), count_states(groups, rows)
    assert count_sums(stored, degree) <= sums
    lowest_kept_counts = [
        min((counts[s] for s in states), default=0)
        for states, counts in zip(stored, state_counts, strict=True)
    ]
    for states, counts in zip(stored, state_counts, strict=True):
        assert len(set(states)) == len(states) and set(states) <= set(counts)
        # Dropped states of any group are rarer than all kept states.
        dropped_counts = [counts[s] for s in counts if s not in states]
        assert (
            max(dropped_counts, default=0) < min((r for r in lowest_kept_counts if r), default=10**9)
            or not dropped_counts
        )


@few_examples(6)
@given(
    seed=st.integers(0, 10**6),
    degree=st.integers(1, 4),
    scores=st.sampled_from([1, 2, 3, 5]),
    features=st.integers(1, 10),
)
def test_sums_are_those_over_all_sets(seed, degree, scores, features):
    model = make_slots_model(seed, degree, scores=scores, slots=3)
    tables = build_groups(model, features, 2000)
    states, weights = read_states(tables), set_weights(model)
    names = ("state_sums", "state_pair_sums", "state_triple_sums", "state_quadruple_sums")
    for size, name in enumerate(names, 1):
        result = tables.arrays[name].reshape(-1, scores)
        expected = (
            [sum_weights(weights, conjunction, degree) for conjunction in list_conjunctions(states, size)]
            if size <= degree
            else []
        )
        np.testing.assert_allclose(result, np.array(expected).reshape(-1, scores), rtol=1e-11, atol=1e-11)


def test_slots_become_groups():
    """Each slot has one of four values or none, so a group of a slot has four states."""
    model = make_slots_model(3, 2, vectors=400, slots=5, values=4, others=0)
    tables = build_groups(model, 20, 5000)
    states = read_states(tables)
    assert len(states) <= 5 and count_sums(states, 2) <= 5000
    state_counts = count_states(read_groups(tables), column_sets(model.support_vectors.toarray()))
    assert [set(group) for group in states] == [set(counts) for counts in state_counts]
    without_groups = build_groups(model, 20, 0)
    assert not without_groups.arrays["group_begins"].size


def test_independent_features_are_not_grouped():
    """Independent features cannot be grouped with so few sums."""
    model = make_kernel_model(1, polynomial(3), vectors=200, features=42, share=0.5)
    tables = build_groups(model, 40, 12_000)
    assert not read_groups(tables) and not tables.arrays["states"].size
    assert_engine(tables.engine(), model, make_rows_for(model))


# --- Scores --------------------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 10**6),
    degree=st.integers(1, 4),
    scores=st.sampled_from([1, 2, 3, 5]),
    features=st.integers(0, 30),
    sums=st.sampled_from([1, 20, 300, 1e5]),
    nbytes=st.sampled_from([0, 300, 3000, 4e6]),
    rare=st.sampled_from([0, 2, 4, 9, 10**9]),
)
def test_groups_change_no_score(*, seed, degree, scores, features, sums, nbytes, rare):
    model = make_slots_model(seed, degree, scores=scores)
    tables = build_groups(model, features, sums, nbytes, rare_below=rare)
    assert_engine(tables.engine(), model, make_rows_for(model, seed))


@few_examples(10)
@given(
    seed=st.integers(0, 10**6),
    degree=st.integers(1, 4),
    scores=st.sampled_from([1, 2, 3, 5]),
    nbytes=st.sampled_from([0, 8, 100, 3000, 4e6]),
    rare=st.integers(0, 12) | st.just(10**9),
    by_frequency=st.booleans(),
)
def test_borders_and_order_change_no_score(*, seed, degree, scores, nbytes, rare, by_frequency):
    model = make_slots_model(seed, degree, scores=scores)
    tables = build_tables(model, Head(nbytes, by_frequency=by_frequency), rare_below=rare)
    frequencies = np.bincount(model.support_vectors.indices, minlength=model.n_features)
    in_order = frequencies[tables.arrays["columns"]]
    assert not by_frequency or (np.diff(in_order) <= 0).all()
    assert (tables.arrays["posting_records"].size > 0) == (tables.numbers["rare"] < len(in_order))
    assert_engine(tables.engine(), model, make_rows_for(model, seed))


@few_examples(10)
@given(
    seed=st.integers(0, 10**6),
    degree=st.integers(1, 3),
    classes=st.sampled_from([2, 3, 5]),
    feature_map=st.sampled_from(["kernel", "plain"]),
    features=st.integers(0, 12),
    sums=st.sampled_from([1, 30, 1e5]),
    by_frequency=st.booleans(),
)
def test_trained_models(*, seed, degree, classes, feature_map, features, sums, by_frequency):
    model = make_model(
        seed,
        degree=degree,
        used=10,
        n_features=14,
        classes=range(classes),
        feature_map=feature_map,
        share=0.5,
    )
    rng = np.random.default_rng(seed)
    X = (rng.random((30, 17)) < 0.4).astype(float)
    X[0] = 0.0
    head = Head(4e6, grouped=features, sum_bytes=8.0 * len(model.intercept) * sums, by_frequency=by_frequency)
    without_groups = builders.build_conjunctions(model, head=Head(4e6)).engine()
    tables = builders.build_conjunctions(model, head=head, sample=sparse.csr_matrix(X[:15]))
    assert not features or by_frequency or read_groups(tables)
    engine = tables.engine()
    for rows in (sparse.csr_matrix(X), sparse.csr_matrix(X * rng.normal(size=X.shape))):
        expected = without_groups.score(rows, 1)
        sizes = (
            np.abs(model.intercept).sum() + np.abs(model.weights).sum() * max(1, abs(rows).max()) ** degree
        )
        for threads in (1, 2):
            result = engine.score(rows, threads)
            assert np.abs(np.asarray(result) - expected).max() <= 1e-13 * sizes


@pytest.mark.parametrize("degree", [2, 3])
def test_pruned_weights_can_be_grouped(degree):
    model = make_slots_model(5, degree, scores=2)
    X = sparse.csr_matrix(make_rows_for(model))
    expected, by_groups, by_frequency = (
        build_tables(model, head, threshold=0.8).engine().score(X, 1)
        for head in (Head(), Head(grouped=10, sum_bytes=1e5), Head(by_frequency=True))
    )
    exact = build_tables(model, Head()).engine().score(X, 1)
    assert np.abs(np.asarray(exact) - expected).max() > 1e-3
    np.testing.assert_allclose(by_groups, expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(by_frequency, expected, rtol=1e-11, atol=1e-11)


def test_many_rows_on_two_threads():
    model = make_slots_model(1, 3, vectors=60)
    X = np.tile(make_rows_for(model, count=30), (12, 1))
    for tables in (
        build_groups(model, 12, rare_below=4),
        build_tables(model, Head(300, by_frequency=True), rare_below=4),
    ):
        assert_engine(tables.engine(), model, X, threads=(1, 2, 3))
        rows = sparse.csr_matrix(X)
        on_one_thread, on_two_threads = (tables.engine().score(rows, n) for n in (1, 2))
        assert np.array_equal(on_one_thread, on_two_threads)


def test_groups_over_several_words_of_bits():
    """With more than 64 grouped features, a group's bits may be in two words."""
    model = make_slots_model(2, 2, vectors=500, slots=24, values=4, others=30)
    tables = build_groups(model, 90, 1e6, rare_below=20)
    groups = read_groups(tables)
    assert len([c for group in groups for c in group]) == 90
    begins = tables.arrays["group_begins"].tolist()
    assert any(begin // 64 != (end - 1) // 64 for begin, end in itertools.pairwise(begins))
    assert_engine(tables.engine(), model, make_rows_for(model))


# --- Records -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("common", "words"), [(0, 0), (1, 2), (64, 2), (128, 2), (129, 4), (384, 6), (512, 8), (513, None)]
)
def test_records_have_a_bit_for_each_common_feature(common, words):
    """Beyond 512 common features, support vectors are lists of items."""
    rng = np.random.default_rng(common)
    S = np.zeros((9, common + 20))
    S[:6, :common] = 1.0
    S[6:, :common] = rng.random((3, common)) < 0.5
    S[6:, common:] = rng.random((3, 20)) < 0.6
    base = make_slots_model(1, 2, vectors=9, scores=2)
    model = KernelModel(
        kernel=base.kernel,
        vectors=sparse.csr_matrix(S),
        coefficients=base.coefficients,
        intercept=base.intercept,
        decision=base.decision,
        n_features=S.shape[1],
        fixed_width=False,
        origin={},
    )
    tables = build_tables(model, Head(0.0), rare_below=4)
    assert tables.numbers["rare"] == common
    records = tables.arrays["posting_records"]
    if words is None:
        assert not records.size and tables.arrays["items"].size
    else:
        assert records.size == tables.arrays["posting_begins"][-1] * (words + 2 + 1)
        assert not tables.arrays["items"].size
    assert_engine(tables.engine(), model, make_rows_for(model, count=4), 1e-11)


@pytest.mark.parametrize(("rare", "as_records"), [(65_535, True), (65_536, False)])
def test_a_vector_of_very_many_rare_features(rare, as_records):
    """Overlaps of records are counted in 16 bits."""
    S = sparse.csr_matrix((np.ones(rare), np.arange(rare), [0, rare, rare]), (2, rare))
    base = make_slots_model(1, 2, vectors=2)
    model = KernelModel(
        kernel=base.kernel,
        vectors=S,
        coefficients=base.coefficients,
        intercept=base.intercept,
        decision=base.decision,
        n_features=rare,
        fixed_width=False,
        origin={},
    )
    if not as_records:
        with pytest.raises(MemoryError):  # lists of all features before each
            build_tables(model, Head(0.0), rare_below=10, most_bytes=1e8)
        return
    tables = build_tables(model, Head(0.0), rare_below=10, most_bytes=1e8)
    row = np.arange(rare, dtype=np.int32)
    engine = tables.engine()
    for count in (rare, 2, rare):  # earlier counts are reset
        row_matrix = sparse.csr_matrix((np.ones(count), row[:count], [0, count]), (1, rare))
        assert engine.one_row.score_one(row[:count]) == pytest.approx(
            model.scores(row_matrix)[0, 0], rel=1e-12
        )


# --- Listings, memory and choice -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "head", [Head(grouped=9, sum_bytes=1e5), Head(300, by_frequency=True), Head(by_frequency=True)]
)
def test_heaviest_conjunctions_do_not_depend_on_the_head(head):
    model = make_slots_model(4, 3)
    expected = build_tables(model, Head(0.0)).heaviest_conjunctions(10**6)
    conjunctions = build_tables(model, head).heaviest_conjunctions(10**6)
    assert list(conjunctions["counts"]) == list(expected["counts"])

    def key_by_columns(listing):
        columns = np.asarray(listing["columns"]).tolist()
        return dict(zip(map(tuple, columns), np.asarray(listing["weights"])[:, 0].tolist(), strict=True))

    assert key_by_columns(conjunctions) == pytest.approx(key_by_columns(expected), rel=1e-12)


def test_memory_is_counted():
    """Only sums of existing states count towards the memory limit."""
    model = make_slots_model(4, 3)
    tables = build_groups(model, 9, 1e9, most_bytes=3e6)
    assert read_groups(tables)
    used = tables.nbytes
    with pytest.raises(MemoryError):
        build_groups(model, 9, 1e9, most_bytes=used / 2)


def test_auto_tries_groups():
    model = make_slots_model(4, 3, vectors=200, scores=3)
    fast = unkernel.compile(model)
    with_groups = [candidate for candidate in fast.candidates if candidate.grouped]
    assert with_groups and all(candidate.microseconds > 0 for candidate in with_groups)
    X = make_rows_for(model)
    found, expected = fast.decision_function(X), model.scores(X)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    trained = make_model(1, degree=3, used=12, n_features=14, classes=range(3))
    fast = unkernel.compile(trained, sample=(np.random.default_rng(0).random((200, 14)) < 0.4) * 1.0)
    assert any(candidate.grouped for candidate in fast.candidates)
    assert count_conjunctions(12, 3, True) >= len(trained.keys)
