"""Training continues with the same result when a worker is lost."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from reference.lost_workers import continue_workers, kill_a_worker
from reference.processes import run_program, run_python
from unkernel import CuttingPlaneSVC, RankSVM
from unkernel.distributed import DaskCuttingPlaneSVC, DaskRankSVM
from unkernel.distributed.cluster import coordinator, part_placement, workers
from unkernel.distributed.cluster.packed_vectors import pack_vector
from unkernel.distributed.cluster.row_blocks import make_block
from unkernel.distributed.cluster.row_parts import Packing, Part
from unkernel.distributed.cutplane.risks import GroupRisk, PairRisk, SeparableRisk
from unkernel.distributed.cutplane.round_tasks import (
    Problem,
    Round,
    compute_cut_at_step,
    restore_scores,
    tabulate_losses,
)

pytestmark = pytest.mark.hostile

TOL = 1e-3


@pytest.fixture
def asked_by_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send requests as tasks, which the client does if there are many columns or parts."""
    monkeypatch.setattr("unkernel.distributed.cluster.coordinator._MAX_BYTES_BY_CLIENT", 0)


@pytest.mark.parametrize("by_client", [0, 1 << 23])
@pytest.mark.parametrize("when", ["aim", "cut"])
def test_a_killed_worker(
    process_client: Any, data: Any, when: str, by_client: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unkernel.distributed.cluster.coordinator._MAX_BYTES_BY_CLIENT", by_client)
    killing = kill_a_worker(process_client, 5)
    monkeypatch.setattr(SeparableRisk, when, killing(getattr(SeparableRisk, when)))
    distributed = DaskCuttingPlaneSVC(tol=TOL, C=0.03, client=process_client).fit(data.X, data.binary)
    local = CuttingPlaneSVC(tol=TOL, C=0.03).fit(data.X, data.binary)
    assert distributed.n_recoveries_ >= 1
    assert distributed.traffic_["restored"] > 0
    assert distributed.gap_ <= TOL
    assert distributed.objective_ == pytest.approx(local.objective_, rel=2 * TOL)


@pytest.mark.parametrize("when", ["aim", "cut"])
@pytest.mark.parametrize("risk", [PairRisk, GroupRisk])
def test_a_killed_worker_while_ranking(
    process_client: Any, data: Any, risk: Any, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unkernel.distributed.cutplane.risks._MAX_SCORED_ROWS", 0)
    killing = kill_a_worker(process_client, 3)
    monkeypatch.setattr(risk, when, killing(getattr(risk, when)))
    groups = data.groups if risk is GroupRisk else None
    distributed = DaskRankSVM(tol=TOL, C=0.03, client=process_client).fit(data.X, data.ranks, groups)
    local = RankSVM(tol=TOL, C=0.03).fit(data.X, data.ranks, groups)
    assert distributed.n_recoveries_ >= 1
    assert distributed.traffic_["restored"] > 0
    assert distributed.gap_ <= TOL
    assert distributed.objective_ == pytest.approx(local.objective_, rel=2 * TOL)


def test_a_worker_that_is_killed_between_its_answer_and_the_transfer(
    process_client: Any, asked_by_tasks: None, data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_FIRST_FETCH_SECONDS", 0.5)
    wait_until_done = coordinator.wait_until_done
    calls = 0

    def killing_when_finished(client: Any, futures: Any, timeout: float) -> bool:
        nonlocal calls
        is_done = wait_until_done(client, futures, timeout)
        calls += is_done
        if is_done and calls == 4:
            place = min(process_client.who_has(futures)[futures[-1].key])
            os.kill(process_client.run(os.getpid, workers=[place])[place], signal.SIGKILL)
        return is_done

    monkeypatch.setattr(coordinator, "wait_until_done", killing_when_finished)
    distributed = DaskCuttingPlaneSVC(tol=TOL, C=0.03, client=process_client).fit(data.X, data.binary)
    assert distributed.n_recoveries_ >= 1
    assert distributed.gap_ <= TOL


def test_cancelled_tasks_are_submitted_again(
    process_client: Any, asked_by_tasks: None, data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch = workers.fetch
    calls = 0

    def cancelling(client: Any, futures: Any) -> Any:
        nonlocal calls
        calls += 1
        fetched = fetch(client, futures)
        if calls == 5:  # the first fetches the surveys
            fetched.cancel()
        return fetched

    monkeypatch.setattr(workers, "fetch", cancelling)
    distributed = DaskCuttingPlaneSVC(tol=TOL, C=0.03, client=process_client).fit(data.X, data.binary)
    assert distributed.n_recoveries_ == 1
    assert distributed.gap_ <= TOL


@pytest.mark.parametrize("by_client", [0, 1 << 23])
@pytest.mark.parametrize("when", ["aim", "cut"])
def test_a_worker_that_is_stopped_is_replaced(
    process_client: Any, data: Any, when: str, by_client: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stopped process does not end and does not answer; the client notices its silence."""
    monkeypatch.setattr(coordinator, "_MAX_BYTES_BY_CLIENT", by_client)
    if when == "aim":
        monkeypatch.setattr(workers, "_MAX_SILENCE_SECONDS", 3.0)
    else:
        monkeypatch.setattr(part_placement, "_LATE_SECONDS", 1.0)
    stopping = kill_a_worker(process_client, 5, signal.SIGSTOP)
    monkeypatch.setattr(SeparableRisk, when, stopping(getattr(SeparableRisk, when)))
    try:
        distributed = DaskCuttingPlaneSVC(tol=TOL, C=0.03, client=process_client).fit(data.X, data.binary)
    finally:
        continue_workers(process_client)
    local = CuttingPlaneSVC(tol=TOL, C=0.03).fit(data.X, data.binary)
    assert distributed.n_recoveries_ >= 1
    assert distributed.traffic_["restored"] > 0
    assert distributed.objective_ == pytest.approx(local.objective_, rel=2 * TOL)


# --- Without a cluster: tasks that run twice, late, or on a rebuilt part ------------------------------------


def new_part(data: Any) -> Part:
    return Part([make_block(data.X, data.binary)], Packing(0, 0, 60, 1.0, 1))


def answer(part: Part, task: Callable[..., Any], *arguments: Any) -> np.ndarray:
    result = task(part, *arguments).vector
    assert result is not None
    return np.asarray(result.unpack())


def test_repeated_tasks_do_not_change_results(data: Any) -> None:
    generator = np.random.default_rng(1)
    problem = Problem("p", np.array(["no", "yes"]), 1, np.ones(2), squared=True)
    first_weights, second_weights = (pack_vector(generator.normal(size=61)) for _ in range(2))
    rounds = Round(problem, 1, 0.0), Round(problem, 2, 0.25)
    steady, shaken, lost = new_part(data), new_part(data), new_part(data)
    for part, repeats in ((steady, 1), (shaken, 2)):
        for training_round, weights in zip(rounds, (first_weights, second_weights), strict=True):
            for _ in range(repeats):
                answer(part, tabulate_losses, training_round, weights)
                answer(part, compute_cut_at_step, training_round, 0.5)
    expected = (
        answer(steady, tabulate_losses, rounds[1], second_weights),
        answer(steady, compute_cut_at_step, rounds[1], 0.3),
    )
    np.testing.assert_array_equal(answer(shaken, tabulate_losses, rounds[1], second_weights), expected[0])
    np.testing.assert_allclose(answer(shaken, compute_cut_at_step, rounds[1], 0.3), expected[1], atol=1e-9)

    assert tabulate_losses(lost, rounds[1], second_weights).unprepared == (0,)
    assert compute_cut_at_step(lost, rounds[1], 0.3).unprepared == (0,)
    restored_weights = pack_vector(0.25 * first_weights.unpack())
    restore_scores(lost, rounds[1], restored_weights, second_weights)
    np.testing.assert_allclose(
        answer(lost, tabulate_losses, rounds[1], second_weights), expected[0], atol=1e-8
    )
    np.testing.assert_allclose(answer(lost, compute_cut_at_step, rounds[1], 0.3), expected[1], atol=1e-9)
    # A late task of the previous round is answered with "unprepared", not with a wrong sum.
    assert tabulate_losses(lost, Round(problem, 2, 0.25), second_weights).unprepared == ()
    assert compute_cut_at_step(lost, rounds[0], 0.3).unprepared == (0,)
    other_problem = Problem("q", problem.classes, 0, np.ones(2), squared=True)
    assert compute_cut_at_step(lost, Round(other_problem, 2, 0.25), 0.3).unprepared == (0,)


INTERRUPTED = """
    import signal, os
    import numpy as np
    from dask.distributed import Client
    from unkernel.distributed import DaskCuttingPlaneSVC

    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(400, 50)), generator.integers(0, 2, 400)
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0"):
        learner = DaskCuttingPlaneSVC(C=100.0, tol=1e-12, max_iter=10**6)
        presses = iter([lambda: os.kill(os.getpid(), signal.SIGINT)])
        press = lambda _progress: next(presses, int)()
        try:
            learner.fit_reporting(X, y, None, on_progress=press)
        except KeyboardInterrupt:
            print("stopped")
"""


def test_ctrl_c_stops() -> None:
    assert "stopped" in run_program(INTERRUPTED)


def test_errors_without_dask_say_what_to_install() -> None:
    code = "import sys; sys.modules['dask'] = None; import unkernel.distributed"
    assert 'pip install "unkernel[dask]"' in run_python(code).stderr
