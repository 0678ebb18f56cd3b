"""Full disks, read-only folders, and several processes that save at the same time.

    python -m campaigns.disks --sizes 200 --saves 500

A task that cannot write must end with an error that names the file, leave the older version of every output
unchanged, and leave no new file; with space again, it must succeed. If several processes save to one file
while others load it, every load must find one of their models, complete.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from campaigns.children import Ended, FailedFlush, FullDisk, Moment, run, start
from campaigns.kills import Trial
from campaigns.tasks import TASKS, copy_folder, make_rows, names
from unkernel import CuttingPlaneSVC, load


def check_refused(trial: Trial, folder: Path, ended: Ended) -> None:
    """Check that the error names a file, and that no file changed except checkpoints."""
    assert ended.code > 0, f"ended with {ended.code}: {ended.last_line}"
    assert any(name.split("/")[0] in ended.said for name in names(folder)), (
        f"no file is named: {ended.last_line}"
    )
    for name in trial.task.outputs:
        assert (folder / name).read_bytes() == (trial.place / "old" / name).read_bytes(), (
            f"{name} has changed"
        )
    new_files = {
        name
        for name in names(folder) - names(trial.place / "new")
        if Path(name).parts[0] not in trial.task.passing
    }
    assert not new_files, f"{sorted(new_files)} left"


def check_full_disk(trial: Trial, moment: Moment) -> bool:
    """Return whether the work failed; with enough free bytes, it succeeds."""
    folder = copy_folder(trial.place / "old", trial.place / "now")
    ended = run(trial.task.work, folder, moment)
    if ended.code == 0:
        return False
    check_refused(trial, folder, ended)
    check_ends_well(trial, folder)
    return True


def check_ends_well(trial: Trial, folder: Path) -> None:
    ended = run(trial.task.work, folder)
    assert ended.code == 0, ended.last_line
    for name in trial.task.outputs:
        assert trial.task.alike(folder / name, trial.place / "new" / name), name
    assert names(folder) == names(trial.place / "new")


@contextmanager
def small_disk(place: Path, size: int) -> Iterator[Path]:
    """Yield a file system of a few pages in memory; only root can mount it."""
    place.mkdir(exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={size}", "none", str(place))
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


def can_mount() -> bool:
    try:
        with tempfile.TemporaryDirectory() as place, small_disk(Path(place), 4096):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def check_real_full_disk(trial: Trial, pages: int) -> bool:
    """Check a full disk like `check_full_disk`, on a file system with a number of free pages."""
    used = sum(
        -(-(trial.place / "old" / name).stat().st_size // 4096) + 1 for name in names(trial.place / "old")
    )
    with small_disk(trial.place / "disk", 4096 * (used + pages + 1)) as disk:
        folder = copy_folder(trial.place / "old", disk / "now")
        ended = run(trial.task.work, folder)
        if ended.code == 0:
            return False
        assert "No space left" in ended.said, ended.last_line
        check_refused(trial, folder, ended)
    return True


def check_read_only_disk(trial: Trial) -> None:
    with small_disk(trial.place / "disk", 1 << 24) as disk:
        folder = copy_folder(trial.place / "old", disk / "now")
        _mount("-o", "remount,ro", str(disk))
        check_refused(trial, folder, run(trial.task.work, folder))


def check_read_only_folder(trial: Trial) -> None:
    """Check a read-only folder; for root, no folder is read-only."""
    folder = copy_folder(trial.place / "old", trial.place / "now")
    folder.chmod(0o555)
    try:
        check_refused(trial, folder, run(trial.task.work, folder))
    finally:
        folder.chmod(0o755)
    check_ends_well(trial, folder)


def save_in_processes(place: Path, saves: int, savers: int = 3, loaders: int = 2) -> int:
    """Return how often a model was loaded while several processes saved to its file."""
    models = [CuttingPlaneSVC(C=0.1).fit(*make_rows(seed)) for seed in range(savers)]
    weights = [model.to_model().weights for model in models]
    path = place / "model.uk"
    models[0].save(path)

    def save(model: CuttingPlaneSVC) -> None:
        for _ in range(saves):
            model.save(path)

    def keep_loading() -> None:
        loads = 0
        while not (place / "stop").exists():
            result = np.array(load(path, verify=True).model.weights)
            assert any(np.array_equal(result, expected) for expected in weights), "a mixture of models"
            loads += 1
        print(loads)

    at_work = [start(lambda _, model=model: save(model), place) for model in models]
    at_load = [start(lambda _: keep_loading(), place) for _ in range(loaders)]
    for child in at_work:
        _check_ended(child.end())
    (place / "stop").touch()
    loads = sum(int(_check_ended(child.end())) for child in at_load)
    (place / "stop").unlink()
    assert names(place) == {"model.uk"}, names(place)
    return loads


def _check_ended(ended: Ended) -> str:
    assert ended.code == 0, ended.last_line
    return ended.said


def run_campaign(sizes: int, saves: int, seed: int) -> int:
    """Run all checks for all tasks; return how many failed."""
    rng, failures, mounts = random.Random(seed), 0, can_mount()
    with tempfile.TemporaryDirectory() as place:
        for name, task in TASKS.items():
            if task.slow:
                continue
            trial = Trial(task, Path(place).resolve() / name)
            checks = [
                partial(check_full_disk, trial, FullDisk(size)) for size in drawn_sizes(trial, sizes, rng)
            ]
            checks += [partial(check_full_disk, trial, FailedFlush(number)) for number in range(1, 4)]
            if os.getuid() != 0:
                checks += [partial(check_read_only_folder, trial)]
            if mounts:
                checks += [partial(check_read_only_disk, trial)]
                pages = range(min(sizes, trial.largest // 4096 + 2))
                checks += [partial(check_real_full_disk, trial, page) for page in pages]
            failed = [error for error in map(failure, checks) if error is not None]
            failures += len(failed)
            summary = f"{name}: {len(checks)} full or read-only disks, {len(failed)} failures"
            print(summary, *failed, sep="\n  ", flush=True)
        folder = Path(place) / "savers"
        folder.mkdir()
        loads = save_in_processes(folder, saves)
        print(f"3 savers at once, {saves} times each: {loads} loads, none mixed or damaged")
    return failures


def drawn_sizes(trial: Trial, count: int, rng: random.Random) -> list[int]:
    """Return sizes of disks: a few bytes, nearly enough bytes, and random sizes in between."""
    ends = [0, 1, 2, 100, trial.largest - 2, trial.largest - 1]
    return ends + [rng.randrange(trial.largest) for _ in range(count - len(ends))]


def failure(check: partial[object]) -> str | None:
    try:
        check()
    except AssertionError as error:
        return f"{check.func.__name__} {check.args[1:]}: {error}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", type=int, default=200, help="sizes at which each work meets a full disk")
    parser.add_argument("--saves", type=int, default=500, help="how often each of three processes saves")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    return run_campaign(options.sizes, options.saves, options.seed) > 0


if __name__ == "__main__":
    sys.exit(main())
