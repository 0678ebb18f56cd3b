"""Rankings on a cluster: pairs of different parts are counted on grids, and groups are gathered."""

from __future__ import annotations

import itertools
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from reference.rankings import listed_pairs, make_ranking, solve_pairs
from reference.selection import slow_after
from unkernel import RankSVM
from unkernel.distributed import DaskRankSVM
from unkernel.distributed.cluster.gathered_blocks import gather_blocks
from unkernel.distributed.cluster.regroup import gather_groups
from unkernel.distributed.cluster.row_sources import open_sources
from unkernel.distributed.cutplane import risks

TOL = 1e-3
C = 0.03  # few passes


@pytest.fixture
def count_on_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count rows on grids even if there are few."""
    monkeypatch.setattr("unkernel.distributed.cutplane.risks._MAX_SCORED_ROWS", 0)


def assert_equally_good(distributed: Any, local: Any) -> None:
    assert distributed.gap_ <= TOL
    assert distributed.objective_ == pytest.approx(local.objective_, rel=2 * TOL)
    assert "scores" not in distributed.traffic_


# --- Counts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weighted", "pair_weight"),
    slow_after(
        3,
        [
            (True, "uniform"),
            (False, {(4.0, 0.0): 2.0, (1.0, 0.0): 0.0}),
            (True, "ndcg"),
            (False, "uniform"),
            (True, {(4.0, 0.0): 2.0, (1.0, 0.0): 0.0}),
            (False, "ndcg"),
        ],
    ),
    ids=str,
)
def test_the_result_equals_local_training(
    client: Any, data: Any, count_on_grids: None, weighted: bool, pair_weight: Any
) -> None:
    weights = data.weights if weighted else None
    distributed = DaskRankSVM(C, tol=TOL, pair_weight=pair_weight).fit(data.X, data.ranks, None, weights)
    local = RankSVM(C, tol=TOL, pair_weight=pair_weight).fit(data.X, data.ranks, None, weights)
    assert_equally_good(distributed, local)
    np.testing.assert_array_equal(distributed.ranks_, local.ranks_)
    assert distributed.score(data.X, data.ranks) == pytest.approx(local.score(data.X, data.ranks), abs=0.01)


@pytest.mark.parametrize(("large_C", "shift"), [(0.1, 0.0), (1.0, 1000.0)])
def test_the_objective_equals_the_sum_over_all_pairs(
    client: Any, count_on_grids: None, large_C: float, shift: float
) -> None:
    """The objective depends on differences of scores only, also for scores far from 0."""
    X, y, _ = make_ranking(3)
    distributed = DaskRankSVM(large_C, tol=1e-4).fit(np.c_[X, np.full(len(X), shift)], y)
    minimum = solve_pairs(X, large_C, *listed_pairs(y))
    assert distributed.gap_ <= 1e-4
    assert minimum * (1 - 1e-6) <= distributed.objective_ <= minimum * (1 + 2e-4)


def test_counts_do_not_grow_with_the_rows(
    client: Any, data: Any, count_on_grids: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The grid has rows in all of its cells."""
    monkeypatch.setattr(risks, "_INNER_WIDTH", 1.0)
    monkeypatch.setattr(risks, "_MAX_FIRST_CELLS", 8)
    monkeypatch.setattr(risks, "_MAX_ENTRIES", 0)
    sent = []
    for times in (1, 3):
        X, y = np.tile(data.X.toarray(), (times, 1)), np.tile(data.ranks, times)
        with pytest.warns(ConvergenceWarning):
            ranker = DaskRankSVM(C / times, max_iter=3).fit(X, y)
        assert ranker.n_parts_ == 3
        assert "scores" not in ranker.traffic_
        sent.append(ranker.traffic_["counts"])
    assert sent[1] < 1.2 * sent[0]


def test_a_pass_sends_few_requests(
    client: Any, data: Any, count_on_grids: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    purposes: list[str] = []
    ask = risks.PairRisk._ask

    def noting(self: Any, task: Any, arguments: Any, purpose: str) -> Any:
        purposes.append(purpose)
        return ask(self, task, arguments, purpose)

    monkeypatch.setattr(risks.PairRisk, "_ask", noting)
    ranker = DaskRankSVM(1.0, tol=TOL).fit(data.X, data.ranks)
    assert ranker.gap_ <= TOL
    assert purposes.count("gradient") == ranker.n_iter_ + 1
    assert purposes.count("counts") <= 2 * purposes.count("gradient")  # and one in most of many passes


def test_grids_become_wider_and_finer(
    client: Any, data: Any, count_on_grids: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(risks, "_INNER_WIDTH", 0.01)
    monkeypatch.setattr(risks, "_MAX_FIRST_CELLS", 2)
    monkeypatch.setattr(risks, "_MIN_LEVELS", 1)
    grid_sizes: set[tuple[int, int]] = set()
    grid_at = risks.PairRisk._make_grid

    def noting(self: Any, step: float) -> Any:
        grid = grid_at(self, step)
        grid_sizes.add((grid.cells, grid.levels))
        return grid

    monkeypatch.setattr(risks.PairRisk, "_make_grid", noting)
    distributed = DaskRankSVM(C, tol=TOL).fit(data.X, data.ranks)
    assert_equally_good(distributed, RankSVM(C, tol=TOL).fit(data.X, data.ranks))
    assert max(cells for cells, _ in grid_sizes) > 2
    assert {levels for _, levels in grid_sizes} > {1, 2, 4}


def test_gaps_that_counts_of_scores_cannot_reach_warn(
    client: Any, data: Any, count_on_grids: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(risks, "_MAX_ENTRIES", 0)
    monkeypatch.setattr(risks, "_MAX_FIRST_CELLS", 16)
    with pytest.warns(ConvergenceWarning, match="counts of scores"):
        distributed = DaskRankSVM(1.0, tol=1e-6, max_iter=6).fit(data.X, data.ranks)
    local = RankSVM(1.0, tol=1e-4).fit(data.X, data.ranks)
    assert distributed.gap_ > 1e-6
    # The objective is an upper bound of the minimum, and the bound a lower one.
    assert (
        distributed.objective_ * (1 - distributed.gap_)
        <= local.objective_
        <= distributed.objective_ * (1 + 1e-4)
    )


def test_scores_that_are_not_finite() -> None:
    risk = object.__new__(risks.PairRisk)
    risk._levels = 1000
    with pytest.raises(ValueError, match="not finite"):
        risk._widen()


def test_labels_without_pairs_are_refused(client: Any, data: Any, count_on_grids: None) -> None:
    for groups in (None, np.arange(600)):
        ranks = np.ones(600) if groups is None else data.ranks
        with pytest.raises(ValueError, match="no pair to order"):
            DaskRankSVM().fit(data.X, ranks, groups)


def test_few_rows_are_gathered(client: Any, data: Any) -> None:
    ranker = DaskRankSVM(C).fit(data.X, data.ranks)
    assert ranker.traffic_["scores"] == 8 * 600 * ranker.n_iter_


def test_too_many_labels_to_count_warn(
    client: Any, data: Any, count_on_grids: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unkernel.distributed.cutplane.rank._MAX_COUNTED_RANKS", 4)
    with pytest.warns(UserWarning, match="there are 5 labels"):
        ranker = DaskRankSVM(C, tol=TOL).fit(data.X, data.ranks)
    assert ranker.traffic_["scores"] == 8 * 600 * ranker.n_iter_


def test_warm_start_and_path_when_pairs_are_counted_on_grids(
    client: Any, data: Any, count_on_grids: None
) -> None:
    distributed = DaskRankSVM(C, tol=TOL, warm_start=True).fit(data.X, data.ranks)
    cold_iterations = distributed.n_iter_
    assert distributed.fit(data.X, data.ranks).n_iter_ <= cold_iterations
    Cs = [0.01, 0.1]
    paths = zip(
        DaskRankSVM(tol=TOL).path(data.X, data.ranks, Cs),
        RankSVM(tol=TOL).path(data.X, data.ranks, Cs),
        strict=True,
    )
    for actual, expected in paths:
        assert_equally_good(actual, expected)


@pytest.mark.parametrize("grouped", slow_after(1, [True, False]))
def test_a_checkpoint(client: Any, data: Any, count_on_grids: None, tmp_path: Any, grouped: bool) -> None:
    options: dict[str, Any] = {"C": C, "tol": TOL, "checkpoint": tmp_path / "kept"}
    groups = data.groups if grouped else None
    with pytest.warns(ConvergenceWarning):
        DaskRankSVM(**options, max_iter=2).fit(data.X, data.ranks, groups)
    with pytest.raises(ValueError, match="other rows"):
        DaskRankSVM(**options, pair_weight={(4.0, 0.0): 2.0}).fit(data.X, data.ranks, groups)
    distributed = DaskRankSVM(**options).fit(data.X, data.ranks, groups)
    assert_equally_good(distributed, RankSVM(C, tol=TOL).fit(data.X, data.ranks, groups))


# --- Groups ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("pair_weight", slow_after(1, ["ndcg", "uniform", {(4.0, 0.0): 2.0}]), ids=str)
def test_groups(client: Any, data: Any, weighted: bool, pair_weight: Any) -> None:
    weights = data.weights if weighted else None
    distributed = DaskRankSVM(C, tol=TOL, pair_weight=pair_weight).fit(
        data.X, data.ranks, data.groups, weights
    )
    local = RankSVM(C, tol=TOL, pair_weight=pair_weight).fit(data.X, data.ranks, data.groups, weights)
    assert_equally_good(distributed, local)


def test_the_objective_equals_the_sum_over_all_pairs_in_groups(client: Any) -> None:
    X, y, qid = make_ranking(5, groups=6)
    distributed = DaskRankSVM(1.0, tol=1e-5).fit(X, y, qid)
    assert distributed.objective_ == pytest.approx(solve_pairs(X, 1.0, *listed_pairs(y, qid)), rel=2e-5)


@pytest.mark.parametrize("kind", ["text", "dask array", "one part has no pair"])
def test_groups_of_any_kind(client: Any, data: Any, kind: str) -> None:
    groups: Any = data.groups
    X: Any = data.X
    match kind:
        case "text":
            groups = np.array([f"query {group}" for group in groups])
        case "dask array":
            X, groups = da.from_array(X.toarray(), chunks=(90, 60)), da.from_array(groups, chunks=90)
        case _:
            groups = np.r_[np.arange(1000, 1250), data.groups[250:]]  # the first 250 rows have a group each
    distributed = DaskRankSVM(C, tol=TOL).fit(X, data.ranks, groups)
    message = np.asarray(groups.compute() if kind == "dask array" else groups)
    assert_equally_good(distributed, RankSVM(C, tol=TOL).fit(data.X, data.ranks, message))


def test_groups_are_gathered_by_moving_few_rows(client: Any, data: Any) -> None:
    """Of sorted groups, only those at the boundary of two parts are divided, so few rows move."""
    groups = np.sort(data.groups)
    bounds = [0, 130, 307, 451, 600]
    blocks = [
        dask.delayed((data.X[a:b], data.ranks[a:b], groups[a:b], data.weights[a:b]))
        for a, b in itertools.pairwise(bounds)
    ]
    actual = gather_blocks(client, open_sources(client, blocks, {"y": None}), False)
    moved = gather_groups(actual)
    old_parts, new_parts = (client.gather(gathered.blocks) for gathered in (actual, moved))
    of_part = [np.concatenate([block.qid for block in part]) for part in new_parts]
    for groups_of_part, groups_of_other_part in itertools.combinations(of_part, 2):
        assert not set(groups_of_part) & set(groups_of_other_part)
    assert [survey.rows for survey in moved.surveys] == [len(part) for part in of_part]
    stayed = sum(
        len(set(_list_rows(part)) & set(_list_rows(old_part)))
        for part, old_part in zip(old_parts, new_parts, strict=True)
    )
    everything = sorted(itertools.chain.from_iterable(map(_list_rows, new_parts)))
    assert everything == sorted(itertools.chain.from_iterable(map(_list_rows, old_parts)))
    assert 600 - 3 * 15 < stayed < 600


def _list_rows(blocks: Any) -> list[tuple[float, ...]]:
    """Return each row with its label, group and weight, for comparisons."""
    return [
        (*row, label, group, weight)
        for block in blocks
        for row, label, group, weight in zip(
            block.X.to_scipy().toarray().tolist(), block.y, block.qid, block.weights, strict=True
        )
    ]


def test_gathering_groups_leaves_no_empty_part(client: Any, data: Any) -> None:
    """If all rows are of one group, they move to one part, and the empty parts are removed."""
    distributed = DaskRankSVM(C, tol=TOL).fit(data.X, data.ranks, np.zeros(600))
    assert distributed.n_parts_ == 1
    assert_equally_good(distributed, RankSVM(C, tol=TOL).fit(data.X, data.ranks))


def test_groups_without_a_name_are_refused(client: Any, data: Any) -> None:
    groups = data.groups.astype(float)
    groups[7] = np.nan
    with pytest.raises(ValueError, match="qid has missing values"):
        DaskRankSVM().fit(data.X, data.ranks, groups)


def test_text_has_no_order_to_learn(client: Any, data: Any) -> None:
    with pytest.raises(ValueError, match="must be numeric, so that it has an order"):
        DaskRankSVM(client=client).fit(data.X, np.where(data.ranks > 1, "high", "low"))
