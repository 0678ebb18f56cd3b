"""RankSVM on conjunctions, compared with explicit feature maps and listed pairs."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import unkernel
from reference import cutting_planes as reference
from reference.poly import expand
from reference.rankings import EXACT, listed_pairs, make_ranking, solve_pairs
from reference.selection import few_examples, parametrize_pairs
from unkernel import RankSVM, load
from unkernel.models import ConjunctionModel, KernelModel

MAP = {"gamma": 0.5, "coef0": 1.5}


@parametrize_with_checks([RankSVM(degree=2)])
def test_passes_the_estimator_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([RankSVM(degree=3)])
def test_other_parameters_pass_the_estimator_checks_of_scikit_learn(estimator, check):
    check(estimator)


def make_binary_ranking(seed, *, rows=60, features=12, groups=0):
    rng = np.random.default_rng(seed)
    X = (rng.random((rows, features)) < 0.4).astype(float)
    y = np.digitize(X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=rows), [0.3, 1.0])
    return X, y, rng.integers(0, groups, rows) if groups else None


def duplicate_rows(arrays, count):
    """Repeat the first rows, so that some rows are equal."""
    return tuple(None if array is None else np.concatenate([array, array[:count]]) for array in arrays)


# --- The problem ---------------------------------------------------------------------------------------


@parametrize_pairs(weighted=[False, True], make=[make_ranking, make_binary_ranking], degree=[2, 3])
@pytest.mark.parametrize("pair_weight", ["uniform", {(2, 1): 5.0}], ids=["uniform", "by class"])
def test_objective_equals_the_sum_over_listed_pairs(degree, make, pair_weight, weighted):
    X, y, qid = duplicate_rows(make(1, groups=3), 10)
    weights = np.random.default_rng(2).choice([0.0, 0.5, 1.0, 3.0], len(y)) if weighted else None
    ranker = RankSVM(C=0.3, degree=degree, pair_weight=pair_weight, **MAP, **EXACT).fit(X, y, qid, weights)
    pairs, total = listed_pairs(y, qid, weights, None if pair_weight == "uniform" else pair_weight)
    mapped = expand(X, degree=degree, **MAP)
    assert ranker.objective_ == pytest.approx(solve_pairs(mapped, 0.3, pairs, total), rel=1e-6)
    assert ranker.gap_ <= 1e-7
    scores = ranker.decision_function(X)
    all_pairs, ordered = reference.count_pairs(pairs, scores)
    assert ranker.score(X, y, qid, weights) == pytest.approx(ordered / all_pairs, rel=1e-9)


def test_pairs_can_be_weighted_by_ndcg():
    X, y, _ = make_ranking(3, rows=30, labels=(0, 1, 2))
    qid = np.arange(30) // 5
    ranker = RankSVM(C=0.3, degree=2, pair_weight="ndcg", **MAP, **EXACT).fit(X, y, qid)
    pairs, total = listed_pairs(y, qid, None, "ndcg")
    assert ranker.objective_ == pytest.approx(
        solve_pairs(expand(X, degree=2, **MAP), 0.3, pairs, total), rel=1e-6
    )


@few_examples(8, print_blob=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(3, 25),
    C=st.floats(1e-3, 10),
    degree=st.sampled_from([2, 3]),
    binary=st.booleans(),
)
def test_no_weights_have_an_objective_below_the_bound(seed, rows, C, degree, binary):
    rng = np.random.default_rng(seed)
    X, y, qid = (make_binary_ranking if binary else make_ranking)(seed, rows=rows, features=4, groups=2)
    pairs, total = listed_pairs(y, qid)
    assume(sum(v for _, _, v in pairs) > 0)
    ranker = RankSVM(C=C, degree=degree, tol=1e-6, max_iter=10_000, **MAP).fit(X, y, qid)
    mapped = expand(X, degree=degree, **MAP)
    # The weights of least norm with these scores up to a constant, which cancels out in pairs.
    scores = ranker.decision_function(X)
    w = np.linalg.lstsq(mapped - mapped.mean(axis=0), scores - scores.mean(), rcond=None)[0]

    def objective(w):
        return reference.objective(w, mapped, C, lambda s: reference.ordinal_risk(pairs, total, s))

    bound = ranker.objective_ * (1 - ranker.gap_)
    assert bound * (1 - 1e-9) <= objective(w) <= ranker.objective_ * (1 + 1e-6)
    for size in (0.0, 1e-3, 0.1):
        assert objective(w + size * rng.normal(size=len(w))) >= bound * (1 - 1e-9)
    assert objective(np.zeros(len(w))) >= bound * (1 - 1e-9)


def test_weights_stand_for_repeated_rows():
    X, y, qid = make_ranking(3, groups=2)
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    repetitions = np.random.default_rng(1).permutation(np.repeat(np.arange(len(y)), weights))
    weighted = RankSVM(degree=2, **MAP, **EXACT).fit(X, y, qid, weights)
    repeated = RankSVM(degree=2, **MAP, **EXACT).fit(X[repetitions], y[repetitions], qid[repetitions])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=2e-7)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("make", [make_ranking, make_binary_ranking])
def test_threads_and_arrays_do_not_change_a_bit(make):
    X, y, qid = make(8, rows=2000, groups=20)
    expected = RankSVM(degree=2).fit(X, y, qid)
    for rows, jobs in ((X, 2), (X, -1), (sparse.csr_array(X), 2)):
        refitted = RankSVM(degree=2, n_jobs=jobs).fit(rows, y, qid)
        assert (refitted.objective_, refitted.gap_, refitted.n_iter_) == (
            expected.objective_,
            expected.gap_,
            expected.n_iter_,
        )
        assert np.array_equal(refitted.decision_function(rows), expected.decision_function(X))


def test_few_cuts_are_enough():
    X, y, _ = make_ranking(8, rows=300)
    ranker = RankSVM(degree=2, max_cuts=4, max_iter=5000, gamma=0.2).fit(X, y)
    assert ranker.gap_ <= 1e-3
    assert ranker.objective_ == pytest.approx(RankSVM(degree=2, gamma=0.2).fit(X, y).objective_, rel=2e-3)


@pytest.mark.parametrize(("gamma", "expected"), [("auto", 0.2), (3, 3.0)])
def test_the_fitted_gamma_is_an_attribute(gamma, expected):
    X, y, _ = make_ranking(1)
    assert RankSVM(degree=2, gamma=gamma).fit(X, y).gamma_ == expected
    assert RankSVM(degree=2).fit(X, y).gamma_ == pytest.approx(1 / (5 * X.var()))


def test_degree_1_is_linear_for_any_gamma():
    X, y, _ = make_ranking(1)
    ranker = RankSVM(gamma=7.0, coef0=3.0).fit(X, y)
    assert np.array_equal(ranker.coef_, RankSVM().fit(X, y).coef_)
    assert not hasattr(ranker, "gamma_")


def test_degree_2_orders_rows_that_a_linear_ranking_cannot():
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=float)
    y = [0, 1, 1, 0]
    with pytest.warns(UserWarning, match="no weights"):
        assert RankSVM(C=10).fit(X, y).score(X, y) == 0.5
    assert RankSVM(C=10, degree=2, gamma=1.0).fit(X, y).score(X, y) == 1.0


def test_fits_that_do_not_converge_warn():
    X, y, _ = make_ranking(8, rows=500)
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        ranker = RankSVM(degree=2, C=100, tol=1e-6, max_iter=2).fit(X, y)
    assert ranker.gap_ > 1e-6


def test_rows_without_information_warn():
    with pytest.warns(UserWarning, match="no weights better"):
        RankSVM(degree=2).fit(np.zeros((4, 2)), [1, 2, 3, 4])


# --- Models --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("degree", [2, 3])
@pytest.mark.parametrize("make", [make_ranking, make_binary_ranking])
def test_saved_compiled_and_pickled_models_give_equal_scores(degree, make, tmp_path):
    X, y, qid = make(5, rows=200, groups=10)
    ranker = RankSVM(degree=degree).fit(X, y, qid)
    model = ranker.to_model()
    assert isinstance(model, ConjunctionModel)
    assert model.sets == (make is make_binary_ranking)
    assert model.intercept.tolist() == [0.0]
    expected = ranker.decision_function(X)
    assert expected.shape == (200,)
    ranker.save(tmp_path / "r.uk")
    loaded, restored = load(tmp_path / "r.uk"), RankSVM.load(tmp_path / "r.uk")
    for copy in (loaded, restored, unkernel.compile(ranker), pickle.loads(pickle.dumps(ranker))):
        np.testing.assert_allclose(copy.decision_function(X), expected, rtol=1e-9, atol=1e-12)
    assert restored.get_params() == ranker.get_params()
    assert restored.gamma_ == ranker.gamma_
    assert restored.ndcg(X, y, qid) == pytest.approx(ranker.ndcg(X, y, qid))
    assert unkernel.compile(ranker).score_one(np.arange(X.shape[1]), X[0]) == pytest.approx(expected[0])


def test_thresholds_travel_with_the_model(tmp_path):
    X, y, _ = make_ranking(6, rows=300)
    ranker = RankSVM(degree=2).fit(X, y)
    assert not hasattr(ranker, "predict")
    ranker.fit_thresholds(X, y)
    ranker.save(tmp_path / "r.uk")
    for copy in (load(tmp_path / "r.uk"), RankSVM.load(tmp_path / "r.uk"), unkernel.compile(ranker)):
        assert np.array_equal(copy.predict(X), ranker.predict(X))
    assert (ranker.predict(X) == y).mean() > 0.5


def test_few_rows_with_long_maps_become_support_vectors(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 300))
    y = np.digitize(X[:, 0] * X[:, 1], [-0.5, 0.5])
    ranker = RankSVM(degree=3, tol=1e-6).fit(X, y)
    model = ranker.to_model()
    assert isinstance(model, KernelModel)
    assert model.origin["storage"] == "kernel"
    assert ranker.score(X, y) == 1.0
    ranker.save(tmp_path / "r.uk")
    restored = RankSVM.load(tmp_path / "r.uk")
    np.testing.assert_allclose(restored.decision_function(X), ranker.decision_function(X), atol=1e-9)
    assert restored.gamma_ == ranker.gamma_
    predicted = ranker.fit_thresholds(X, y).predict(X)
    assert (predicted == y).all()


def test_heaviest_and_explain_name_conjunctions():
    X, y, _ = make_binary_ranking(7, rows=400)
    ranker = RankSVM(degree=2).fit(X, y)
    assert len(ranker.heaviest(5)) == 5
    assert ranker.explain(X[0]).score == pytest.approx(ranker.decision_function(X[:1])[0])
    with pytest.raises(AttributeError, match="not linear"):
        _ = ranker.coef_


# --- Warm starts and checkpoints -----------------------------------------------------------------------


def test_a_path_equals_one_fit_after_the_other():
    X, y, qid = make_ranking(9, rows=200, groups=10)
    for ranker in RankSVM(degree=2, tol=1e-6, gamma=0.3).path(X, y, [0.01, 0.1, 1.0], qid):
        separate = RankSVM(C=ranker.C, degree=2, tol=1e-6, gamma=0.3).fit(X, y, qid)
        assert ranker.objective_ == pytest.approx(separate.objective_, rel=2e-6)
        assert ranker.gap_ <= 1e-6
        assert ranker.gamma_ == 0.3


def test_a_warm_start_begins_at_the_last_solution():
    X, y, qid = make_ranking(10, rows=200, groups=10)
    ranker = RankSVM(degree=2, gamma=0.3, tol=1e-4, warm_start=True).fit(X, y, qid)
    cold_iterations = ranker.n_iter_
    assert ranker.fit(X, y, qid).n_iter_ < cold_iterations
    assert ranker.fit(X[:150], y[:150], qid[:150]).gap_ <= 1e-4
    assert ranker.set_params(gamma=0.1).fit(X, y, qid).gap_ <= 1e-4
    assert ranker.set_params(degree=1).fit(X, y, qid).gap_ <= 1e-4
    assert ranker.set_params(degree=3).fit(X, y, qid).gap_ <= 1e-4


def test_a_killed_run_resumes(tmp_path):
    X, y, qid = make_ranking(11, rows=300, groups=10)
    ranker = RankSVM(degree=2, C=10, tol=1e-5, max_iter=4, checkpoint=tmp_path / "kept")
    with pytest.warns(ConvergenceWarning):
        ranker.fit(X, y, qid)
    ranker.set_params(max_iter=1000).fit(X, y, qid)
    separate = RankSVM(degree=2, C=10, tol=1e-5).fit(X, y, qid)
    assert ranker.objective_ == pytest.approx(separate.objective_, rel=2e-5)
    with pytest.warns(ConvergenceWarning):
        ranker.set_params(max_iter=4).fit(X, y, qid)
    with pytest.raises(ValueError, match="other rows"):
        ranker.set_params(gamma=0.123).fit(X, y, qid)


# --- Invalid arguments ---------------------------------------------------------------------------------


def test_rows_in_files_are_refused(tmp_path):
    X, y, _ = make_ranking(1)
    unkernel.write_svmlight(tmp_path / "rows.svm", X, y)
    with pytest.raises(ValueError, match="read_svmlight"):
        RankSVM(degree=2).fit(str(tmp_path / "rows.svm"))


@pytest.mark.parametrize(
    "parameters", [{"degree": 4}, {"degree": 0}, {"gamma": 0}, {"gamma": "big"}, {"coef0": -1}], ids=str
)
def test_bad_parameters_are_named(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        RankSVM(**parameters).fit([[0.0], [1.0]], [1, 2])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e100, 1e200])
def test_values_of_any_size_are_solved_or_refused(scale):
    X, y, _ = make_ranking(2)
    X = X / np.abs(X).max() * scale
    ranker = RankSVM(degree=2, max_iter=100)
    try:
        ranker.fit(X, y)
    except ValueError as error:
        assert "scale" in str(error)
    else:
        assert np.isfinite(ranker.objective_)
        assert 0 <= ranker.gap_ <= 1
