"""Tasks of sparse models: answers of parts add up to values computed by explicit maps of all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from reference import conjunctions
from reference.poly import squared_constant
from reference.poly_problems import make_problem
from reference.sparse import loss_and_gradient
from unkernel._core import FeatureMap, conjunction_constants
from unkernel.distributed.cluster.row_blocks import make_block
from unkernel.distributed.poly import sparse_tasks as tasks
from unkernel.distributed.poly.sparse_shards import SparseShards, number_features
from unkernel.distributed.poly.sparse_solver import SparseSolver, conjugate_gradients
from unkernel.distributed.poly.svc_tasks import PolyPacking
from unkernel.poly.options import SparseOptions

MAP: dict[str, Any] = {"gamma": 0.5, "coef0": 1.5}


class LocalParts(SparseShards):
    """Parts in this process."""

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts

    def use(self, problem: Any, keys: Any, version: int) -> None:
        assert all(self._ask(tasks.use_keys, problem, keys, version))

    def sum_bounds(self, task: Any, point: Any, *sent: Any) -> Any:
        return sum(self._ask(task, point, *sent))

    def find_strongest(self, point: Any, sent: Any, threshold: float, limit: int) -> Any:
        return tasks.find_strongest(self._ask(tasks.sum_buckets, point, *sent), threshold, limit)[0]

    def _ask(self, task: Any, *sent: Any) -> list[Any]:
        return [task(part, *sent) for part in self.parts]


class Case:
    """A problem in three parts, and its explicit map."""

    def __init__(self, degree: int, binary: bool, classes: int, loss: str, l2: float = 0.0) -> None:
        X, y = make_problem(degree, rows=40, features=6, binary=binary, classes=max(classes, 2))
        X[:20, 5] = 0  # the first part lacks a feature
        if not classes:
            y = y + np.random.default_rng(5).integers(0, 9, 40) / 4
        centre = 0.0 if classes else 1.5
        self.codes = y.astype(int) if classes else y - centre
        self.epsilon = 0.6 if loss == "squared_epsilon_insensitive" else 0.0
        kind = loss if classes else "squared_error"
        packing = PolyPacking(0, 6, np.unique(y) if classes else None, 1)
        rows = (slice(0, 15), slice(15, 17), slice(17, 40))
        self.parts = [tasks.SparsePolyPart([make_block(X[part], y[part])], packing) for part in rows]
        counts = sum(tasks.count_columns(part).vector.unpack() for part in self.parts)  # type: ignore
        self.numbering = number_features(counts)
        assert self.numbering.binary == binary
        for part in self.parts:
            tasks.number_columns(part, self.numbering)
        options = SparseOptions(kind, 1.0 - l2, l2, 0.7, 0.0, 1e-3, 100, 0, 1, epsilon=self.epsilon)
        self.map = {"degree": degree, "kind": "kernel", **MAP}
        self.problem = tasks.SparseProblem("p", 0, options, self.map, [1.0] * classes, centre)
        self.shards = LocalParts(self.parts)
        self.solver = SparseSolver(self.shards, self.problem, self.numbering, lambda _: None)
        self.kind = "softmax" if self.problem.outputs > 1 else kind
        order = conjunctions.list_conjunctions(6, degree, binary)
        self.keys = np.arange(len(order), dtype=np.uint64)
        constants = np.asarray(
            conjunction_constants(FeatureMap(**self.map), binary=binary, l1=True, keys=self.keys)
        )
        ranked = X[:, self.numbering.columns]
        columns = [np.prod(ranked[:, list(conjunction)], axis=1) for conjunction in order]
        self.Phi = np.column_stack(columns) * constants
        if not binary:
            squares = [
                squared_constant(conjunction, degree=degree, feature_map="kernel", **MAP)
                for conjunction in order
            ]
            np.testing.assert_allclose(constants**2, squares)

    def loss(self, weights: Any) -> tuple[float, Any]:
        """Return the loss of all rows and its gradient, of shape (outputs, keys)."""
        F = self.Phi[:, : weights.shape[1]] @ weights.T
        value, by_score = loss_and_gradient(self.kind, F, self.codes, np.full(40, 0.7), self.epsilon)
        return value, (self.Phi.T @ by_score).T


CASES = [
    (2, False, 2, "logistic"),
    (2, True, 2, "squared_hinge"),
    (3, True, 2, "logistic"),
    (3, False, 2, "logistic"),
    (2, True, 3, "logistic"),
    (1, False, 2, "logistic"),
    (2, False, 0, "squared_error"),
    (2, True, 0, "squared_epsilon_insensitive"),
]


@pytest.mark.parametrize("arguments", CASES, ids=str)
def test_all_conjunctions_that_occur_are_found(arguments: Any) -> None:
    """Conjunctions whose gradients cancel out are found, too."""
    case = Case(*arguments)
    case.shards.use(case.problem, case.keys[:1], 1)
    point = tasks.Point("p", 1, np.zeros(case.problem.outputs))
    order = conjunctions.list_conjunctions(6, arguments[0], arguments[1])
    longer = [len(conjunction) > 1 for conjunction in order]
    np.testing.assert_array_equal(
        case.shards.find_occurring(point), case.keys[longer & (case.Phi != 0).any(axis=0)]
    )


@pytest.mark.parametrize("arguments", CASES, ids=str)
def test_shares_of_parts_add_up(arguments: Any) -> None:
    case = Case(*arguments)
    generator = np.random.default_rng(0)
    used = min(9, len(case.keys))
    shape = case.problem.outputs, used
    case.shards.use(case.problem, case.keys[:used], 1)
    weights, direction = generator.normal(size=shape), generator.normal(size=shape)
    point = tasks.Point("p", 1, weights.ravel())
    loss, gradients, curvatures = case.shards.judge(point)
    value, expected = case.loss(weights)
    assert loss == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(gradients, expected[:, :used].ravel(), atol=1e-9)
    np.testing.assert_allclose(
        case.shards.sum_answers(tasks.losses_along, point, direction.ravel(), np.array([0.0, 0.3])),
        [value, case.loss(weights + 0.3 * direction)[0]],
    )
    changes = np.array([direction.ravel(), np.zeros(direction.size)])
    np.testing.assert_allclose(
        case.shards.sum_answers(tasks.losses_at, point, changes), [case.loss(weights + direction)[0], value]
    )
    if arguments[3] in ("logistic", "squared_error"):  # the others are only piecewise smooth
        ahead, behind = (case.loss(weights + step * direction)[1] for step in (1e-5, -1e-5))
        bent = ((ahead - behind) / 2e-5)[:, :used].ravel()
        np.testing.assert_allclose(
            case.shards.sum_answers(tasks.hessian_product, point, direction.ravel()), bent, atol=1e-5
        )
        for place in (0, direction.size - 1):
            unit_vector = np.eye(direction.size)[place]
            product = case.shards.sum_answers(tasks.hessian_product, point, unit_vector)
            assert curvatures[place] == pytest.approx(product[place], rel=1e-9)


@pytest.mark.parametrize("l2", [0.0, 0.4])
@pytest.mark.parametrize("arguments", CASES, ids=str)
def test_a_search_finds_the_strongest_of_all(arguments: Any, l2: float) -> None:
    case = Case(*arguments, l2=l2)
    solver = case.solver
    now = solver._add_keys(solver._make_start(), case.keys[1:4])
    now.weights[:] = np.random.default_rng(1).normal(size=now.weights.shape)
    point = solver._make_point(now)
    result = solver._search(now, point, case.shards.judge(point)[1])
    all_weights = np.zeros((len(now.weights), len(case.keys)))
    all_weights[:, now.keys.astype(int)] = now.weights
    strengths = np.abs(case.loss(all_weights)[1])
    by_key = strengths.max(axis=0)
    beyond = {key for key in range(1, len(by_key)) if by_key[key] > solver._l1 * (1 + 1e-9)}
    assert set(result.keys.tolist()) == beyond
    assert len(beyond) > 3
    assert result.complete
    assert result.largest == pytest.approx(strengths.max(), rel=1e-9)
    np.testing.assert_allclose(
        np.sort(result.strengths[result.strengths > solver._l1]), np.sort(strengths[strengths > solver._l1])
    )


@pytest.mark.parametrize("arguments", CASES, ids=str)
def test_a_proposal_lowers_the_objective_of_all_rows(arguments: Any) -> None:
    case = Case(*arguments)
    now = case.solver._add_keys(case.solver._make_start(), case.keys[: min(9, len(case.keys))])
    state = case.solver._evaluate(now, case.solver._make_point(now))
    mean, _ = case.shards.propose(state.point, state.gradients, state.curvatures, 1.0, np.ones(1))
    assert mean.any()
    step = 0.1 * mean.reshape(now.weights.shape)
    assert case.loss(_spread(now, step, case))[0] + np.abs(step).sum() < state.objective


def _spread(now: Any, weights: Any, case: Case) -> Any:
    wide = np.zeros((len(weights), len(case.keys)))
    wide[:, now.keys.astype(int)] = weights
    return wide


def test_conjugate_gradients() -> None:
    generator = np.random.default_rng(0)
    A = generator.normal(size=(8, 8))
    A = A @ A.T + np.eye(8)
    b = generator.normal(size=8)
    solution = conjugate_gradients(lambda v: A @ v, b, 1 / np.diag(A), 8, 1e-12)
    np.testing.assert_allclose(solution, np.linalg.solve(A, b), rtol=1e-8)
    assert not conjugate_gradients(lambda v: A @ v, np.zeros(8), np.ones(8), 8, 0.1).any()


def test_rebuilt_parts_report_that_they_lack_the_state() -> None:
    case = Case(*CASES[0])
    case.shards.use(case.problem, case.keys[:3], 1)
    part = case.parts[0]
    point = tasks.Point("p", 1, np.zeros(3))
    assert tasks.judge(part, point) is not None
    assert tasks.judge(part, tasks.Point("p", 2, np.zeros(3))) is None
    assert tasks.judge(part, tasks.Point("q", 1, np.zeros(3))) is None
    part.sparse = None
    assert tasks.judge(part, point) is None
    assert not tasks.use_keys(part, case.problem, case.keys[:3], 1)
