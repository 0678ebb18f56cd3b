"""RankSVM, compared with sums over listed pairs."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import sklearn
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import unkernel
from reference import cutting_planes as reference
from reference.rankings import EXACT, listed_pairs, make_ranking, solve_pairs
from reference.selection import few_examples
from unkernel import CuttingPlaneSVC, RankSVM, load
from unkernel.cutplane import ordered_pairs


@parametrize_with_checks([RankSVM()])
def test_passes_the_estimator_checks_of_scikit_learn(estimator, check):
    check(estimator)


# --- The problem ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [0, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("pair_weight", [None, {(3, 1): 5.0, (2, 1): 0.5}], ids=["plain", "by class"])
def test_objective_equals_the_sum_over_listed_pairs(groups, weighted, pair_weight):
    X, y, qid = make_ranking(1, groups=groups)
    weights = np.random.default_rng(2).choice([0.0, 0.5, 1.0, 3.0], len(y)) if weighted else None
    ranker = RankSVM(C=0.3, pair_weight=pair_weight, **EXACT).fit(X, y, qid, weights)
    pairs, total = listed_pairs(y, qid, weights, pair_weight)
    recomputed = reference.objective(ranker.coef_, X, 0.3, lambda s: reference.ordinal_risk(pairs, total, s))
    assert ranker.objective_ == pytest.approx(recomputed, rel=1e-8)
    assert ranker.objective_ == pytest.approx(solve_pairs(X, 0.3, pairs, total), rel=1e-6)
    assert ranker.gap_ <= 1e-7
    assert ranker.coef_.shape == (5,)
    assert ranker.ranks_.tolist() == [1, 2, 3]
    all_pairs, ordered = reference.count_pairs(pairs, X @ ranker.coef_)
    assert ranker.score(X, y, qid, weights) == pytest.approx(ordered / all_pairs, rel=1e-9)


@few_examples(8, print_blob=True)
@given(
    seed=st.integers(0, 2**32 - 1), rows=st.integers(3, 25), C=st.floats(1e-3, 10), groups=st.integers(0, 3)
)
def test_no_weights_have_an_objective_below_the_bound(seed, rows, C, groups):
    rng = np.random.default_rng(seed)
    X, y, qid = make_ranking(seed, rows=rows, features=3, groups=groups)
    y = rng.permutation(y) if seed % 2 else y
    weights = rng.integers(0, 3, rows).astype(float)
    pairs, total = listed_pairs(y, qid, weights)
    assume(sum(v for _, _, v in pairs) > 0)
    ranker = RankSVM(C=C, tol=1e-6, max_iter=10_000).fit(X, y, qid, weights)

    def objective(w):
        return reference.objective(w, X, C, lambda s: reference.ordinal_risk(pairs, total, s))

    assert ranker.objective_ == pytest.approx(objective(ranker.coef_), rel=1e-6)
    bound = ranker.objective_ * (1 - ranker.gap_)
    for size in (0.0, 1e-3, 0.1):
        assert objective(ranker.coef_ + size * rng.normal(size=3)) >= bound * (1 - 1e-9)
    assert objective(np.zeros(3)) >= bound * (1 - 1e-9)


@pytest.mark.parametrize("groups", [0, 2])
def test_weights_stand_for_repeated_rows(groups):
    X, y, qid = make_ranking(3, groups=groups)
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    repetitions = np.random.default_rng(1).permutation(np.repeat(np.arange(len(y)), weights))
    weighted = RankSVM(C=0.5, **EXACT).fit(X, y, qid, weights)
    repeated = RankSVM(C=0.5, **EXACT).fit(
        X[repetitions], y[repetitions], None if qid is None else qid[repetitions]
    )
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=2e-7)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-3)
    assert weighted.score(X, y, qid, weights) == pytest.approx(
        weighted.score(X[repetitions], y[repetitions], None if qid is None else qid[repetitions])
    )


def test_groups_can_be_scattered_and_have_any_names():
    X, y, qid = make_ranking(4, groups=4)
    expected = RankSVM(**EXACT).fit(X, y, qid).objective_
    order = np.argsort(qid, kind="stable")
    names = np.array(["spring", "summer", "autumn", "winter"])
    for arguments in ((X[order], y[order], qid[order]), (X, y, names[qid]), (X, y, -1e9 * qid)):
        assert RankSVM(**EXACT).fit(*arguments).objective_ == pytest.approx(expected, rel=2e-7)
    assert RankSVM(**EXACT).fit(X, y).objective_ != pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    "labels",
    [(0.0, 0.25, 1e9), (-7, -3, 0), (-0.5, 0.5, 1.5), (False, True, True), (np.float32(0.1), 0.2, 0.3)],
    ids=str,
)
def test_only_the_order_of_labels_counts(labels):
    X, y, _ = make_ranking(5)
    y = np.searchsorted([1, 2, 3], y)
    ordinary = np.unique(np.array(labels), return_inverse=True)[1]
    expected = RankSVM().fit(X, ordinary[y])
    ranker = RankSVM().fit(X, np.array(labels)[y])
    assert np.array_equal(ranker.coef_, expected.coef_)
    assert ranker.score(X, np.array(labels)[y]) == expected.score(X, ordinary[y])


def test_all_rows_can_have_different_ranks():
    X, _, _ = make_ranking(6, rows=300)
    value = X @ np.arange(5.0) + 0.1 * np.random.default_rng(0).normal(size=300)
    ranker = RankSVM(C=1.0, tol=1e-5).fit(X, value)
    assert len(ranker.ranks_) == 300
    pairs, total = listed_pairs(value)
    recomputed = reference.objective(ranker.coef_, X, 1.0, lambda s: reference.ordinal_risk(pairs, total, s))
    assert ranker.objective_ == pytest.approx(recomputed, rel=1e-6)
    assert ranker.score(X, value) > 0.95


def test_two_labels_are_the_area_under_the_curve():
    X, y, _ = make_ranking(7, rows=300, labels=(-1, 1))
    X = X.round(1)  # for ties
    weights = np.random.default_rng(0).random(300)
    ranker = RankSVM().fit(X, y)
    scores = ranker.decision_function(X)
    assert ranker.score(X, y) == pytest.approx(roc_auc_score(y, scores), rel=1e-12)
    weighted = roc_auc_score(y, scores, sample_weight=weights)
    assert ranker.score(X, y, sample_weight=weights) == pytest.approx(weighted, rel=1e-9)
    classifier = unkernel.CuttingPlaneSVC(objective="roc_area", solver="cutting_plane").fit(X, y)
    np.testing.assert_allclose(classifier.coef_[0], ranker.coef_, atol=1e-12)


def test_equal_scores_count_half():
    X = np.zeros((6, 1))
    ranker = RankSVM().fit(np.arange(6.0)[:, None], [1, 1, 2, 2, 3, 3])
    assert ranker.score(X, [1, 2, 3, 1, 2, 3]) == 0.5
    assert ranker.score([[0.0], [1.0], [1.0]], [1, 2, 3]) == pytest.approx(2.5 / 3)


def test_threads_and_arrays_do_not_change_a_bit():
    X, y, qid = make_ranking(8, rows=2000, groups=20)
    expected = RankSVM().fit(X, y, qid)
    wide = sparse.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for rows, jobs in ((X, 2), (X, -1), (sparse.csr_array(X), 1), (wide, 2), (X.tolist(), 1)):
        refitted = RankSVM(n_jobs=jobs).fit(rows, list(y), list(qid))
        assert np.array_equal(refitted.coef_, expected.coef_)
        assert (refitted.objective_, refitted.gap_, refitted.n_iter_) == (
            expected.objective_,
            expected.gap_,
            expected.n_iter_,
        )
        assert np.array_equal(refitted.decision_function(rows), expected.decision_function(X))


def test_few_cuts_are_enough():
    X, y, _ = make_ranking(8, rows=500)
    ranker = RankSVM(max_cuts=4, max_iter=5000).fit(X, y)
    assert ranker.gap_ <= 1e-3
    assert ranker.objective_ == pytest.approx(RankSVM().fit(X, y).objective_, rel=2e-3)


def test_fits_that_do_not_converge_warn():
    X, y, _ = make_ranking(8, rows=500)
    with pytest.warns(ConvergenceWarning, match="max_iter=2") as caught:
        ranker = RankSVM(C=100, tol=1e-6, max_iter=2).fit(X, y)
    assert caught[0].filename == __file__
    assert ranker.gap_ > 1e-6


def test_an_interrupted_fit_leaves_no_attributes():
    X, y, _ = make_ranking(8, rows=20_000)

    def on_progress(_progress):
        raise KeyboardInterrupt

    ranker = RankSVM(C=1e3, tol=1e-12, max_iter=10**6)
    with pytest.raises(KeyboardInterrupt):
        ranker.fit_reporting(X, y, None, None, on_progress=on_progress)
    for ask in (
        ranker.decision_function,
        lambda X: ranker.score(X, y),
        lambda X: ranker.fit_thresholds(X, y),
    ):
        with pytest.raises(NotFittedError):
            ask(X)


# --- With tools of scikit-learn ------------------------------------------------------------------------


def test_works_in_pipelines():
    X, y, _ = make_ranking(11, rows=200)
    pipeline = make_pipeline(StandardScaler(), RankSVM()).fit(X, y)
    assert pipeline.score(X, y) > 0.7
    unpickled = pickle.loads(pickle.dumps(pipeline))
    assert np.array_equal(unpickled.decision_function(X), pipeline.decision_function(X))
    assert cross_val_score(RankSVM(), X, y, cv=3).shape == (3,)
    fitted = RankSVM(C=3, pair_weight={(3, 1): 2.0}).fit(X, y)
    assert clone(fitted).get_params() == fitted.get_params()


def test_groups_are_routed():
    X, y, qid = make_ranking(12, rows=240, groups=12)
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = RankSVM().set_fit_request(qid=True).set_score_request(qid=True)
        search = GridSearchCV(ranker, {"C": [0.01, 1.0]}, cv=GroupKFold(3), error_score="raise")
        search.fit(X, y, qid=qid, groups=qid)
    folds = GroupKFold(3).split(X, y, qid)
    for place, (train, test) in enumerate(folds):
        for row, C in enumerate([0.01, 1.0]):
            by_hand = RankSVM(C=C).fit(X[train], y[train], qid[train]).score(X[test], y[test], qid[test])
            assert search.cv_results_[f"split{place}_test_score"][row] == by_hand
    expected = RankSVM(C=search.best_params_["C"]).fit(X, y, qid)
    assert np.array_equal(search.best_estimator_.coef_, expected.coef_)


def test_groups_are_routed_through_pipelines():
    X, y, qid = make_ranking(12, rows=240, groups=12)
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = RankSVM().set_fit_request(qid=True).set_score_request(qid=True)
        pipeline = make_pipeline(StandardScaler(), ranker).fit(X, y, qid=qid)
        scaled = StandardScaler().fit_transform(X)
        expected = RankSVM().fit(scaled, y, qid)
        assert np.array_equal(pipeline[-1].coef_, expected.coef_)
        assert pipeline.score(X, y, qid=qid) == expected.score(scaled, y, qid)


# --- Invalid arguments ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "qid", "complaint"),
    [
        ([1, 1, 1], None, "pair|label"),
        ([1, 2, 3], [1, 2, 3], "pair"),
        ([1, 2, 3], [1, 2], "inconsistent"),
        ([1, 2, 3], [[1, 2, 3]], "inconsistent|1d"),
        ([1, 2], None, "inconsistent"),
        ([1, 2, np.nan], None, "NaN"),
        ([1, 2, np.inf], None, "infinity"),
        (["a", "b", "c"], None, "numeric|could not convert"),
        ([[1, 2], [1, 2], [1, 2]], None, "1d"),
        (None, None, "y"),
    ],
    ids=str,
)
def test_bad_labels_and_groups_are_named(y, qid, complaint):
    X = np.arange(6.0).reshape(3, 2)
    with pytest.raises(ValueError, match=complaint):
        RankSVM().fit(X, y, qid)
    if y is None:
        return
    ranker = RankSVM().fit(X, [1, 2, 3])
    with pytest.raises(ValueError, match=complaint):
        ranker.score(X, y, qid)


@pytest.mark.parametrize(
    ("parameters", "weights", "complaint"),
    [
        ({"C": 0}, None, "'C' parameter"),
        ({"C": np.inf}, None, "C"),
        ({"tol": -1.0}, None, "tol"),
        ({"max_cuts": 2}, None, "max_cuts"),
        ({"pair_weight": [1.0]}, None, "pair_weight"),
        ({"pair_weight": {(1, 2): 1.0}}, None, "higher label, lower label"),
        ({"pair_weight": {(1, 1): 1.0}}, None, "higher label, lower label"),
        ({"pair_weight": {3: 1.0}}, None, "higher label, lower label"),
        ({"pair_weight": {(2, 1): -1.0}}, None, "not negative"),
        ({"pair_weight": {(2, 1): np.nan}}, None, "finite"),
        ({"pair_weight": {(3, 2): 0.0, (3, 1): 0.0, (2, 1): 0.0}}, None, "pair"),
        ({}, [1.0, 1.0], "sample_weight"),
        ({}, [1.0, -1.0, 1.0], "[Nn]egative"),
        ({}, [1.0, 0.0, 0.0], "pair"),
        ({}, [1.0, np.nan, 0.0], "NaN"),
    ],
    ids=str,
)
def test_bad_parameters_and_weights_are_named(parameters, weights, complaint):
    with pytest.raises(ValueError, match=complaint):
        RankSVM(**parameters).fit([[0.0], [1.0], [2.0]], [1, 2, 3], sample_weight=weights)


@pytest.mark.parametrize("pair", [("3", "1"), (None, 1), ("a", 1), (3, 2, 1)], ids=str)
def test_keys_of_pair_weight_are_numbers(pair):
    with pytest.raises(ValueError, match="higher label, lower label"):
        RankSVM(pair_weight={pair: 1.0}).fit([[0.0], [1.0], [2.0]], [1, 2, 3])
    with pytest.raises(ValueError, match="finite weights"):
        RankSVM(pair_weight={(3, 1): "much"}).fit([[0.0], [1.0], [2.0]], [1, 2, 3])


def test_pair_weights_of_labels_that_do_not_occur_are_of_no_effect():
    X, y, _ = make_ranking(1)
    expected = RankSVM(pair_weight={(3, 1): 2.0}).fit(X, y)
    ranker = RankSVM(pair_weight={(3, 1): 2.0, (9, 1): 5.0, (3.5, 2): 7.0}).fit(X, y)
    assert np.array_equal(ranker.coef_, expected.coef_)


@pytest.mark.parametrize(
    ("X", "complaint"),
    [([[0.0], [np.nan]], "NaN"), ([[0.0], [-np.inf]], "infinity"), (np.empty((2, 0)), "0 feature")],
)
def test_bad_rows_are_named(X, complaint):
    with pytest.raises(ValueError, match=complaint):
        RankSVM().fit(X, [1, 2])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-30, 1e30, 1e100, 1e200, 1e307])
def test_values_of_any_size_are_solved_or_refused(scale):
    X, y, _ = make_ranking(2)
    X = X / np.abs(X).max() * scale
    ranker = RankSVM(max_iter=100)
    try:
        ranker.fit(X, y)
    except ValueError as error:
        assert scale >= 1e30
        assert "scale" in str(error)
    else:
        assert np.isfinite(ranker.coef_).all()
        assert np.isfinite(ranker.objective_)
        assert 0 <= ranker.gap_ <= 1


def test_equal_rows_have_zero_weights():
    ranker = RankSVM().fit(np.ones((4, 2)), [1, 2, 3, 4])
    assert not ranker.coef_.any()
    assert ranker.score(np.ones((2, 2)), [1, 2]) == 0.5


def test_huge_costs_do_not_yield_false_certificates():
    """Terms of 1e34 that cancel leave no correct digit of the bound; the gap must show that."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 5))
    y = X[:, 0] + rng.normal(size=100) > 0
    moderate_cost = RankSVM(C=1e4, tol=1e-6, max_iter=3000).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        huge_cost = RankSVM(C=1e16, tol=1e-6, max_iter=30).fit(X, y)
    risk_bound = huge_cost.objective_ / 1e16
    upper_bound = moderate_cost.objective_ / 1e4  # the risk there, plus a little for the weights
    assert risk_bound * (1 - huge_cost.gap_) <= upper_bound


def test_a_tiny_cost_still_gives_a_direction():
    """Zero weights would satisfy the gap, but would not order any rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 8))
    assert RankSVM(C=1e-12).fit(X, X[:, 0]).score(X, X[:, 0]) > 0.9
    assert CuttingPlaneSVC(C=1e-12).fit(X, X[:, 0] > 0).score(X, X[:, 0] > 0) > 0.9


def test_rows_without_information_warn():
    with pytest.warns(UserWarning, match="no weights better"):
        RankSVM().fit(np.zeros((4, 2)), [1, 2, 3, 4])


def test_loaded_rankers_are_scored_by_pairs(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 4))
    y, qid = rng.integers(0, 3, 60), rng.integers(0, 5, 60)
    ranker = RankSVM().fit(X, y, qid=qid)
    ranker.save(tmp_path / "r.uk")
    loaded = load(tmp_path / "r.uk")
    with pytest.raises(ValueError, match="ordered_pairs"):
        loaded.score(X, y)
    assert ordered_pairs(y, loaded.decision_function(X), qid) == ranker.score(X, y, qid)


@pytest.mark.parametrize("missing_value", [np.nan, None])
def test_missing_groups_are_refused(missing_value):
    qid = np.array([1.0, missing_value, 1.0, 2.0], dtype=object if missing_value is None else float)
    with pytest.raises(ValueError, match="qid has missing values"):
        RankSVM().fit(np.eye(4), [1, 2, 3, 4], qid=qid)
