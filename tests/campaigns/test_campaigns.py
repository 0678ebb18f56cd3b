"""Short versions of the campaigns: few kills, at the same moments in every run."""

from __future__ import annotations

import os
import sys
import textwrap

import pytest

from reference.processes import run_python

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the campaigns need Linux"),
    pytest.mark.hostile,
]


def check_in_a_process_of_its_own(program: str, *arguments: object, **settings: str) -> None:
    """Run a campaign in a process without threads, so that it may fork."""
    paths = f"import sys; sys.path[:0] = {[path for path in sys.path if path]}\n"
    completed = run_python(paths + textwrap.dedent(program), *arguments, env=os.environ | settings)
    assert completed.returncode == 0, completed.stderr[-3000:]


KILLS = """
    import sys
    from pathlib import Path
    from campaigns.children import AtByte, BeforeEvent
    from campaigns.kills import Trial
    from campaigns.tasks import TASKS

    for name, task in TASKS.items():
        if task.slow:
            continue
        trial = Trial(task, Path(sys.argv[1]) / name)
        events = trial.events()
        trial.round([BeforeEvent(2), AtByte(trial.largest // 2)])
        trial.round([BeforeEvent(events // 2 + 1)])
        trial.round([BeforeEvent(events)])
        assert trial.kills.total() == 4, trial.kills
"""


def test_after_a_kill_every_file_is_old_or_new(tmp_path):
    check_in_a_process_of_its_own(KILLS, tmp_path)


FULL_DISKS = """
    import sys
    from pathlib import Path
    from campaigns.children import FailedFlush, FullDisk
    from campaigns.disks import check_full_disk
    from campaigns.kills import Trial
    from campaigns.tasks import TASKS

    for name, task in TASKS.items():
        if task.slow:
            continue
        trial = Trial(task, Path(sys.argv[1]) / name)
        sizes = (0, trial.largest // 2, trial.largest - 1)
        for moment in [*map(FullDisk, sizes), FailedFlush(1)]:
            assert check_full_disk(trial, moment), (name, moment)
"""


def test_a_full_disk_leaves_old_files_unchanged(tmp_path):
    check_in_a_process_of_its_own(FULL_DISKS, tmp_path)


def test_several_processes_save_at_once(tmp_path):
    program = """
        import sys
        from pathlib import Path
        from campaigns.disks import save_in_processes
        save_in_processes(Path(sys.argv[1]), 20)
    """
    check_in_a_process_of_its_own(program, tmp_path)


def test_ten_threads_share_one_model():
    check_in_a_process_of_its_own("from campaigns.threads import run_in_threads; run_in_threads(3)")


@pytest.mark.parametrize(
    "start_method",
    ["fork", "spawn", *(pytest.param(name, marks=pytest.mark.slow) for name in ("forkserver", "loky"))],
)
def test_processes_start_while_threads_are_busy(start_method):
    program = """
        import sys
        from campaigns.threads import run_in_processes
        if __name__ == "__main__":
            run_in_processes(sys.argv[1], 2)
    """
    check_in_a_process_of_its_own(program, start_method)


@pytest.mark.slow
@pytest.mark.skipif("UNKERNEL_SANITIZER" in os.environ, reason="sanitizers need address space of their own")
def test_memory_budgets_hold():
    program = "from campaigns.memory import run_campaign; sys.exit(run_campaign(0.5))"
    check_in_a_process_of_its_own(program, MALLOC_ARENA_MAX="1")
