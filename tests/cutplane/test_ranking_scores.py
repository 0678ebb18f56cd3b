"""NDCG, compared with scikit-learn and with explicit sums, and scores without groups."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score as sklearn_ndcg

from unkernel import RankSVM
from unkernel.cutplane import ndcg_score
from unkernel.cutplane.solver_run import merge_equal_rows
from unkernel.data.rows.csr import canonical_rows


@given(
    data=st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 3)), min_size=2, max_size=30),
    k=st.one_of(st.none(), st.integers(1, 12)),
)
def test_one_query_has_the_ndcg_of_scikit_learn(data, k):
    labels, scores = np.array(data).T
    expected = sklearn_ndcg([labels], [scores.astype(float)], k=k)
    result = ndcg_score(labels, scores, k=k, gain="linear", without_relevant="zero")
    assert result == pytest.approx(expected, abs=1e-12)


def compute_ndcg(labels, scores, k):
    """Return NDCG of one query whose scores are all distinct."""
    gains = [2.0**label - 1 for label in labels]

    def sum_discounted_gains(order):
        return sum(gains[i] / math.log2(place + 2) for place, i in enumerate(order[:k]))

    best = sum_discounted_gains(sorted(range(len(gains)), key=lambda i: -gains[i]))
    return sum_discounted_gains(sorted(range(len(gains)), key=lambda i: -scores[i])) / best if best else None


def test_queries_are_averaged_by_the_stated_convention():
    rng = np.random.default_rng(1)
    qid, labels, scores = rng.integers(0, 9, 60), rng.integers(0, 4, 60), rng.permutation(60) / 7
    labels[np.isin(qid, [2, 5])] = 0
    values = [compute_ndcg(labels[qid == q].tolist(), scores[qid == q].tolist(), 3) for q in np.unique(qid)]
    defined = [value for value in values if value is not None]
    assert len(defined) == len(values) - 2
    assert ndcg_score(labels, scores, qid, k=3) == pytest.approx(np.mean(defined))
    for convention, number in (("zero", 0.0), ("one", 1.0)):
        expected = np.mean([number if value is None else value for value in values])
        result = ndcg_score(labels, scores, qid, k=3, without_relevant=convention)
        assert result == pytest.approx(expected)


@pytest.mark.parametrize(
    ("labels", "options", "complaint"),
    [
        ([0, 0], {}, "no query has a relevant row"),
        ([1, -1], {}, "labels below 0"),
        ([1, 99], {}, "gain='linear'"),
        ([1, 0], {"k": 0}, "k must be"),
        ([1, 0], {"k": True}, "k must be"),
        ([1, 0], {"gain": "log"}, "gain must be"),
        ([1, 0], {"without_relevant": "half"}, "without_relevant must be"),
    ],
)
def test_labels_and_options_without_an_ndcg_are_refused(labels, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        ndcg_score(labels, [0.5, 0.1], **options)


def test_a_ranker_fitted_with_groups_warns_when_it_is_scored_without(tmp_path):
    X, y, qid = [[0.0], [1.0], [2.0], [9.0]], [1, 2, 1, 2], [1, 1, 2, 2]
    ranker = RankSVM().fit(X, y, qid=qid)
    ranker.save(tmp_path / "r.uk")
    for fitted_or_loaded in (ranker, RankSVM.load(tmp_path / "r.uk")):
        with pytest.warns(UserWarning, match="fitted with groups, but score was given no qid"):
            assert fitted_or_loaded.score(X, y) == 0.75
        with pytest.warns(UserWarning, match="fitted with groups, but ndcg was given no qid"):
            fitted_or_loaded.ndcg(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert fitted_or_loaded.score(X, y, qid=qid) == fitted_or_loaded.ndcg(X, y, qid=qid) == 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RankSVM().fit(X, y).score(X, y)


# --- Equal rows ----------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32), weighted=st.booleans(), many_equal=st.booleans())
def test_equal_rows_of_a_class_become_one(seed, weighted, many_equal):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2 if many_equal else 50, (40, 3)).astype(float)
    codes = rng.integers(0, 2, 40).astype(np.int32)
    weights = rng.integers(0, 3, 40).astype(float) if weighted else None
    expected: dict[tuple, float] = {}
    for row, code, weight in zip(X.tolist(), codes, np.ones(40) if weights is None else weights, strict=True):
        if weight > 0:
            expected[*row, code] = expected.get((*row, code), 0.0) + weight
    first_rows, merged, summed = merge_equal_rows(canonical_rows(X), codes, weights)
    if summed is None:
        assert first_rows is None and len(expected) == 40
        first_rows, summed = np.arange(40), np.ones(40)
    keys = [(*row, code) for row, code in zip(X[first_rows].tolist(), merged, strict=True)]
    assert len(set(keys)) == len(keys)
    assert dict(zip(keys, summed, strict=True)) == expected
    order = rng.permutation(40)  # after merging, the order of rows does not matter
    merged_again = merge_equal_rows(
        canonical_rows(X[order]), codes[order], None if weights is None else weights[order]
    )
    if merged_again.weights is not None:
        np.testing.assert_array_equal(X[order][merged_again.order], X[first_rows])
        np.testing.assert_array_equal(merged_again.weights, summed)
