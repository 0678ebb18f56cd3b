"""RankSVM with pairs weighted by NDCG, compared with the enumeration of all best orders."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import cutting_planes as reference
from reference.rankings import EXACT, listed_pairs, make_ranking, solve_pairs
from reference.selection import few_examples
from unkernel import RankSVM
from unkernel.cutplane.rankings import encode_ranking


def small_groups(seed, *, rows=30, weighted=False):
    """Return groups of at most five rows, whose best orders can be enumerated."""
    X, y, _ = make_ranking(seed, rows=rows, labels=(0, 1, 3))
    qid = np.random.default_rng(seed).permutation(np.arange(rows) // 5)
    weights = np.random.default_rng(seed).choice([0.0, 0.5, 2.0], rows) if weighted else None
    return X, y, qid, weights


@pytest.mark.parametrize("weighted", [False, True])
def test_objective_equals_the_sum_over_listed_pairs(weighted):
    X, y, qid, weights = small_groups(1, weighted=weighted)
    ranker = RankSVM(C=0.3, pair_weight="ndcg", **EXACT).fit(X, y, qid, weights)
    pairs, total = listed_pairs(y, qid, weights, "ndcg")
    recomputed = reference.objective(ranker.coef_, X, 0.3, lambda s: reference.ordinal_risk(pairs, total, s))
    assert ranker.objective_ == pytest.approx(recomputed, rel=1e-8)
    assert ranker.objective_ == pytest.approx(solve_pairs(X, 0.3, pairs, total), rel=1e-6)
    assert ranker.gap_ <= 1e-7
    all_pairs, ordered = reference.count_pairs(pairs, X @ ranker.coef_)
    assert ranker.score(X, y, qid, weights) == pytest.approx(ordered / all_pairs, rel=1e-9)


@few_examples(10, print_blob=True)
@given(
    y=st.lists(st.sampled_from([0, 1, 2, 2.5, 4]), min_size=1, max_size=6),
    seed=st.integers(0, 2**32 - 1),
    groups=st.booleans(),
)
def test_pair_weights_equal_the_ndcg_loss_of_swaps(y, seed, groups):
    rng = np.random.default_rng(seed)
    qid = rng.integers(0, 2, len(y)) if groups else None
    weights = rng.choice([0.0, 1.0, 2.0], len(y))
    result = encode_ranking(np.array(y, dtype=float), qid, weights, "ndcg")
    for (i, j), loss in reference.swap_losses(y, () if qid is None else qid, weights).items():
        weight = (result["gains"][i] - result["gains"][j]) * (result["discounts"][i] - result["discounts"][j])
        assert weight == pytest.approx(loss, rel=1e-9, abs=1e-15)


def test_all_rows_as_one_group_are_one_query():
    X, y, _, _ = small_groups(2)
    ungrouped = RankSVM(pair_weight="ndcg").fit(X, y)
    grouped = RankSVM(pair_weight="ndcg").fit(X, y, np.full(len(y), 7))
    assert np.array_equal(ungrouped.coef_, grouped.coef_)


def test_two_labels_in_one_group_have_equal_pair_weights():
    """All pairs have the same NDCG weight, which scaling makes 1: weights are uniform."""
    X, y, _ = make_ranking(3, labels=(0, 1))
    by_ndcg = RankSVM(pair_weight="ndcg", **EXACT).fit(X, y)
    uniform = RankSVM(pair_weight="uniform", **EXACT).fit(X, y)
    assert by_ndcg.objective_ == pytest.approx(uniform.objective_, rel=2e-7)


def test_pair_weight_none_means_uniform():
    X, y, qid, _ = small_groups(4)
    assert np.array_equal(
        RankSVM(pair_weight=None).fit(X, y, qid).coef_, RankSVM(pair_weight="uniform").fit(X, y, qid).coef_
    )


def test_rows_without_weight_take_no_place():
    X, y, qid, _ = small_groups(5)
    weights = (np.arange(len(y)) % 3 > 0).astype(float)
    weighted_rows = weights > 0
    all_rows = RankSVM(pair_weight="ndcg", **EXACT).fit(X, y, qid, weights)
    fewer = RankSVM(pair_weight="ndcg", **EXACT).fit(X[weighted_rows], y[weighted_rows], qid[weighted_rows])
    assert all_rows.objective_ == pytest.approx(fewer.objective_, rel=2e-7)


@pytest.mark.parametrize(
    ("y", "complaint"),
    [([-1, 0, 1], "not negative"), ([0, 1, 61], "too large"), ([0, 0, 0], "pair")],
    ids=str,
)
def test_labels_must_be_relevance(y, complaint):
    with pytest.raises(ValueError, match=complaint):
        RankSVM(pair_weight="ndcg").fit([[0.0], [1.0], [2.0]], y)


def test_too_many_labels_are_refused():
    y = np.linspace(0, 1, 1025)
    with pytest.raises(ValueError, match="at most 1024 labels"):
        RankSVM(pair_weight="ndcg").fit(y[:, None], y)


def test_unknown_names_of_pair_weights_are_refused():
    with pytest.raises(ValueError, match="pair_weight"):
        RankSVM(pair_weight="map").fit([[0.0], [1.0]], [1, 2])
