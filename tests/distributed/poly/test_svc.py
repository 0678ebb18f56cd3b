"""A polynomial SVM of rows on workers equals a locally trained one up to the gap, and the gap is correct."""

from __future__ import annotations

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
from reference.lost_workers import kill_a_worker
from reference.poly import expand, kernel, primal, solve_dual
from reference.poly_problems import make_problem
from reference.selection import slow_after
from unkernel import PolySVC, write_svmlight
from unkernel.distributed import DaskPolySVC
from unkernel.distributed.cluster.row_blocks import make_block
from unkernel.distributed.poly.cascade import ClusterShards
from unkernel.distributed.poly.svc_tasks import (
    Examples,
    Moments,
    PolyPacking,
    PolyPart,
    concatenate_examples,
    sample_places,
)

TOL = 1e-3


@pytest.fixture(autouse=True)
def _train_in_several_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train in several rounds; by default, so few rows would be solved on one worker."""
    monkeypatch.setattr("unkernel.distributed.poly.cascade._MAX_ROWS_AT_ONCE", 0)


def assert_equally_good(distributed: Any, local: Any) -> None:
    assert distributed.gap_ <= TOL
    assert distributed.objective_ == pytest.approx(local.objective_, rel=2 * TOL)
    assert distributed.gamma_ == pytest.approx(local.gamma_, rel=1e-12)


@pytest.mark.parametrize(
    "options",
    slow_after(
        4,
        [
            {},
            {"degree": 3, "gamma": 0.3, "loss": "squared_hinge"},
            {"storage": "kernel"},
            {"degree": 1, "feature_map": "plain", "class_weight": {"yes": 3.0}},
            {"degree": 1},
            {"degree": 3, "gamma": 0.3},
            {"loss": "squared_hinge"},
            {"feature_map": "plain"},
            {"gamma": "auto", "coef0": 2.0},
            {"class_weight": "balanced"},
            {"class_weight": {"yes": 3.0}},
        ],
    ),
    ids=str,
)
def test_binary(client: Any, data: Any, options: dict[str, Any]) -> None:
    distributed = DaskPolySVC(client=client, **options).fit(data.X, data.binary)
    local = PolySVC(**options).fit(data.X, data.binary)
    assert_equally_good(distributed, local)
    assert np.mean(distributed.predict(data.X) == local.predict(data.X)) > 0.97
    assert (distributed.n_parts_, distributed.n_recoveries_) == (3, 0)
    assert distributed.n_rounds_ > 1
    assert len(distributed.history_.passes) == distributed.n_rounds_
    assert set(distributed.traffic_) == {"rows", "model", "places", "duals"}


def test_several_classes_and_weights(client: Any, data: Any) -> None:
    distributed = DaskPolySVC(class_weight="balanced").fit(data.X, data.classes, data.weights)
    local = PolySVC(class_weight="balanced").fit(data.X, data.classes, data.weights)
    assert_equally_good(distributed, local)
    np.testing.assert_array_equal(distributed.classes_, [0, 1, 2])


def test_a_class_whose_rows_have_no_weight_does_not_count(client: Any, data: Any) -> None:
    weights = (data.classes != 2).astype(float)
    distributed = DaskPolySVC().fit(data.X, data.classes, weights)
    np.testing.assert_array_equal(distributed.classes_, [0, 1])
    assert_equally_good(distributed, PolySVC().fit(data.X, data.classes, weights))


@pytest.mark.parametrize(
    ("loss", "binary"),
    slow_after(2, [("hinge", True), ("squared_hinge", False), ("hinge", False), ("squared_hinge", True)]),
)
def test_the_reported_gap_is_correct(client: Any, loss: str, binary: bool) -> None:
    """Explicit maps of all rows give the same objective, and an optimum between bound and objective."""
    X, y = make_problem(3, rows=90, features=6, binary=binary)
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    options: dict[str, Any] = {"degree": 2, "gamma": 0.5, "coef0": 1.5}
    distributed = DaskPolySVC(C=0.4, loss=loss, tol=0.05, **options).fit(X, y, weights)
    assert distributed.n_rounds_ > 1

    Phi, signs, costs = expand(X, **options), np.where(y == 1, 1.0, -1.0), 0.4 * weights
    # w is a sum of mapped rows: the shortest of all vectors with these scores.
    w = np.linalg.lstsq(Phi[weights > 0], distributed.decision_function(X[weights > 0]), rcond=None)[0]
    assert distributed.objective_ == pytest.approx(primal(w, Phi, signs, costs, loss), rel=1e-5)
    has_weight = weights > 0
    K = kernel(X[has_weight], X[has_weight], **options)
    _, optimum = solve_dual(K, signs[has_weight], costs[has_weight], loss, sweeps=2000, gap=1e-6)
    assert distributed.objective_ * (1 - distributed.gap_) <= optimum * (1 + 1e-6)
    assert distributed.objective_ >= optimum * (1 - 2e-6)
    for objective, bound in zip(distributed.history_.objective, distributed.history_.bound, strict=True):
        assert bound * (1 - 1e-6) <= optimum <= objective * (1 + 2e-6)


def test_parts_of_one_class(client: Any, data: Any) -> None:
    """If rows are sorted by class, every part has a single class."""
    order = np.argsort(data.classes, kind="stable")
    distributed = DaskPolySVC().fit(data.X[order], data.classes[order])
    assert_equally_good(distributed, PolySVC().fit(data.X, data.classes))


def test_equal_rows_in_several_parts(client: Any) -> None:
    X, y = make_problem(0, rows=300, features=5)
    distributed = DaskPolySVC(gamma=1.0).fit(X, y)
    assert_equally_good(distributed, PolySVC(gamma=1.0).fit(X, y))


def test_the_same_parts_and_seed_give_the_same_model(client: Any, data: Any) -> None:
    first, repeated = (DaskPolySVC(random_state=1).fit(data.X, data.binary) for _ in range(2))
    np.testing.assert_array_equal(first.model_.weights, repeated.model_.weights)
    assert first.traffic_ == repeated.traffic_


def test_few_rows_are_solved_at_once(client: Any, data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unkernel.distributed.poly.cascade._MAX_ROWS_AT_ONCE", 600)
    distributed = DaskPolySVC(random_state=0).fit(data.X, data.binary)
    local = PolySVC(random_state=0).fit(data.X, data.binary)
    assert distributed.n_rounds_ == 1
    assert distributed.objective_ == pytest.approx(local.objective_, rel=2 * TOL)
    assert distributed.n_iter_ > 1


def test_blocks_of_different_width_some_empty(client: Any, data: Any) -> None:
    X, y = data.X.tolil(), data.binary
    X[:200, 40:] = 0
    X = sparse.csr_matrix(X)
    blocks = [(X[:200, :40], y[:200]), (X[:0], y[:0]), (X[200:], y[200:])]
    distributed = DaskPolySVC().fit([dask.delayed(block) for block in blocks])
    assert distributed.n_features_in_ == 60
    assert_equally_good(distributed, PolySVC().fit(X, y))


def test_files(client: Any, data: Any, tmp_path: Path) -> None:
    for number, rows in enumerate([slice(0, 250), slice(250, 600)]):
        write_svmlight(tmp_path / f"part-{number}.svm", data.X[rows], data.classes[rows])
    distributed = DaskPolySVC().fit(str(tmp_path / "part-*"))
    assert distributed.classes_.dtype.kind == "i"
    assert_equally_good(distributed, PolySVC().fit(data.X, data.classes))


def test_a_regularisation_path_equals_local_training(client: Any, data: Any) -> None:
    Cs = [0.1, 1.0]
    actual, expected = (learner.path(data.X, data.binary, Cs) for learner in (DaskPolySVC(), PolySVC()))
    for distributed, local in zip(actual, expected, strict=True):
        assert distributed.C == local.C
        assert_equally_good(distributed, local)
    assert actual[1].n_rounds_ <= DaskPolySVC(C=1.0).fit(data.X, data.binary).n_rounds_


def test_too_few_passes(client: Any, data: Any) -> None:
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        distributed = DaskPolySVC(max_iter=3, tol=1e-6).fit(data.X, data.binary)
    assert distributed.n_iter_ <= 3
    assert distributed.gap_ > 1e-6


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ({"degree": 4}, lambda data: (data.X, data.binary), "degree"),
        ({"C": -1.0}, lambda data: (data.X, data.binary), "'C'"),
        ({"class_weight": {"maybe": 2.0}}, lambda data: (data.X, data.binary), "maybe"),
        ({"class_weight": {"yes": 0.0}}, lambda data: (data.X, data.binary), "positive"),
        ({}, lambda data: (data.X, None), "y is None"),
        ({}, lambda data: (data.X, np.zeros(600)), "one class"),
        ({}, lambda data: (data.X, data.binary, -data.weights), "[Nn]egative"),
        ({}, lambda data: (data.X, data.binary, 0 * data.weights), "positive sample_weight"),
        ({}, lambda data: (data.X, data.X[:, 0].toarray().ravel()), "continuous"),
    ],
)
def test_mistakes_are_named(client: Any, data: Any, options: Any, arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DaskPolySVC(**options).fit(*arguments(data))


def test_models_are_ordinary(client: Any, data: Any, tmp_path: Path) -> None:
    distributed = DaskPolySVC(client=client).fit(data.X, data.binary)
    distributed.save(tmp_path / "model.uk")
    for loaded in (unkernel.load(tmp_path / "model.uk"), PolySVC.load(tmp_path / "model.uk")):
        np.testing.assert_array_equal(loaded.predict(data.X), distributed.predict(data.X))
    unpickled = pickle.loads(pickle.dumps(distributed))
    assert unpickled.client is None
    np.testing.assert_array_equal(unpickled.predict(data.X), distributed.predict(data.X))
    assert clone(distributed).client is client


def test_progress_is_shown(client: Any, data: Any, capsys: pytest.CaptureFixture[str]) -> None:
    gaps: list[float] = []
    distributed = DaskPolySVC(verbose=2)
    distributed.fit_reporting(
        data.X, data.binary, None, on_progress=lambda progress: gaps.append(progress.relative_gap)
    )
    assert len(gaps) == distributed.n_rounds_
    assert gaps[-1] == distributed.gap_
    assert f"round {distributed.n_rounds_}: " in capsys.readouterr().out


# --- Pieces ------------------------------------------------------------------------------------------------


def make_part(X: Any, y: Any, weights: Any = None) -> PolyPart:
    return PolyPart([make_block(X, y, None, weights)], PolyPacking(0, X.shape[1], np.unique(y), 1))


def test_equal_rows_of_a_class_are_one() -> None:
    X, y = np.array([[1.0, 0], [0, 2], [1, 0], [1, 0], [0, 2]]), np.array([0, 1, 0, 1, 1])
    result = make_part(X, y, np.array([1.0, 2, 3, 4, 0])).examples
    rows = zip(map(tuple, result.rows.toarray()), result.codes.tolist(), result.weights.tolist(), strict=True)
    assert set(rows) == {((1, 0), 0, 4), ((1, 0), 1, 4), ((0, 2), 1, 2)}


def test_examples_are_sent_whole() -> None:
    examples = make_part(np.eye(4), np.array([0, 1, 0, 1])).examples
    weighted_examples = make_part(2 * np.eye(4), np.array([0, 1, 0, 1]), np.arange(4.0)).examples
    sent = [examples.pack(np.array([0, 2], np.int32)), weighted_examples.pack(np.array([1], np.int32))]
    assert sent[0].values is None
    assert sent[0].weights is None
    received: Examples = concatenate_examples(*sent).unpack(4)
    expected = [examples.rows.toarray()[[0, 2]], weighted_examples.rows.toarray()[[1]]]
    np.testing.assert_array_equal(received.rows.toarray(), np.concatenate(expected))
    np.testing.assert_array_equal(received.codes, [*examples.codes[[0, 2]], *weighted_examples.codes[[1]]])
    np.testing.assert_array_equal(received.weights, [1, 1, *weighted_examples.weights[[1]]])


def test_a_sample_has_all_classes() -> None:
    X, y = make_problem(0, rows=200, features=9, classes=4)
    part = make_part(X, y)
    places = sample_places(part, 10)
    counts = np.bincount(part.examples.codes[places])
    np.testing.assert_array_equal(counts, np.ceil(np.bincount(part.examples.codes) / 10))


def test_combined_moments_of_parts_equal_moments_of_all_rows() -> None:
    X, y = make_problem(1, rows=60, features=5, binary=False)
    weights = np.random.default_rng(0).integers(0, 3, 60).astype(float)
    parts = [make_part(X[rows], y[rows], weights[rows]).moments for rows in (slice(0, 10), slice(10, 60))]
    repeated = np.repeat(X, weights.astype(int), axis=0)
    assert Moments.merge(parts).variance(5) == pytest.approx(repeated.var(), rel=1e-12)


# --- Lost workers ------------------------------------------------------------------------------------------


@pytest.mark.hostile
@pytest.mark.parametrize("when", [("solve_and_judge", 2), ("fetch_model", 1)])
def test_a_killed_worker(
    process_client: Any, data: Any, when: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, calls = when
    killing = kill_a_worker(process_client, calls)
    monkeypatch.setattr(ClusterShards, name, killing(getattr(ClusterShards, name)))
    distributed = DaskPolySVC(client=process_client).fit(data.X, data.binary)
    assert distributed.n_recoveries_ >= (name != "fetch_model")
    assert_equally_good(distributed, PolySVC().fit(data.X, data.binary))


def test_weights_in_the_place_of_groups_are_refused(client: Any) -> None:
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"\(X, y, None, weights\)"):
        DaskPolySVC(client=client).fit([dask.delayed((X, y, np.ones(4)))])
