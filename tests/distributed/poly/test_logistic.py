"""Sparse models of rows on workers equal locally trained ones up to the gap, and the gap is correct."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import unkernel
from reference import sparse as reference
from reference.lost_workers import kill_a_worker
from reference.poly import expand
from reference.poly_problems import make_problem
from reference.selection import slow_after
from unkernel import PolyLogisticRegression, PolySVC
from unkernel.distributed import DaskPolyLogisticRegression, DaskPolySVC
from unkernel.distributed.poly.sparse_shards import ClusterSparseShards

TOL = 1e-3


@pytest.fixture(scope="module")
def small_data(data: Any) -> Any:
    """Return the first 180 rows, 60 per part."""
    first_rows = {field.name: getattr(data, field.name)[:180] for field in dataclasses.fields(data)}
    return dataclasses.replace(data, **first_rows)


def assert_equally_good(distributed: Any, local: Any) -> None:
    assert distributed.gap_ <= TOL
    assert distributed.objective_ == pytest.approx(local.objective_, rel=2 * TOL)
    assert distributed.gamma_ == pytest.approx(local.gamma_, rel=1e-12)


@pytest.mark.parametrize(
    "options",
    slow_after(
        5,
        [
            {},
            {"penalty": "l2"},
            {"penalty": "elasticnet", "l1_ratio": 0.1, "degree": 1},
            {"penalty": "l2", "degree": 3, "gamma": 0.3, "feature_map": "plain"},
            {"class_weight": {"yes": 3.0}},
            {"degree": 1},
            {"degree": 3, "gamma": 0.3},
            {"penalty": "elasticnet"},
            {"penalty": "l2", "degree": 1, "coef0": 0.0, "C": 100.0},
            {"feature_map": "plain"},
            {"gamma": "auto", "coef0": 0.0, "C": 1000.0},
        ],
    ),
    ids=str,
)
def test_two_classes(client: Any, small_data: Any, options: dict[str, Any]) -> None:
    distributed = DaskPolyLogisticRegression(client=client, **options).fit(small_data.X, small_data.binary)
    local = PolyLogisticRegression(**options).fit(small_data.X, small_data.binary)
    assert_equally_good(distributed, local)
    np.testing.assert_allclose(
        distributed.predict_proba(small_data.X), local.predict_proba(small_data.X), atol=0.1
    )
    assert (distributed.n_parts_, distributed.n_recoveries_) == (3, 0)
    assert len(distributed.history_.passes) == distributed.n_rounds_ > 1
    searched = {"search"} if options.get("penalty") != "l2" else set()
    assert set(distributed.traffic_) == {"numbering", "weights"} | searched


@pytest.mark.parametrize(
    ("learner", "penalty"),
    slow_after(
        2, [(DaskPolyLogisticRegression, "l1"), (DaskPolySVC, "l1"), (DaskPolyLogisticRegression, "l2")]
    ),
)
def test_several_classes_and_weights(client: Any, small_data: Any, learner: Any, penalty: str) -> None:
    options = {"penalty": penalty, "class_weight": "balanced"}
    options |= {"loss": "squared_hinge"} if learner is DaskPolySVC else {}
    local_class = PolySVC if learner is DaskPolySVC else PolyLogisticRegression
    distributed = learner(**options).fit(small_data.X, small_data.classes, small_data.weights)
    local = local_class(**options).fit(small_data.X, small_data.classes, small_data.weights)
    assert_equally_good(distributed, local)
    np.testing.assert_array_equal(distributed.classes_, [0, 1, 2])
    assert np.mean(distributed.predict(small_data.X) == local.predict(small_data.X)) > 0.95


@pytest.mark.parametrize(
    ("kind", "l1", "binary"),
    slow_after(
        6,
        [
            ("logistic", 1.0, False),
            ("logistic", 0.3, True),
            ("logistic", 0.0, False),
            ("softmax", 1.0, True),
            ("softmax", 0.0, True),
            ("squared_hinge", 1.0, False),
            ("logistic", 1.0, True),
            ("logistic", 0.3, False),
            ("logistic", 0.0, True),
            ("softmax", 1.0, False),
            ("softmax", 0.0, False),
            ("squared_hinge", 1.0, True),
        ],
    ),
)
def test_the_reported_gap_is_correct(client: Any, kind: str, l1: float, binary: bool) -> None:
    """Explicit maps of all rows give the same objective, and an optimum between bound and objective."""
    X, y = make_problem(3, rows=60, features=5, binary=binary, classes=3 if kind == "softmax" else 2)
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    options: dict[str, Any] = {"degree": 2, "gamma": 0.5, "coef0": 1.5}
    common = {"C": 0.7, "tol": 0.02, **options}
    if kind == "squared_hinge":
        distributed: Any = DaskPolySVC(penalty="l1", loss=kind, **common)
    else:
        penalty = {"penalty": "elasticnet", "l1_ratio": l1} if l1 > 0 else {"penalty": "l2"}
        distributed = DaskPolyLogisticRegression(**penalty, **common)
    distributed.fit(X, y, weights)

    codes = np.searchsorted(distributed.classes_, y)
    shares = {"l1": l1, "l2": 1 - l1}
    objective = reference.model_objective(kind, distributed.model_, X, codes, 0.7 * weights, **shares)
    assert distributed.objective_ == pytest.approx(objective, rel=1e-9)
    Phi = (reference.expand_sets if binary and l1 > 0 else expand)(X, **options)
    outputs = 3 if kind == "softmax" else 1
    optimum, _ = reference.minimise(kind, Phi, codes, 0.7 * weights, **shares, outputs=outputs)
    for objective_of_round, bound in zip(
        distributed.history_.objective, distributed.history_.bound, strict=True
    ):
        assert bound * (1 - 1e-6) <= optimum <= objective_of_round * (1 + 1e-6)


@pytest.mark.slow
def test_parts_of_one_class_and_of_other_columns(client: Any, small_data: Any) -> None:
    """No part has more than one class, or more than a third of the features."""
    order = np.argsort(small_data.classes, kind="stable")
    third = np.arange(60) // 20
    X = small_data.X[order].toarray() * (third == (np.arange(180) // 60)[:, None])
    distributed = DaskPolyLogisticRegression().fit(X, small_data.classes[order])
    assert_equally_good(distributed, PolyLogisticRegression().fit(X, small_data.classes[order]))


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_equal_rows_in_several_parts_of_0_and_1(client: Any, penalty: str) -> None:
    X, y = make_problem(0, rows=300, features=5)
    options: dict[str, Any] = {"gamma": 1.0, "degree": 3, "penalty": penalty}
    distributed = DaskPolyLogisticRegression(**options).fit(X, y)
    assert distributed.model_.sets
    assert_equally_good(distributed, PolyLogisticRegression(**options).fit(X, y))


@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.slow
def test_parts_of_binary_values_among_others_are_not_taken_for_sets(client: Any, penalty: str) -> None:
    X, y = make_problem(0, rows=300, features=5)
    X[150:] *= 2
    distributed = DaskPolyLogisticRegression(gamma=1.0, penalty=penalty).fit(X, y)
    assert not distributed.model_.sets
    assert_equally_good(distributed, PolyLogisticRegression(gamma=1.0, penalty=penalty).fit(X, y))


def test_the_same_parts_and_seed_give_the_same_model(client: Any, small_data: Any) -> None:
    first, repeated = (
        DaskPolyLogisticRegression(random_state=1).fit(small_data.X, small_data.binary) for _ in range(2)
    )
    np.testing.assert_array_equal(first.model_.keys, repeated.model_.keys)
    np.testing.assert_array_equal(first.model_.weights, repeated.model_.weights)
    assert first.traffic_ == repeated.traffic_


def test_blocks_of_different_width_some_empty(client: Any, small_data: Any) -> None:
    X, y = small_data.X.tolil(), small_data.binary
    X[:60, 40:] = 0
    X = sparse.csr_matrix(X)
    blocks = [(X[:60, :40], y[:60]), (X[:0], y[:0]), (X[60:], y[60:])]
    distributed = DaskPolyLogisticRegression().fit([dask.delayed(block) for block in blocks])
    assert distributed.n_features_in_ == 60
    assert_equally_good(distributed, PolyLogisticRegression().fit(X, y))


@pytest.mark.parametrize("penalty", slow_after(1, ["l1", "l2"]))
def test_a_regularisation_path_equals_local_training(client: Any, small_data: Any, penalty: str) -> None:
    Cs = [0.3, 1.0]
    distributed, local = (
        learner(penalty=penalty).path(small_data.X, small_data.binary, Cs)
        for learner in (DaskPolyLogisticRegression, PolyLogisticRegression)
    )
    for actual, expected in zip(distributed, local, strict=True):
        assert actual.C == expected.C
        assert_equally_good(actual, expected)
    cold = DaskPolyLogisticRegression(C=1.0, penalty=penalty).fit(small_data.X, small_data.binary)
    assert distributed[1].history_.objective[0] < cold.history_.objective[0]


def test_too_few_steps(client: Any, small_data: Any) -> None:
    with pytest.warns(ConvergenceWarning, match="max_iter=3 steps"):
        distributed = DaskPolyLogisticRegression(max_iter=3, tol=1e-6).fit(small_data.X, small_data.binary)
    assert distributed.n_iter_ == 3
    assert distributed.gap_ > 1e-6


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({"degree": 4}, None, "degree"),
        ({"penalty": "l3"}, None, "penalty"),
        ({"l1_ratio": 0.0}, None, "l1_ratio"),
        ({"class_weight": {"maybe": 2.0}}, None, "maybe"),
        ({}, np.zeros(180), "one class"),
    ],
)
def test_mistakes_are_named(client: Any, small_data: Any, options: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DaskPolyLogisticRegression(**options).fit(small_data.X, small_data.binary if y is None else y)


def test_l1_needs_the_squared_hinge(client: Any, small_data: Any) -> None:
    with pytest.raises(ValueError, match="squared_hinge"):
        DaskPolySVC(penalty="l1").fit(small_data.X, small_data.binary)


def test_models_are_ordinary(client: Any, small_data: Any, tmp_path: Path) -> None:
    distributed = DaskPolyLogisticRegression(client=client).fit(small_data.X, small_data.binary)
    distributed.save(tmp_path / "model.uk")
    loaded = PolyLogisticRegression.load(tmp_path / "model.uk")
    np.testing.assert_array_equal(loaded.predict_proba(small_data.X), distributed.predict_proba(small_data.X))
    compiled = unkernel.compile(distributed)
    np.testing.assert_array_equal(compiled.predict(small_data.X), distributed.predict(small_data.X))
    unpickled = pickle.loads(pickle.dumps(distributed))
    assert unpickled.client is None
    np.testing.assert_array_equal(unpickled.predict(small_data.X), distributed.predict(small_data.X))
    assert clone(distributed).client is client


def test_progress_is_shown(client: Any, small_data: Any, capsys: pytest.CaptureFixture[str]) -> None:
    gaps: list[float] = []
    distributed = DaskPolyLogisticRegression(verbose=2)
    distributed.fit_reporting(
        small_data.X, small_data.binary, None, on_progress=lambda progress: gaps.append(progress.relative_gap)
    )
    assert len(gaps) == distributed.n_rounds_
    assert gaps[-1] == distributed.gap_
    assert f"round {distributed.n_rounds_}: " in capsys.readouterr().out


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("penalty", "when", "calls"),
    [
        ("l1", "use", 2),
        ("l1", "sum_bounds", 3),
        ("l1", "find_strongest", 2),
        ("l1", "judge", 3),
        ("l2", "find_occurring", 1),
        ("l2", "sum_answers", 4),
    ],
)
def test_a_killed_worker(
    process_client: Any,
    small_data: Any,
    monkeypatch: pytest.MonkeyPatch,
    *,
    penalty: str,
    when: str,
    calls: int,
) -> None:
    killing = kill_a_worker(process_client, calls)
    monkeypatch.setattr(ClusterSparseShards, when, killing(getattr(ClusterSparseShards, when)))
    distributed = DaskPolyLogisticRegression(penalty=penalty, client=process_client).fit(
        small_data.X, small_data.binary
    )
    assert distributed.n_recoveries_ >= 1
    assert_equally_good(
        distributed, PolyLogisticRegression(penalty=penalty).fit(small_data.X, small_data.binary)
    )
