"""Killed tasks: every file is either old or new, and the next run cleans up.

    python -m campaigns.kills --kills 1000 --seed 1

Each round kills a task once or several times, and checks that every output is the complete old or new
version. Then the task runs to its end: its outputs must equal the outputs of an undisturbed run, and no other
file may remain, not even a temporary file. Kills are at a random time, at a random file system event, or when
a file reaches a random size, in the middle of a write.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from campaigns.children import AfterSeconds, AtByte, BeforeEvent, Moment, count_events, run
from campaigns.tasks import TASKS, Task, copy_folder, names


@dataclass
class Trial:
    """A task in its own folder, its outputs without a kill, and the results so far."""

    task: Task
    place: Path
    kills: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        (self.place / "old").mkdir(parents=True)
        self.task.prepare(self.place / "old")
        copy_folder(self.place / "old", self.place / "new")
        began = time.perf_counter()
        ended = run(self.task.work, self.place / "new")
        self.seconds = time.perf_counter() - began
        assert ended.code == 0, ended.last_line
        self.largest = max((self.place / "new" / name).stat().st_size for name in self.task.outputs)

    def events(self) -> int:
        return count_events(self.task.work, copy_folder(self.place / "old", self.place / "now"))

    def round(self, moments: Iterable[Moment]) -> None:
        """Kill the task at each moment in turn, in one folder, then let it end. Raises AssertionError."""
        folder = copy_folder(self.place / "old", self.place / "now")
        for moment in moments:
            ended = run(self.task.work, folder, moment)
            assert ended.killed or ended.code == 0, f"{moment}: {ended.last_line}"
            self.kills[type(moment).__name__] += ended.killed
            self._check_whole(folder, moment)
        ended = run(self.task.work, folder)
        assert ended.code == 0, f"the run after {moments} failed: {ended.last_line}"
        for name in self.task.outputs:
            assert self.task.alike(folder / name, self.place / "new" / name), f"{name} after {moments}"
        new_files = names(folder) - names(self.place / "new")
        assert not new_files, f"{sorted(new_files)} left after {moments}"

    def _check_whole(self, folder: Path, moment: Moment) -> None:
        for name in self.task.outputs:
            is_old = (folder / name).read_bytes() == (self.place / "old" / name).read_bytes()
            assert is_old or self.task.alike(folder / name, self.place / "new" / name), f"{name} at {moment}"


def draw_moments(trial: Trial, rng: random.Random, events: int) -> list[Moment]:
    """Return one to three random moments, each of a random kind."""
    kinds = [
        lambda: AfterSeconds(rng.uniform(0, trial.seconds)),
        lambda: BeforeEvent(rng.randint(1, events)),
        lambda: AtByte(rng.randint(0, trial.largest - 1)),
    ]
    return [rng.choice(kinds)() for _ in range(rng.randint(1, 3))]


def run_campaign(kills: int, seed: int, task_names: Iterable[str] = TASKS) -> Counter[str]:
    """Kill all tasks, slow tasks a twentieth as often as others; count kills by task, and "failures"."""
    rng = random.Random(seed)
    counts: Counter[str] = Counter(failures=0)
    parts = {name: 1 if TASKS[name].slow else 20 for name in task_names}
    for name, part in parts.items():
        share = math.ceil(kills * part / sum(parts.values()))
        with tempfile.TemporaryDirectory() as place:
            trial = Trial(TASKS[name], Path(place).resolve() / name)
            events = trial.events()
            while trial.kills.total() < share:
                try:
                    trial.round(draw_moments(trial, rng, events))
                except AssertionError as error:
                    counts["failures"] += 1
                    print(f"{name}: {error}", file=sys.stderr)
        counts[name] = trial.kills.total()
        print(f"{name}: {trial.kills.total()} kills, {dict(trial.kills)}", flush=True)
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=list(TASKS))
    options = parser.parse_args()
    counts = run_campaign(options.kills, options.seed, options.tasks)
    failures = counts.pop("failures")
    print(f"{counts.total()} kills, {failures} failures (seed {options.seed})")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
