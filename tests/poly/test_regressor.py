"""PolyRegressor, compared with normal equations and with the dual problem solved by L-BFGS-B."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import ElasticNet
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVR
from sklearn.utils.estimator_checks import parametrize_with_checks

import unkernel
from reference.conjunctions import score
from reference.poly import expand
from reference.selection import parametrize_pairs
from reference.sparse import expand_sets
from unkernel import PolyRegressor, RecordEncoder

LOSSES = {
    "squared_error": {},
    "absolute_error": {},
    "epsilon_insensitive": {"epsilon": 0.3},
    "squared_epsilon_insensitive": {"epsilon": 0.3},
    "quantile": {"quantile": 0.8},
}
STORAGES = ["on_the_fly", "condensed", "kernel"]


@pytest.fixture(scope="module")
def rows() -> NDArray[np.float64]:
    return np.random.default_rng(0).normal(size=(80, 5))


@pytest.fixture(scope="module")
def targets(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    noise = np.random.default_rng(1).normal(size=len(rows))
    return 30.0 + 2.0 * rows[:, 0] * rows[:, 1] - rows[:, 2] + 0.5 * noise


@parametrize_with_checks([PolyRegressor()])
def test_passes_the_estimator_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([PolyRegressor(degree=1, loss="epsilon_insensitive", C=10.0)])
def test_other_parameters_pass_the_estimator_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


# --- The optimum --------------------------------------------------------------------------------------


def compute_losses(r: NDArray[np.float64], loss: str, epsilon: float = 0.0, quantile: float = 0.5) -> Any:
    """The losses of residuals y - f."""
    beyond = np.maximum(np.abs(r) - epsilon, 0.0)
    if loss == "quantile":
        return np.maximum(quantile * r, (quantile - 1.0) * r)
    return beyond if loss in ("absolute_error", "epsilon_insensitive") else beyond**2


def optimum(K: Any, y: Any, C: float, loss: str, *, epsilon: float = 0.0, quantile: float = 0.5) -> float:
    """The optimal objective, by the dual problem in a and b, the parts of u = a - b."""
    n = len(y)
    squared = loss.startswith("squared")
    above, below = (C * quantile, C * (1 - quantile)) if loss == "quantile" else (C, C)
    ridge = 1.0 / (2.0 * C) if squared else 0.0
    size = np.sqrt(np.diag(K).mean())

    def negative(ab: Any) -> Any:
        u = (ab[:n] - ab[n:]) / size
        Ku = K @ u
        value = 0.5 * u @ Ku + 0.5 * ridge * (ab @ ab) / size**2 - y @ u + epsilon * ab.sum() / size
        slope = (Ku - y) / size
        return value, np.r_[slope + epsilon / size, -slope + epsilon / size] + ridge * ab / size**2

    bounds = [(0.0, None if squared else above * size)] * n + [(0.0, None if squared else below * size)] * n
    options = {"maxiter": 10**5, "maxfun": 10**6, "ftol": 1e-16, "gtol": 1e-10, "maxcor": 50}
    result = minimize(negative, np.zeros(2 * n), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    for _ in range(200):  # a further run continues from the apparent end
        next_result = minimize(
            negative, result.x, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
        if result.fun - next_result.fun <= 1e-9 * abs(result.fun):
            break
        result = next_result
    return -float(result.fun)


@parametrize_pairs(loss=[*LOSSES], degree=[1, 2, 3], C=[0.1, 10.0])
def test_the_objective_is_optimal(rows: Any, targets: Any, loss: str, degree: int, C: float) -> None:
    reg = PolyRegressor(degree, C=C, loss=loss, **LOSSES[loss], gamma=0.2, tol=1e-6, max_iter=10**5)
    reg.fit(rows, targets)
    K = (0.2 * rows @ rows.T + 1.0) ** degree
    y = targets - reg._centre
    best = optimum(K, y, C, loss, **LOSSES[loss])
    assert reg.gap_ <= 1e-6
    assert best * (1 - 1e-6) <= reg.objective_ <= best * (1 + 1e-5)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("storage", STORAGES)
def test_the_model_has_the_reported_objective(rows: Any, targets: Any, loss: str, storage: str) -> None:
    reg = PolyRegressor(
        2, C=3.0, loss=loss, **LOSSES[loss], gamma=0.2, storage=storage, tol=1e-4, max_iter=10**5
    )
    reg.fit(rows, targets)
    assert reg.storage_ == storage
    phi = expand(rows, degree=2, gamma=0.2, coef0=1.0)
    w = phi.T @ np.linalg.lstsq(phi @ phi.T, reg.predict(rows) - reg._centre, rcond=None)[0]
    losses = compute_losses(targets - reg.predict(rows), loss, **LOSSES[loss])
    assert 0.5 * w @ w + 3.0 * losses.sum() == pytest.approx(reg.objective_, rel=1e-6)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_least_squares_is_kernel_ridge(rows: Any, targets: Any, degree: int) -> None:
    reg = PolyRegressor(degree, C=2.0, gamma=0.2, tol=1e-10, max_iter=10**6).fit(rows, targets)
    ridge = KernelRidge(alpha=1 / 4.0, kernel="poly", degree=degree, gamma=0.2, coef0=1.0)
    ridge.fit(rows, targets - targets.mean())
    np.testing.assert_allclose(reg.predict(rows), ridge.predict(rows) + targets.mean(), rtol=1e-4)


@parametrize_pairs(penalty=["l1", "elasticnet"], degree=[1, 2, 3], binary=[True, False])
def test_sparse_least_squares_is_the_lasso_on_the_explicit_map(
    rows: Any, targets: Any, penalty: str, degree: int, binary: bool
) -> None:
    X = (rows > 0).astype(float) if binary else rows
    reg = PolyRegressor(degree, C=0.3, gamma=0.2, penalty=penalty, l1_ratio=0.6, tol=1e-8)
    reg.fit(X, targets)
    phi = (expand_sets if binary else expand)(X, degree=degree, gamma=0.2, coef0=1.0)
    y, share = targets - targets.mean(), 0.6 if penalty == "elasticnet" else 1.0
    alpha = 1 / (2 * len(y) * 0.3)
    peer = ElasticNet(alpha=alpha, l1_ratio=share, fit_intercept=False, tol=1e-10, max_iter=10**6)
    w = peer.fit(phi, y).coef_
    expected = share * np.abs(w).sum() + (1 - share) / 2 * w @ w + 0.3 * ((y - phi @ w) ** 2).sum()
    assert reg.objective_ == pytest.approx(expected, rel=1e-6)
    assert reg.gap_ <= 1e-8
    np.testing.assert_allclose(reg.predict(X), targets.mean() + phi @ w, atol=1e-3)


def test_a_path_of_sparse_models_is_as_separate_fits(rows: Any, targets: Any) -> None:
    reg = PolyRegressor(2, penalty="l1", gamma=0.2, tol=1e-8)
    for fitted in reg.path(rows, targets, [0.01, 0.1, 1.0]):
        alone = clone(fitted).fit(rows, targets)
        assert fitted.objective_ == pytest.approx(alone.objective_, rel=1e-6)
    assert 0 < reg.fit(rows, targets).model_.n_conjunctions < 20


def test_quantiles_have_their_shares(rows: Any) -> None:
    X = np.random.default_rng(3).normal(size=(4000, 2))
    y = X[:, 0] + np.random.default_rng(4).exponential(size=4000)
    for quantile in (0.1, 0.5, 0.9):
        reg = PolyRegressor(1, loss="quantile", quantile=quantile, C=1.0).fit(X, y)
        assert (y <= reg.predict(X)).mean() == pytest.approx(quantile, abs=0.02)


def test_it_is_as_good_as_a_support_vector_regression(rows: Any, targets: Any) -> None:
    regressor = PolyRegressor(2, loss="epsilon_insensitive", epsilon=0.1, C=5.0, gamma=0.2)
    svr = SVR(kernel="poly", degree=2, epsilon=0.1, C=5.0, gamma=0.2, coef0=1.0)
    assert (
        cross_val_score(regressor, rows, targets).mean() >= cross_val_score(svr, rows, targets).mean() - 0.02
    )


# --- Rows ---------------------------------------------------------------------------------------------


def test_weights_are_repeats(rows: Any, targets: Any) -> None:
    weights = np.random.default_rng(5).integers(0, 4, len(rows))
    for loss, options in LOSSES.items():
        reg = PolyRegressor(2, loss=loss, **options, C=0.5, random_state=0)
        weighted = clone(reg).fit(rows, targets, weights)
        repeated = clone(reg).fit(np.repeat(rows, weights, axis=0), np.repeat(targets, weights))
        assert weighted._centre == pytest.approx(repeated._centre)
        np.testing.assert_allclose(weighted.predict(rows), repeated.predict(rows), rtol=1e-9)


def test_equal_rows_with_many_targets_give_their_mean() -> None:
    X = sparse.csr_matrix(np.repeat(np.eye(3), 200, axis=0))
    y = np.repeat([1.0, 5.0, -2.0], 200) + np.random.default_rng(6).normal(size=600)
    predictions = PolyRegressor(1, C=100.0, gamma=1.0).fit(X, y).predict(np.eye(3))
    np.testing.assert_allclose(predictions, y.reshape(3, -1).mean(axis=1), atol=0.02)


def test_sets_and_real_values_agree() -> None:
    X = (np.random.default_rng(7).random((300, 12)) < 0.3).astype(float)
    y = X[:, 0] * X[:, 1] * 3 + X[:, 2]
    sets = PolyRegressor(2, C=10.0, gamma=1.0, tol=1e-8, max_iter=10**5).fit(X, y)
    values = PolyRegressor(2, C=10.0, gamma=0.25, tol=1e-8, max_iter=10**5).fit(2 * X, y)
    np.testing.assert_allclose(sets.predict(X), values.predict(2 * X), atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_split_predicts_like_condensed_rows(loss: str) -> None:
    X = sparse.csr_matrix((np.random.default_rng(9).random((300, 40)) < 0.2).astype(float))
    y = 3 * X[:, 0].toarray().ravel() + np.random.default_rng(10).normal(size=300)
    expected = PolyRegressor(2, loss=loss, **LOSSES[loss], tol=1e-6, max_iter=10**5).fit(X, y)
    split = clone(expected).set_params(storage="split").fit(X, y)
    assert split.storage_ == "split"
    np.testing.assert_allclose(split.predict(X), expected.predict(X), atol=1e-2)


def test_a_warm_start_saves_epochs(rows: Any, targets: Any) -> None:
    reg = PolyRegressor(2, C=1.0, tol=1e-6, max_iter=10**5, warm_start=True, random_state=0)
    cold_epochs = reg.fit(rows, targets).n_iter_
    assert reg.fit(rows, targets).n_iter_ < cold_epochs


def test_a_path_is_as_separate_fits(rows: Any, targets: Any) -> None:
    reg = PolyRegressor(2, loss="epsilon_insensitive", tol=1e-6, max_iter=10**5)
    for of_path in reg.path(rows, targets, [0.1, 1.0]):
        separate = clone(reg).set_params(C=of_path.C).fit(rows, targets)
        assert of_path.objective_ == pytest.approx(separate.objective_, rel=3e-6)


# --- Answers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", STORAGES)
def test_every_engine_gives_the_values(rows: Any, targets: Any, storage: str, tmp_path: Any) -> None:
    reg = PolyRegressor(2, C=1.0, storage=storage).fit(rows, targets)
    model = reg.to_model()
    expected = (
        model.scores(sparse.csr_matrix(rows))[:, 0]
        if isinstance(model, unkernel.KernelModel)
        else np.concatenate([score(model, row) for row in rows])
    )
    np.testing.assert_allclose(reg.predict(rows), expected, rtol=1e-9)
    fast = unkernel.compile(reg, sample=rows)
    np.testing.assert_allclose(fast.predict(rows), expected, rtol=1e-9)
    fast.save(tmp_path / "m.uk")
    assert unkernel.load(tmp_path / "m.uk").predict(rows).tolist() == fast.predict(rows).tolist()
    assert unkernel.load(tmp_path / "m.uk").score(rows, targets) == pytest.approx(reg.score(rows, targets))


def test_records_are_priced_in_one_file(tmp_path: Any) -> None:
    rng = np.random.default_rng(8)
    records = [{"job": str(rng.choice(["a", "b"])), "age": int(rng.integers(18, 80))} for _ in range(300)]
    pay = np.array([record["age"] * (2.0 if record["job"] == "a" else 1.0) for record in records])
    pipeline = make_pipeline(RecordEncoder(), PolyRegressor(2, C=1.0)).fit(records, pay)
    unkernel.compile(pipeline).save(tmp_path / "m.uk")
    fast = unkernel.load(tmp_path / "m.uk")
    np.testing.assert_allclose(fast.predict(records), pipeline.predict(records), rtol=1e-9)
    assert [fast.predict_one(record) for record in records[:9]] == fast.predict(records[:9]).tolist()
    assert fast.score(records, pay) > 0.95


def test_files_restore_the_estimator(rows: Any, targets: Any, tmp_path: Any) -> None:
    reg = PolyRegressor(2, loss="epsilon_insensitive", epsilon=0.2, C=3.0).fit(rows, targets)
    reg.save(tmp_path / "m.uk")
    for restored in (PolyRegressor.load(tmp_path / "m.uk"), pickle.loads(pickle.dumps(reg))):
        assert restored.get_params() == reg.get_params()
        assert (restored.objective_, restored.storage_) == (reg.objective_, reg.storage_)
        assert restored.predict(rows).tolist() == reg.predict(rows).tolist()
    with pytest.raises(unkernel.FormatError, match="a model of PolyRegressor, not of PolySVC"):
        unkernel.PolySVC.load(tmp_path / "m.uk")


def test_explanations_add_up(rows: Any, targets: Any) -> None:
    reg = PolyRegressor(2).fit(rows, targets)
    explained = reg.explain(rows[0], top=None)
    total = explained.intercept + sum(contribution.value for contribution in explained.contributions)
    assert total == pytest.approx(reg.predict(rows[:1])[0])
    assert reg.heaviest(1)[0].for_class is None


def test_it_works_in_a_grid_search(rows: Any, targets: Any) -> None:
    search = GridSearchCV(PolyRegressor(), {"C": [0.01, 1.0], "loss": ["squared_error", "quantile"]})
    assert search.fit(rows, targets).best_params_["loss"] == "squared_error"


# --- Refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y": [1.0, np.nan]}, "NaN"),
        ({"y": [1.0, np.inf]}, "infinity"),
        ({"y": [1.0, None]}, "NaN"),
        ({"y": [1.0, 1e200]}, "beyond 1e"),
        ({"y": ["a", "b"]}, "could not convert"),
        ({"y": [1.0]}, "inconsistent"),
        ({"sample_weight": [0.0, 0.0]}, "non-zero"),
        ({"sample_weight": [1.0, -1.0]}, "[Nn]egative"),
        ({"loss": "huber"}, "loss"),
        ({"quantile": 1.0}, "quantile"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"penalty": "l1", "loss": "absolute_error"}, "squared_error"),
        ({"penalty": "elasticnet", "l1_ratio": 0.0}, "l1_ratio"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], words: str) -> None:
    options = {key: change[key] for key in change.keys() - {"y", "sample_weight"}}
    with pytest.raises(ValueError, match=words):
        PolyRegressor(**options).fit([[0.0], [1.0]], change.get("y", [0.0, 1.0]), change.get("sample_weight"))


@pytest.mark.parametrize("loss", LOSSES)
def test_constant_targets_and_single_rows_are_learned(loss: str) -> None:
    assert PolyRegressor(loss=loss).fit([[1.0], [2.0]], [7.0, 7.0]).predict([[3.0]]) == [7.0]
    assert PolyRegressor(loss=loss).fit([[1.0]], [1e9]).predict([[1.0]]) == pytest.approx([1e9])


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_targets_of_any_size_are_fitted(rows: Any, targets: Any, scale: float) -> None:
    unscaled = PolyRegressor(2, C=1.0, tol=1e-8, max_iter=10**5).fit(rows, targets)
    scaled = PolyRegressor(2, C=1.0, tol=1e-8, max_iter=10**5).fit(rows, scale * targets)
    np.testing.assert_allclose(scaled.predict(rows), scale * unscaled.predict(rows), rtol=1e-4)
