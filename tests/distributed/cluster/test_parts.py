"""Several parts per worker give the same results as one part, and move to workers that join."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from dask.distributed import Client, LocalCluster, wait
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from reference.selection import slow_after
from unkernel import write_svmlight
from unkernel.cutplane.checkpoints import Checkpoint
from unkernel.distributed import DaskCuttingPlaneSVC, DaskPolySVC, DaskRankSVM
from unkernel.distributed.cluster import coordinator, gathered_blocks, part_placement, row_sources
from unkernel.distributed.cluster.coordinator import Cluster
from unkernel.distributed.cluster.part_placement import plan_moves
from unkernel.distributed.cluster.row_blocks import fingerprint, make_block
from unkernel.distributed.cluster.row_sources import assign_evenly
from unkernel.distributed.cutplane.risks import GroupRisk

TOL = 1e-3


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the size from which rows are divided into several parts."""
    monkeypatch.setattr(gathered_blocks, "_LARGE_PART_ROWS", 0)
    monkeypatch.setattr(gathered_blocks, "_LARGE_PART_ENTRIES_PER_COLUMN", 0)
    monkeypatch.setattr(row_sources, "_LARGE_BLOCK_ENTRIES", 1)


def make_delayed_blocks(data: Any, labels: Any, *beside: Any, count: int = 24) -> list[Any]:
    rows = np.array_split(np.arange(600), count)
    return [dask.delayed((data.X[part], labels[part], *(column[part] for column in beside))) for part in rows]


@pytest.mark.parametrize(
    ("by_client", "objective"),
    slow_after(2, [(0, "roc_area"), (1 << 23, "error_rate"), (0, "error_rate"), (1 << 23, "roc_area")]),
)
def test_several_parts_give_the_answer_of_one(
    client: Any, data: Any, objective: str, by_client: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "_MAX_BYTES_BY_CLIENT", by_client)
    learner = DaskCuttingPlaneSVC(0.03, tol=TOL, objective=objective, client=client)
    blocks = make_delayed_blocks(data, data.binary)
    one_part = learner.fit(blocks)
    expected = {
        "parts": one_part.n_parts_,
        "objective": one_part.objective_,
        "line": one_part.traffic_.get("line"),
    }
    monkeypatch.setattr(gathered_blocks, "_LARGE_PART_ROWS", 0)
    monkeypatch.setattr(gathered_blocks, "_LARGE_PART_ENTRIES_PER_COLUMN", 0)
    several = learner.fit(blocks)
    assert (expected["parts"], several.n_parts_) == (3, 12)
    assert several.objective_ == pytest.approx(expected["objective"], rel=1e-9)
    assert several.traffic_.get("line") == expected["line"]


@pytest.mark.parametrize("grouped", slow_after(1, [True, False]))
def test_rankings_in_several_parts(
    client: Any, data: Any, grouped: bool, small_parts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unkernel.distributed.cutplane.risks._MAX_SCORED_ROWS", 0)
    group_columns = [data.groups] if grouped else []
    several = DaskRankSVM(0.03, tol=TOL, client=client).fit(
        make_delayed_blocks(data, data.ranks, *group_columns)
    )
    monkeypatch.setattr(DaskRankSVM, "_max_parts_per_worker", 1)
    one_part = DaskRankSVM(0.03, tol=TOL, client=client).fit(
        make_delayed_blocks(data, data.ranks, *group_columns)
    )
    assert (one_part.n_parts_, several.n_parts_) == (3, 12)
    assert several.objective_ == pytest.approx(one_part.objective_, rel=2 * TOL)


def test_rows_of_the_client_become_several_parts_if_they_are_many(
    client: Any, data: Any, small_parts: None
) -> None:
    assert DaskCuttingPlaneSVC(0.03, client=client).fit(data.X, data.binary).n_parts_ == 12


def test_parts_with_weights_and_without_are_not_joined(client: Any, data: Any) -> None:
    weighted = [dask.delayed((data.X, data.binary, None, np.ones(600))) for _ in range(4)]
    blocks = [*make_delayed_blocks(data, data.binary, count=8), *weighted]
    distributed = DaskCuttingPlaneSVC(0.03, tol=TOL, client=client).fit(blocks)
    assert distributed.gap_ <= TOL


@pytest.mark.parametrize(
    ("learner", "form"),
    slow_after(
        3,
        [
            (DaskCuttingPlaneSVC, "files"),
            (DaskPolySVC, "sparse"),
            (DaskRankSVM, "dense"),
            (DaskCuttingPlaneSVC, "dense"),
            (DaskCuttingPlaneSVC, "sparse"),
            (DaskPolySVC, "dense"),
            (DaskPolySVC, "files"),
            (DaskRankSVM, "sparse"),
            (DaskRankSVM, "files"),
        ],
    ),
)
def test_blocks_of_different_widths(client: Any, data: Any, learner: Any, form: str, tmp_path: Path) -> None:
    """Columns that a block does not have are 0 in its rows."""
    X, labels, widths = data.X.toarray()[:200], data.classes[:200], [10, 60, 3, 25]
    rows = np.array_split(np.arange(200), 4)
    for some, width in zip(rows, widths, strict=True):
        X[some, width:] = 0.0
    pieces = [(X[some, :width], labels[some]) for some, width in zip(rows, widths, strict=True)]
    if form == "files":
        for number, (part, y) in enumerate(pieces):
            write_svmlight(tmp_path / f"part-{number}.svm", part, y)
        inputs: Any = str(tmp_path / "part-*.svm")
    else:
        shaped = [(sparse.csr_matrix(part) if form == "sparse" else part, y) for part, y in pieces]
        inputs = [dask.delayed(block) for block in shaped]
    distributed = learner(tol=TOL, client=client).fit(inputs)
    on_one_block = learner(tol=TOL, client=client).fit(X, labels)
    assert distributed.n_features_in_ == 60
    assert distributed.objective_ == pytest.approx(on_one_block.objective_, rel=2 * TOL)
    with pytest.raises(ValueError, match="features"):
        distributed.decision_function(X[:, :59])


# --- Placement of parts -------------------------------------------------------------------------------------


def test_things_are_dealt_out_in_order_and_evenly() -> None:
    assert assign_evenly([1.0] * 6, 3) == [0, 0, 1, 1, 2, 2]
    assert assign_evenly([4.0, 1.0, 1.0, 1.0, 1.0], 2) == [0, 1, 1, 1, 1]
    assert assign_evenly([1.0, 1.0], 5) == [1, 3]
    assert assign_evenly([5.0], 1) == [0]


def test_parts_move_to_workers_that_have_less_to_do() -> None:
    addresses = ["a"] * 4 + ["b"] * 4
    assert plan_moves(addresses, [1] * 8, {"a": 1, "b": 1}) == {}
    moves = plan_moves(addresses, [1] * 8, {"a": 1, "b": 1, "c": 1})
    assert set(moves.values()) == {"c"}
    assert len(moves) == 2
    assert {addresses[k] for k in moves} == {"a", "b"}
    # A single part cannot be shared; moving it would only make the other worker idle.
    assert plan_moves(["a"], [1], {"a": 1, "b": 1}) == {}
    assert plan_moves(["a", "a", "b"], [1, 1, 1], {"a": 1, "b": 1}) == {}
    # Threads count.
    moves = plan_moves(["a"] * 6, [1] * 6, {"a": 1, "b": 2})
    assert len(moves) == 4
    # Moves the largest part that fits.
    assert plan_moves(["a"] * 3, [5, 3, 1], {"a": 1, "b": 1}) == {0: "b"}


@pytest.fixture
def growing() -> Iterator[tuple[Any, Any]]:
    """Yield a cluster of one worker; a second worker can join."""
    options = {"processes": False, "n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options) as workers, Client(workers, set_as_default=False) as client:
        yield workers, client


def test_a_worker_that_joins_gets_its_share(
    growing: Any, data: Any, small_parts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers, client = growing
    monkeypatch.setattr(part_placement, "_BALANCE_INTERVAL_SECONDS", 0.0)
    clusters: list[Cluster] = []
    aim = GroupRisk.aim

    def joining(self: Any, weights: Any) -> None:
        clusters.append(self._cluster)
        if len(clusters) == 4:
            workers.scale(2)
            client.wait_for_workers(2)
        aim(self, weights)

    monkeypatch.setattr(GroupRisk, "aim", joining)
    distributed = DaskCuttingPlaneSVC(0.03, tol=TOL, client=client).fit(
        make_delayed_blocks(data, data.binary)
    )
    addresses = clusters[-1].addresses
    assert sorted(addresses.count(worker) for worker in set(addresses)) == [2, 2]
    assert distributed.traffic_["restored"] > 0
    assert distributed.n_recoveries_ == 0
    without_joining = DaskCuttingPlaneSVC(0.03, tol=TOL, client=client).fit(
        make_delayed_blocks(data, data.binary)
    )
    assert distributed.objective_ == pytest.approx(without_joining.objective_, rel=2 * TOL)


def test_blocks_that_are_all_on_one_worker_are_shared(
    client: Any, data: Any, small_parts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_placement, "_BALANCE_INTERVAL_SECONDS", 0.0)
    clusters: list[Cluster] = []
    aim = GroupRisk.aim
    monkeypatch.setattr(
        GroupRisk, "aim", lambda self, weights: (clusters.append(self._cluster), aim(self, weights))[1]
    )
    worker = min(client.nthreads())
    blocks = client.compute(make_delayed_blocks(data, data.binary), workers=[worker])
    wait(blocks)
    distributed = DaskCuttingPlaneSVC(0.03, tol=TOL, client=client).fit(blocks)
    addresses = clusters[-1].addresses
    assert sorted(addresses.count(worker) for worker in set(addresses)) == [1, 1, 2]
    assert distributed.gap_ <= TOL


# --- Checkpoints -------------------------------------------------------------------------------------------


def test_fingerprints_are_of_rows_not_of_their_order(data: Any) -> None:
    all_rows = make_block(data.X, data.binary, data.groups, data.weights)

    def select(rows: Any) -> Any:
        return make_block(data.X[rows], data.binary[rows], data.groups[rows], data.weights[rows])

    expected = fingerprint(all_rows)
    halves = [select(np.arange(599, 200, -1)), select(np.arange(201))]
    assert sum(map(fingerprint, halves)) % 2**64 == expected
    changed = data.X.copy()
    changed.data[17] += 1e-12
    different = [
        replace(all_rows, X=changed),
        replace(all_rows, y=all_rows.y[::-1]),
        replace(all_rows, y=data.classes),
        replace(all_rows, qid=all_rows.qid + 1),
        replace(all_rows, weights=all_rows.weights + 1.0),
        replace(all_rows, weights=None),
        replace(all_rows, first_index=1),
        select(np.arange(599)),
    ]
    assert len({expected, *map(fingerprint, different)}) == 1 + len(different)


@pytest.mark.parametrize("learner", slow_after(1, [DaskRankSVM, DaskCuttingPlaneSVC]))
def test_a_checkpoint_is_used_on_another_cluster(
    client: Any, growing: Any, data: Any, learner: Any, tmp_path: Path
) -> None:
    options = {"C": 0.3, "tol": TOL, "checkpoint": tmp_path / "kept"}
    with pytest.warns(ConvergenceWarning):
        learner(**options, max_iter=3, client=client).fit(data.X, data.ranks)
    restored: list[Any] = []
    restore = Checkpoint.restore
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unkernel.distributed.cutplane.risks._MAX_SCORED_ROWS", 0)  # other parts may be larger
        patch.setattr(
            Checkpoint, "restore", lambda *arguments: restored.append(restore(*arguments)) or restored[-1]
        )
        distributed = learner(**options, client=growing[1]).fit(data.X, data.ranks)
    assert distributed.gap_ <= TOL
    assert restored
    assert {rounds for _, rounds in restored} == {3}
