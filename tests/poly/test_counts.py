"""PolyRegressor with the Poisson loss, compared with a slow optimiser and with scikit-learn."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import PoissonRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import unkernel
from reference.conjunctions import score
from reference.poisson import half_deviance, minimise
from reference.poly import expand
from reference.selection import few_examples, parametrize_pairs
from reference.sparse import expand_sets
from unkernel import PolyRegressor, RecordEncoder

PENALTIES = {"l2": (0.0, 1.0), "l1": (1.0, 0.0), "elasticnet": (0.6, 0.4)}


def make_regressor(degree: int = 2, **parameters: Any) -> PolyRegressor:
    defaults: dict[str, Any] = {"gamma": 0.2, "l1_ratio": 0.6, "max_iter": 10**4, "random_state": 0}
    return PolyRegressor(degree, loss="poisson", **defaults | parameters)


def compute_logarithms(reg: PolyRegressor, X: Any) -> NDArray[np.float64]:
    return np.asarray(unkernel.compile(reg).decision_function(X))


@pytest.fixture(scope="module")
def rows() -> NDArray[np.float64]:
    return np.random.default_rng(0).normal(size=(120, 4))


@pytest.fixture(scope="module")
def sets(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return (rows > 0).astype(float)


@pytest.fixture(scope="module")
def counts(rows: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.random.default_rng(1).poisson(np.exp(0.5 * rows[:, 0] * rows[:, 1] - 0.7 * rows[:, 2] + 1))


@parametrize_with_checks([PolyRegressor(loss="poisson")])
def test_passes_the_estimator_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        PolyRegressor(degree=1, loss="poisson", C=10.0),
        PolyRegressor(loss="poisson", penalty="l1"),
        PolyRegressor(degree=3, loss="poisson", penalty="elasticnet"),
    ]
)
def test_other_parameters_pass_the_estimator_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


# --- The optimum --------------------------------------------------------------------------------------


@parametrize_pairs(penalty=[*PENALTIES], degree=[1, 2, 3], C=[0.02, 1.0, 50.0], binary=[True, False])
def test_the_objective_is_the_least(request: Any, penalty: str, degree: int, C: float, binary: bool) -> None:
    X = request.getfixturevalue("sets" if binary else "rows")
    counts = request.getfixturevalue("counts")
    weights = np.random.default_rng(2).integers(0, 3, len(X)) * 0.5
    reg = make_regressor(degree, C=C, penalty=penalty, tol=1e-8).fit(X, counts, weights)
    merges_monomials = binary and penalty != "l2"
    Phi = (expand_sets if merges_monomials else expand)(X, degree=degree, gamma=0.2, coef0=1.0)
    l1, l2 = PENALTIES[penalty]
    expected, w = minimise(Phi, counts, C, l1=l1, l2=l2, weights=weights)
    assert reg.gap_ <= 1e-8
    assert reg.objective_ == pytest.approx(expected, rel=1e-6)
    expected_scores = Phi @ w + np.log(np.average(counts, weights=weights))
    np.testing.assert_allclose(compute_logarithms(reg, X), expected_scores, atol=5e-3)
    np.testing.assert_allclose(reg.predict(X), np.exp(compute_logarithms(reg, X)), rtol=1e-14)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_it_is_the_poisson_regression_of_scikit_learn(rows: Any, counts: Any, degree: int) -> None:
    Phi, C, mean = expand(rows, degree=degree, gamma=0.2, coef0=1.0), 2.0, counts.mean()
    peer = PoissonRegressor(
        alpha=1 / (C * mean * len(counts)), fit_intercept=False, solver="newton-cholesky", tol=1e-10
    )
    w = peer.fit(Phi, counts / mean).coef_
    reg = make_regressor(degree, C=C, tol=1e-9).fit(rows, counts)
    expected = 0.5 * w @ w + C * half_deviance(counts, mean * np.exp(Phi @ w)).sum()
    assert reg.objective_ == pytest.approx(expected, rel=1e-8)
    np.testing.assert_allclose(reg.predict(rows), mean * peer.predict(Phi), rtol=1e-3)


@few_examples(15)
@given(
    seed=st.integers(0, 10**6),
    penalty=st.sampled_from([*PENALTIES]),
    log_C=st.floats(-8, 8),
    log_scale=st.floats(-6, 12),
    share=st.floats(0.0, 1.0),
)
def test_bounds_hold_at_every_pass(
    seed: int, penalty: str, log_C: float, log_scale: float, share: float
) -> None:
    """Rows are repeated with other counts; the counts may be tiny, huge or almost all 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(15, 3))[rng.integers(0, 15, 30)]
    y = np.exp(log_scale) * rng.exponential(size=30) * (rng.random(30) < share)
    y[0] = np.exp(log_scale)
    C = np.exp(log_C) / y.mean()
    reg = make_regressor(2, C=C, penalty=penalty, tol=1e-7).fit(X, y)
    l1, l2 = PENALTIES[penalty]
    expected, _ = minimise(expand(X, degree=2, gamma=0.2, coef0=1.0), y, C, l1=l1, l2=l2)
    assert reg.gap_ <= 1e-7
    assert reg.objective_ <= expected * (1 + 1e-6)
    assert reg.history_.bound.max() <= expected * (1 + 1e-9)
    assert reg.objective_ >= reg.history_.bound.max() * (1 - 1e-12)


def test_the_objective_is_that_of_the_predictions(rows: Any, counts: Any) -> None:
    X = np.round(rows)  # has equal rows, which are merged
    assert len(np.unique(X, axis=0)) < len(X)
    reg = make_regressor(2, C=3.0).fit(X, counts)
    Phi = expand(X, degree=2, gamma=0.2, coef0=1.0)
    w = Phi.T @ np.linalg.lstsq(Phi @ Phi.T, compute_logarithms(reg, X) - reg._centre, rcond=None)[0]
    losses = half_deviance(counts, reg.predict(X))
    assert 0.5 * w @ w + 3.0 * losses.sum() == pytest.approx(reg.objective_, rel=1e-9)


def test_equal_rows_get_the_mean_of_their_counts() -> None:
    X = sparse.csr_matrix(np.repeat(np.eye(3), 200, axis=0))
    y = np.random.default_rng(6).poisson(np.repeat([0.5, 5.0, 70.0], 200))
    for penalty in PENALTIES:
        reg = make_regressor(1, C=100.0, gamma=1.0, penalty=penalty).fit(X, y)
        np.testing.assert_allclose(reg.predict(np.eye(3)), y.reshape(3, -1).mean(axis=1), rtol=0.02)


def test_weights_are_repeats(rows: Any, counts: Any) -> None:
    weights = np.random.default_rng(5).integers(0, 4, len(rows))
    for penalty in PENALTIES:
        reg = make_regressor(2, penalty=penalty, C=0.5)
        weighted = clone(reg).fit(rows, counts, weights)
        repeated = clone(reg).fit(np.repeat(rows, weights, axis=0), np.repeat(counts, weights))
        assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-12)
        np.testing.assert_allclose(weighted.predict(rows), repeated.predict(rows), rtol=1e-9)


def test_units_of_time_do_not_matter(rows: Any, counts: Any) -> None:
    """Counts per minute and per hour give the same rates, if C keeps its product with the counts."""
    per_minute = make_regressor(2, C=1.0, tol=1e-9).fit(rows, counts)
    per_hour = make_regressor(2, C=1 / 60, tol=1e-9).fit(rows, 60 * counts)
    np.testing.assert_allclose(per_hour.predict(rows), 60 * per_minute.predict(rows), rtol=1e-4)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_results_do_not_depend_on_threads(rows: Any, counts: Any, penalty: str) -> None:
    one, three = (make_regressor(2, C=9.0, penalty=penalty, n_jobs=n).fit(rows, counts) for n in (1, 3))
    assert one.model_.weights.tolist() == three.model_.weights.tolist()
    assert (one.objective_, one.gap_) == (three.objective_, three.gap_)


@pytest.mark.parametrize("storage", ["on_the_fly", "condensed"])
def test_storages_agree(rows: Any, counts: Any, storage: str) -> None:
    X = sparse.csr_matrix((np.random.default_rng(9).random((300, 40)) < 0.2).astype(float))
    y = np.random.default_rng(10).poisson(np.exp(X[:, 0].toarray().ravel()))
    reg = make_regressor(2, storage=storage, tol=1e-8).fit(X, y)
    assert reg.storage_ == storage
    np.testing.assert_allclose(reg.predict(X), make_regressor(2, tol=1e-8).fit(X, y).predict(X), rtol=1e-3)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_warm_start_continues(rows: Any, counts: Any, penalty: str) -> None:
    reg = make_regressor(2, penalty=penalty, C=0.05, tol=1e-6, warm_start=True)
    cold_epochs = reg.fit(rows, counts).n_iter_
    assert reg.fit(rows, counts).n_iter_ < cold_epochs
    for of_path in make_regressor(2, penalty=penalty, tol=1e-6).path(rows, counts, [0.01, 0.1, 1.0]):
        separate = clone(of_path).fit(rows, counts)
        assert of_path.objective_ == pytest.approx(separate.objective_, rel=3e-6)


# --- Odd data -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", ["l2", "l1"])
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e4])
def test_outliers_do_not_overflow(penalty: str, C: float) -> None:
    X = np.random.default_rng(0).normal(size=(400, 5))
    for y in (np.r_[np.ones(399), 1e6], np.r_[np.zeros(399), 1.0], np.full(400, 1e-9), np.full(400, 1e12)):
        reg = make_regressor(2, C=C, penalty=penalty).fit(X, y)
        assert reg.gap_ <= 1e-3
        assert np.isfinite(reg.predict(X)).all()
        assert np.isfinite(reg.objective_)


def test_features_of_any_scale_are_learned(rows: Any, counts: Any) -> None:
    for scale in (1e-3, 1e3):
        reg = make_regressor(2, gamma="scale", C=1.0, tol=1e-8).fit(scale * rows, counts)
        unscaled = make_regressor(2, gamma="scale", C=1.0, tol=1e-8).fit(rows, counts)
        np.testing.assert_allclose(reg.predict(scale * rows), unscaled.predict(rows), rtol=1e-3)


def test_huge_scores_give_the_largest_number() -> None:
    reg = make_regressor(1, C=1e3, gamma=1.0).fit([[0.0], [1.0]], [1, 50])
    assert reg.predict([[1e6]]).tolist() == [np.finfo(float).max]
    assert reg.predict([[-1e6]]).tolist() == [0.0]
    assert compute_logarithms(reg, [[1e6]])[0] > 1e5


@pytest.mark.parametrize("penalty", PENALTIES)
def test_constant_counts_and_single_rows_are_learned(penalty: str) -> None:
    reg = make_regressor(penalty=penalty)
    np.testing.assert_allclose(reg.fit([[1.0], [2.0]], [7, 7]).predict([[3.0]]), [7.0], rtol=1e-12)
    np.testing.assert_allclose(reg.fit([[1.0]], [1e9]).predict([[1.0]]), [1e9], rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y": [1.0, -1.0]}, r"y\[1\] is -1: loss='poisson' needs counts of at least 0"),
        ({"y": [0.0, 0.0]}, "0 for all rows: loss='poisson' needs at least one count above 0"),
        ({"y": [0.0, 3.0], "sample_weight": [1.0, 0.0]}, "needs at least one count above 0"),
        ({"y": [1.0, np.nan]}, "NaN"),
        ({"y": [1.0, 1e20]}, "counts beyond 1e"),
        ({"storage": "kernel"}, "storage='kernel' does not compute: set storage='auto'"),
        ({"storage": "split"}, "storage='split' does not compute"),
        ({"updatable": True}, "updatable=True needs loss='squared_error', got loss='poisson'"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], words: str) -> None:
    options = {key: change[key] for key in change.keys() - {"y", "sample_weight"}}
    with pytest.raises(ValueError, match=words):
        make_regressor(**options).fit(
            [[0.0], [1.0]], change.get("y", [0.0, 1.0]), change.get("sample_weight")
        )


# --- Answers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", PENALTIES)
def test_every_engine_gives_the_means(rows: Any, counts: Any, penalty: str, tmp_path: Any) -> None:
    reg = make_regressor(2, penalty=penalty).fit(rows, counts)
    scores = np.concatenate([score(reg.to_model(), row) for row in rows])
    np.testing.assert_allclose(compute_logarithms(reg, rows), scores, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(reg.predict(rows), np.exp(scores), rtol=1e-9)
    fast = unkernel.compile(reg, sample=rows)
    fast.save(tmp_path / "m.uk")
    for classifier in (fast, unkernel.load(tmp_path / "m.uk")):
        assert classifier.predict(rows).tolist() == fast.predict(rows).tolist()
        np.testing.assert_allclose(classifier.predict(rows), np.exp(scores), rtol=1e-9)
        np.testing.assert_allclose(classifier.decision_function(rows), scores, rtol=1e-9, atol=1e-12)
        assert classifier.score(rows, counts) == pytest.approx(reg.score(rows, counts))
    binary = sparse.csr_matrix((rows > 0).astype(float))
    sets = unkernel.compile(reg.fit(binary, counts))
    for row in range(9):
        columns = binary[row].indices.tolist()
        assert sets.predict_one(columns) == sets.predict(binary[row])[0]
        assert sets.score_one(columns) == sets.decision_function(binary[row])[0]


def test_records_are_counted_in_one_file(tmp_path: Any) -> None:
    rng = np.random.default_rng(8)
    records = [{"job": str(rng.choice(["a", "b"])), "age": int(rng.integers(18, 80))} for _ in range(300)]
    rates = np.array([record["age"] / (10.0 if record["job"] == "a" else 30.0) for record in records])
    visits = rng.poisson(rates)
    pipeline = make_pipeline(RecordEncoder(), make_regressor(2, C=0.1)).fit(records, visits)
    unkernel.compile(pipeline).save(tmp_path / "m.uk")
    fast = unkernel.load(tmp_path / "m.uk")
    np.testing.assert_allclose(fast.predict(records), pipeline.predict(records), rtol=1e-9)
    assert np.abs(np.log(fast.predict(records) / rates)).mean() < 0.25
    np.testing.assert_allclose(fast.decision_function(records), np.log(fast.predict(records)), atol=1e-12)
    assert [fast.predict_one(record) for record in records[:9]] == fast.predict(records[:9]).tolist()
    assert [fast.score_one(record) for record in records[:9]] == fast.decision_function(records[:9]).tolist()
    pilot = fast.bind({"job": "a"})
    assert pilot.predict_one({"age": 40}) == pytest.approx(fast.predict_one({"job": "a", "age": 40}))
    assert pilot.predict([{"age": 40}]) == pytest.approx(fast.predict([{"job": "a", "age": 40}]))


def test_files_restore_the_estimator(rows: Any, counts: Any, tmp_path: Any) -> None:
    reg = make_regressor(2, C=3.0).fit(rows, counts)
    reg.save(tmp_path / "m.uk")
    for restored in (PolyRegressor.load(tmp_path / "m.uk"), pickle.loads(pickle.dumps(reg))):
        assert restored.get_params() == reg.get_params()
        assert restored.objective_ == reg.objective_
        assert restored.predict(rows).tolist() == reg.predict(rows).tolist()
        assert compute_logarithms(restored, rows).tolist() == compute_logarithms(reg, rows).tolist()


def test_explanations_add_up_to_the_logarithm(rows: Any, counts: Any) -> None:
    reg = make_regressor(2).fit(rows, counts)
    explained = reg.explain(rows[0], top=None)
    total = explained.intercept + sum(contribution.value for contribution in explained.contributions)
    assert np.exp(total) == pytest.approx(reg.predict(rows[:1])[0])
    assert reg.heaviest(1)[0].for_class is None


def test_it_works_in_a_grid_search(rows: Any, counts: Any) -> None:
    search = GridSearchCV(PolyRegressor(), {"C": [0.01, 1.0], "loss": ["squared_error", "poisson"]})
    assert search.fit(rows, counts).best_params_["loss"] == "poisson"
