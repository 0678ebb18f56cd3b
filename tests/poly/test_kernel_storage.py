"""Training on the kernel matrix, compared with storages of weights and with explicit sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import unkernel
import unkernel.poly._base as base_module
from reference.selection import few_examples
from unkernel import PolyLogisticRegression, PolySVC
from unkernel._core import distinct_examples
from unkernel.data.rows.csr import canonical_rows
from unkernel.models import ConjunctionModel, KernelModel


def dense(rows, features, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features))
    score = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=rows)
    return X, np.digitize(score, np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1]))


def estimate(X, degree, problems=1):
    examples = distinct_examples(
        canonical_rows(X), classes=np.arange(len(X), dtype=np.int32) % 2, weights=np.empty(0), threads=1
    )
    return examples.estimate_storage(degree=degree, problems=problems, memory=0.0)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("degree", [2, 3])
def test_support_vectors_and_weights_give_equal_classifiers(degree, classes, loss):
    X, y = dense(150, 7, seed=degree, classes=classes)
    options = {"C": 2.0, "gamma": 0.3, "coef0": 1.5, "loss": loss, "tol": 1e-7, "max_iter": 10**6}
    kernel = PolySVC(degree, storage="kernel", **options, random_state=0).fit(X, y)
    weights = PolySVC(degree, storage="on_the_fly", **options, random_state=1).fit(X, y)
    assert (kernel.storage_, weights.storage_) == ("kernel", "on_the_fly")
    assert isinstance(kernel.to_model(), KernelModel)
    assert isinstance(weights.to_model(), ConjunctionModel)
    assert kernel.gap_ <= 1e-7
    assert kernel.objective_ == pytest.approx(weights.objective_, rel=1e-6)
    assert kernel.decision_function(X) == pytest.approx(weights.decision_function(X), rel=1e-2, abs=1e-2)


@pytest.mark.parametrize("degree", [2, 3])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(2, 120),
    features=st.integers(1, 300),
    density=st.tuples(st.sampled_from([0.02, 0.5, 1.0]), st.booleans()),
)
@few_examples(5)
def test_the_model_has_the_reported_objective(degree, loss, seed, rows, features, density):  # noqa: PLR0917
    share, binary = density
    rng = np.random.default_rng(seed)
    X = (rng.random((rows, features)) < share) * (1.0 if binary else rng.normal(size=(rows, features)))
    y = rng.random(rows) < 0.5
    y[:2] = [False, True]
    gamma = 1.0 / features
    clf = PolySVC(degree, C=3.0, gamma=gamma, storage="kernel", loss=loss, random_state=0).fit(X, y)
    model = clf.to_model()
    vectors, u = model.vectors.to_scipy().toarray(), model.coefficients[:, 0]
    scores = (gamma * X @ vectors.T + 1.0) ** degree @ u
    squared_weights = u @ (gamma * vectors @ vectors.T + 1.0) ** degree @ u
    losses = np.maximum(0.0, 1.0 - np.where(y, 1, -1) * scores)
    primal = 0.5 * squared_weights + 3.0 * (losses if loss == "hinge" else losses**2).sum()
    assert clf.objective_ == pytest.approx(primal, rel=1e-9, abs=1e-12)
    assert clf.gap_ <= clf.tol
    assert clf.decision_function(X) == pytest.approx(scores, rel=1e-9, abs=1e-9)


def test_auto_chooses_it_for_few_rows_with_long_maps():
    X, y = dense(60, 120)
    assert estimate(X, 3)["kernel_pays"]
    assert PolySVC(3).fit(X, y).storage_ == "kernel"
    assert not estimate(X, 2)["kernel_pays"]  # 7,381 weights take little memory
    assert PolySVC(2).fit(X, y).storage_ == "on_the_fly"
    assert not estimate(np.tile(X, (40, 1)) + np.arange(2400)[:, None], 2, problems=100)["kernel_pays"]
    assert not estimate((X > 0).astype(float), 3)["kernel_pays"]  # weights predict faster
    assert PolySVC(3, feature_map="plain", storage="on_the_fly").fit(X, y).storage_ == "on_the_fly"


def test_auto_chooses_it_if_no_other_storage_fits(monkeypatch):
    X, y = dense(20, 200)
    sizes = estimate(X, 2)
    assert not sizes["kernel_pays"]
    assert sizes["kernel_bytes"] < 200_000 < min(sizes["on_the_fly_bytes"], sizes["condensed_bytes"])
    monkeypatch.setattr(base_module, "available_bytes", lambda: 200_000)
    assert PolySVC(2).fit(X, y).storage_ == "kernel"


def test_refusals(monkeypatch):
    X, y = dense(200, 5)
    with pytest.raises(ValueError, match=r'storage="kernel" .*degree 2 .* feature_map="kernel"'):
        PolySVC(2, storage="kernel", feature_map="plain").fit(X, y)
    assert PolySVC(1, storage="kernel").fit(X, y).storage_ == "on_the_fly"
    monkeypatch.setattr(base_module, "available_bytes", lambda: 100_000)
    with pytest.raises(MemoryError, match=r'storage="kernel" needs about .* are available'):
        PolySVC(2, storage="kernel").fit(X, y)


def test_log_linear_models_keep_weights():
    X, y = dense(60, 120)
    clf = PolyLogisticRegression(3, penalty="l2").fit(X, y)
    assert isinstance(clf.to_model(), ConjunctionModel)


def test_saving_loading_and_warm_starts_work(tmp_path):
    X, y = dense(80, 110, classes=3)
    clf = PolySVC(3, warm_start=True, random_state=0).fit(X, y)
    clf.save(tmp_path / "model.uk")
    loaded = unkernel.load(tmp_path / "model.uk")
    assert loaded.decision_function(X) == pytest.approx(clf.decision_function(X), rel=1e-12, abs=1e-12)
    refitted = clf.fit(X, y)
    assert refitted.n_iter_ <= 2
    assert refitted.gap_ <= refitted.tol


def test_auto_falls_back_to_weights_if_the_kernel_matrix_is_inaccurate():
    """If training on the kernel matrix does not converge, "auto" goes on with weights; "kernel" does not."""
    X, y = dense(60, 120)
    X[:, 0] += 1e3
    for storage, used in (("auto", "on_the_fly"), ("kernel", "kernel")):
        with pytest.warns(ConvergenceWarning):
            clf = PolySVC(3, C=1e-3, gamma=1.0, storage=storage, max_iter=50, random_state=0).fit(X, y)
        assert clf.storage_ == used
        assert clf.gap_ > clf.tol
