"""A regression of rows on workers equals that of one machine up to the gap, and the gap is correct."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

import unkernel
from reference import sparse as reference
from reference.lost_workers import kill_a_worker
from reference.poly import expand
from reference.poly_problems import make_problem
from reference.selection import slow_after
from unkernel import PolyRegressor, RecordEncoder, write_svmlight
from unkernel.distributed import DaskPolyRegressor
from unkernel.distributed.cluster.row_blocks import make_block, survey
from unkernel.distributed.poly.sparse_shards import ClusterSparseShards

TOL = 1e-3


@pytest.fixture(scope="module")
def rows(data: Any) -> Any:
    return data.X[:240]


@pytest.fixture(scope="module")
def targets(rows: Any) -> Any:
    """Return targets that depend on a conjunction, and are far from 0."""
    generator = np.random.default_rng(1)
    table = rows.toarray()
    scores = 3 * table[:, 0] * table[:, 1] + table @ generator.normal(size=60)
    return 30.0 + scores + 0.3 * generator.normal(size=240)


@pytest.fixture(scope="module")
def weights() -> Any:
    return np.random.default_rng(2).integers(0, 3, 240).astype(float)


def assert_equally_good(ours: Any, theirs: Any) -> None:
    assert ours.gap_ <= TOL
    assert ours.objective_ == pytest.approx(theirs.objective_, rel=2 * TOL)
    assert ours.gamma_ == pytest.approx(theirs.gamma_, rel=1e-12)


@pytest.mark.parametrize(
    "options",
    slow_after(
        5,
        [
            {},
            {"penalty": "l1"},
            {"penalty": "elasticnet", "l1_ratio": 0.1, "degree": 1},
            {"loss": "squared_epsilon_insensitive", "epsilon": 0.3},
            {"degree": 1, "coef0": 0.0, "C": 1000.0},
            {"C": 100.0},
            {"degree": 3, "gamma": 0.3, "feature_map": "plain"},
            {"degree": 3, "gamma": 0.3, "penalty": "l1"},
            {"gamma": "auto", "coef0": 0.0, "penalty": "elasticnet"},
            {"loss": "squared_epsilon_insensitive", "epsilon": 10.0},
        ],
    ),
    ids=str,
)
def test_it_is_as_good_as_on_one_machine(
    client: Any, rows: Any, targets: Any, weights: Any, options: dict[str, Any]
) -> None:
    ours = DaskPolyRegressor(client=client, **options).fit(rows, targets, weights)
    theirs = PolyRegressor(**options).fit(rows, targets, weights)
    assert_equally_good(ours, theirs)
    spread = max(float(theirs.predict(rows).std()), 1e-9)
    np.testing.assert_allclose(ours.predict(rows), theirs.predict(rows), atol=0.1 * spread)
    assert (ours.n_parts_, ours.n_recoveries_) == (3, 0)
    assert len(ours.history_.passes) == ours.n_rounds_ > 0
    searched = {"search"} if "penalty" in options else set()
    assert set(ours.traffic_) == {"numbering", "weights"} | searched


@pytest.mark.parametrize(
    ("l1", "epsilon", "binary"),
    slow_after(
        4,
        [
            (0.0, 0.0, False),
            (0.0, 0.4, True),
            (1.0, 0.0, True),
            (0.3, 0.0, False),
            (0.0, 0.0, True),
            (0.0, 0.4, False),
            (1.0, 0.0, False),
            (0.3, 0.0, True),
        ],
    ),
)
def test_the_reported_gap_is_correct(client: Any, l1: float, epsilon: float, binary: bool) -> None:
    """Explicit maps of all rows give the same objective, and an optimum between bound and objective."""
    X, y = make_problem(3, rows=60, features=5, binary=binary)
    y = 10.0 + 2.0 * y + np.random.default_rng(1).integers(0, 5, len(y)) / 2
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    options: dict[str, Any] = {"degree": 2, "gamma": 0.5, "coef0": 1.5}
    penalty = {"penalty": "elasticnet", "l1_ratio": l1} if l1 > 0 else {"penalty": "l2"}
    loss = "squared_epsilon_insensitive" if epsilon else "squared_error"
    ours = DaskPolyRegressor(C=0.7, tol=0.02, loss=loss, epsilon=epsilon, **penalty, **options)
    ours.fit(X, y, weights)

    centre = np.average(y, weights=weights)
    model = replace(ours.model_, intercept=ours.model_.intercept - centre)
    shares = {"l1": l1, "l2": 1 - l1, "epsilon": epsilon}
    costs = 0.7 * weights
    objective = reference.model_objective("squared_error", model, X, y - centre, costs, **shares)
    assert ours.objective_ == pytest.approx(objective, rel=1e-9)
    Phi = (reference.expand_sets if binary and l1 > 0 else expand)(X, **options)
    optimum, _ = reference.minimise("squared_error", Phi, y - centre, costs, **shares)
    for objective_of_round, bound in zip(ours.history_.objective, ours.history_.bound, strict=True):
        assert bound * (1 - 1e-6) <= optimum <= objective_of_round * (1 + 1e-6)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_the_number_of_parts_does_not_matter(
    client: Any, rows: Any, targets: Any, weights: Any, penalty: str
) -> None:
    fitted = []
    tol = 1e-8 if penalty == "l2" else 1e-6
    for count in (1, 2, 3):
        pieces = np.array_split(np.arange(240), count)
        blocks = [dask.delayed((rows[part], targets[part], None, weights[part])) for part in pieces]
        learner = DaskPolyRegressor(penalty=penalty, tol=tol, random_state=0).fit(blocks)
        assert (learner.n_parts_, learner.gap_ <= tol) == (count, True)
        fitted.append(learner)
    for learner in fitted[1:]:
        assert learner.objective_ == pytest.approx(fitted[0].objective_, rel=2 * tol)
        np.testing.assert_allclose(learner.predict(rows), fitted[0].predict(rows), rtol=1e-4)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_equal_rows_with_several_targets_in_several_parts(client: Any, penalty: str) -> None:
    X, y = make_problem(0, rows=300, features=5)
    y = y + np.random.default_rng(0).integers(0, 4, 300)
    options: dict[str, Any] = {"gamma": 1.0, "degree": 3, "penalty": penalty}
    ours = DaskPolyRegressor(**options).fit(X, y)
    assert ours.model_.sets
    assert_equally_good(ours, PolyRegressor(**options).fit(X, y))


def test_large_and_constant_targets(client: Any, rows: Any, targets: Any) -> None:
    expected = DaskPolyRegressor(tol=1e-10, client=client).fit(rows, targets).predict(rows)
    large = DaskPolyRegressor(tol=1e-10).fit(rows, 1e12 * targets)
    np.testing.assert_allclose(large.predict(rows), 1e12 * expected, rtol=1e-6)
    np.testing.assert_allclose(DaskPolyRegressor().fit(rows, np.full(240, 0.1)).predict(rows), 0.1)
    assert DaskPolyRegressor().fit([[1.0]], [1e9]).predict([[1.0]]) == pytest.approx([1e9])


def test_the_same_parts_and_seed_give_the_same_model(client: Any, rows: Any, targets: Any) -> None:
    first, repeated = (DaskPolyRegressor(random_state=1).fit(rows, targets) for _ in range(2))
    np.testing.assert_array_equal(first.model_.weights, repeated.model_.weights)
    assert first.traffic_ == repeated.traffic_


def test_ill_conditioned_problems_take_few_steps(client: Any) -> None:
    """Products of columns that are nearly equal make the Hessian nearly singular."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(200, 1)) + 0.05 * generator.normal(size=(200, 20))
    y = X[:, 0] * X[:, 1] + 0.1 * generator.normal(size=200)
    ours = DaskPolyRegressor(C=1e4, client=client).fit(X, y)
    assert ours.n_iter_ <= 12
    assert_equally_good(ours, PolyRegressor(C=1e4, max_iter=10**5).fit(X, y))


# --- Sources of rows ---------------------------------------------------------------------------------------


def test_blocks_of_different_width_some_empty_or_without_weight(client: Any, rows: Any, targets: Any) -> None:
    X, y = rows.tolil(), targets
    X[:80, 40:] = 0
    X = sparse.csr_matrix(X)
    ones = np.ones(240)
    blocks = [
        (X[:80, :40], y[:80], None, ones[:80]),
        (X[:0], y[:0], None, ones[:0]),
        (X[:50], 7 * y[:50], None, 0 * ones[:50]),
        (X[80:], y[80:], None, ones[80:]),
    ]
    ours = DaskPolyRegressor(client=client).fit([dask.delayed(block) for block in blocks])
    assert ours.n_features_in_ == 60
    assert_equally_good(ours, PolyRegressor().fit(X, y))


def test_files_and_dask_arrays(client: Any, rows: Any, targets: Any, tmp_path: Path) -> None:
    for number, part in enumerate([slice(0, 100), slice(100, 240)]):
        write_svmlight(tmp_path / f"part-{number}.svm", rows[part], targets[part])
    theirs = PolyRegressor().fit(rows, targets)
    assert_equally_good(DaskPolyRegressor().fit(str(tmp_path / "part-*")), theirs)
    X, y = (da.from_array(table, chunks=(90, *table.shape[1:])) for table in (rows.toarray(), targets))
    assert_equally_good(DaskPolyRegressor().fit(X, y), theirs)


def test_a_pipeline_of_records(client: Any, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    people = pd.DataFrame(
        {"job": generator.choice(["clerk", "pilot", None], 200), "age": generator.integers(18, 80, 200)}
    )
    pay = people["age"] * np.where(people["job"] == "pilot", 2.0, 1.0)
    frame = dd.from_pandas(people.assign(pay=pay), npartitions=5)
    pipeline = make_pipeline(RecordEncoder(), DaskPolyRegressor(client=client))
    pipeline.fit(frame.drop(columns="pay"), frame["pay"])
    on_one_machine = make_pipeline(RecordEncoder(), PolyRegressor()).fit(people, pay)
    assert_equally_good(pipeline[-1], on_one_machine[-1])
    unkernel.compile(pipeline).save(tmp_path / "model.uk")
    fast = unkernel.load(tmp_path / "model.uk")
    np.testing.assert_allclose(fast.predict(people), pipeline[-1].predict(pipeline[0].transform(people)))
    assert fast.score(people, pay) > 0.95


def test_surveys_do_not_list_targets() -> None:
    X, y = np.eye(4), np.array([1.0, 2.0, 3.0, 10.0])
    blocks = [make_block(X, y, None, np.array([1.0, 1.0, 2.0, 0.0])), make_block(X[:0], y[:0], None, [])]
    found = survey(blocks, identify=False, regression=True)
    assert (found.labels.tolist(), found.totals.tolist(), found.rows) == ([2.25], [4.0], 4)


# --- Training ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", slow_after(1, ["l1", "l2"]))
def test_a_path_is_that_of_one_machine(client: Any, rows: Any, targets: Any, penalty: str) -> None:
    Cs = [0.1, 1.0]
    ours, theirs = (
        learner(penalty=penalty).path(rows, targets, Cs) for learner in (DaskPolyRegressor, PolyRegressor)
    )
    for actual, expected in zip(ours, theirs, strict=True):
        assert actual.C == expected.C
        assert_equally_good(actual, expected)
    cold = DaskPolyRegressor(C=1.0, penalty=penalty).fit(rows, targets)
    assert ours[1].history_.objective[0] < cold.history_.objective[0]


def test_too_few_steps(client: Any, rows: Any, targets: Any) -> None:
    with pytest.warns(ConvergenceWarning, match="DaskPolyRegressor stopped after max_iter=1 steps"):
        ours = DaskPolyRegressor(max_iter=1, C=1e4, tol=1e-6).fit(rows, targets)
    assert ours.n_iter_ == 1
    assert ours.gap_ > 1e-6


def test_the_gap_is_that_of_the_last_step_if_rounding_ends_training(
    client: Any, rows: Any, targets: Any
) -> None:
    with pytest.warns(ConvergenceWarning):
        ours = DaskPolyRegressor(penalty="l1", tol=1e-17, client=client).fit(rows, targets)
    assert ours.gap_ < 1e-6


def test_progress_is_shown(client: Any, rows: Any, targets: Any, capsys: pytest.CaptureFixture[str]) -> None:
    gaps: list[float] = []
    ours = DaskPolyRegressor(verbose=2)
    ours.fit_reporting(rows, targets, None, on_progress=lambda progress: gaps.append(progress.relative_gap))
    assert len(gaps) == ours.n_rounds_
    assert gaps[-1] == ours.gap_
    assert f"round {ours.n_rounds_}: " in capsys.readouterr().out


def test_models_are_ordinary(client: Any, rows: Any, targets: Any, tmp_path: Path) -> None:
    ours = DaskPolyRegressor(epsilon=0.2, loss="squared_epsilon_insensitive", client=client)
    ours.fit(rows, targets)
    ours.save(tmp_path / "model.uk")
    loaded = PolyRegressor.load(tmp_path / "model.uk")
    assert (loaded.epsilon, loaded.loss, loaded.objective_) == (0.2, ours.loss, ours.objective_)
    np.testing.assert_array_equal(loaded.predict(rows), ours.predict(rows))
    np.testing.assert_allclose(unkernel.compile(ours).predict(rows), ours.predict(rows))
    explained = ours.explain(rows[0].toarray()[0], top=None)
    total = explained.intercept + sum(part.value for part in explained.contributions)
    assert total == pytest.approx(ours.predict(rows[:1])[0])
    unpickled = pickle.loads(pickle.dumps(ours))
    assert unpickled.client is None
    np.testing.assert_array_equal(unpickled.predict(rows), ours.predict(rows))
    assert clone(ours).client is client
    with pytest.raises(AttributeError, match="cannot be updated: fit a new one, or train on one machine"):
        ours.update(rows, targets)


@pytest.mark.parametrize(
    ("options", "change", "message"),
    [
        ({"degree": 4}, {}, "degree"),
        ({"penalty": "l3"}, {}, "penalty"),
        ({"epsilon": -1.0}, {}, "epsilon"),
        ({"penalty": "l1", "loss": "squared_epsilon_insensitive"}, {}, "needs loss='squared_error'"),
        ({"loss": "absolute_error"}, {}, "absolute_error.*PolyRegressor on one machine"),
        ({"loss": "epsilon_insensitive"}, {}, "PolyRegressor on one machine"),
        ({"loss": "quantile"}, {}, "PolyRegressor on one machine"),
        ({}, {"y": None}, "y is None"),
        ({}, {"y": [1.0, np.nan, 2.0]}, "NaN"),
        ({}, {"y": [1.0, np.inf, 2.0]}, "infinity"),
        ({}, {"y": [1.0, 1e200, 2.0]}, "beyond 1e"),
        ({}, {"y": ["a", "b", "c"]}, "could not convert"),
        ({}, {"sample_weight": [0.0, 0.0, 0.0]}, "positive sample_weight"),
        ({}, {"sample_weight": [1.0, -1.0, 1.0]}, "[Nn]egative"),
    ],
)
def test_mistakes_are_named(client: Any, options: Any, change: Any, message: str) -> None:
    arguments = {"y": [0.0, 1.0, 2.0]} | change
    with pytest.raises(ValueError, match=message):
        DaskPolyRegressor(**options, client=client).fit(np.eye(3), **arguments)


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("penalty", "when", "calls"),
    [("l1", "find_strongest", 2), ("l1", "judge", 3), ("l2", "find_occurring", 1), ("l2", "sum_answers", 9)],
)
def test_a_killed_worker(
    process_client: Any,
    rows: Any,
    targets: Any,
    monkeypatch: pytest.MonkeyPatch,
    *,
    penalty: str,
    when: str,
    calls: int,
) -> None:
    killing = kill_a_worker(process_client, calls)
    monkeypatch.setattr(ClusterSparseShards, when, killing(getattr(ClusterSparseShards, when)))
    ours = DaskPolyRegressor(penalty=penalty, client=process_client).fit(rows, targets)
    assert ours.n_recoveries_ >= 1
    assert_equally_good(ours, PolyRegressor(penalty=penalty).fit(rows, targets))
