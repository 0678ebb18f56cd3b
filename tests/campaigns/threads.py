"""Use one model in many threads and processes: every answer is correct, and no process hangs.

    python -m campaigns.threads --rounds 300 --processes 20

Eight threads score, predict and explain one model with a prefix trie, while a ninth grows its trie and a
tenth alternately saves two models to one file and loads it. Then, while such threads run, processes start by
fork, spawn, forkserver and loky, and use the model that they receive.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from reference.patience import PATIENCE
from unkernel import PolySVC, compile, load

START_METHODS = ("fork", "spawn", "forkserver", "loky")


def binary_rows(seed: int, rows: int = 300, features: int = 40) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = (rng.random((rows, features)) < 0.25).astype(float)
    return X, np.where(X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=rows) > 0.3, "yes", "no")


class Shared:
    """A model that threads share, with rows and their correct answers."""

    def __init__(self, seed: int = 0) -> None:
        self.X, y = binary_rows(seed)
        learner = PolySVC(degree=3, C=0.1, random_state=0).fit(self.X, y)
        self.fast = compile(learner, engine="expanded", trie=self.X[:50], trie_nodes=200)
        self.scores = self.fast.decision_function(self.X)
        self.labels = self.fast.predict(self.X)
        self.explained = self.fast.explain(self.X[0]).contributions
        self.fast.trie.sample(0.5, batch=100)

    def check(self, n_jobs: int = 1) -> None:
        """Call all methods once, and check their answers."""
        np.testing.assert_allclose(self.fast.decision_function(self.X, n_jobs=n_jobs), self.scores, atol=1e-9)
        assert (self.fast.predict(self.X[:20]) == self.labels[:20]).all()
        row = np.flatnonzero(self.X[0]).tolist()
        np.testing.assert_allclose(self.fast.score_one(row), self.scores[0], atol=1e-9)
        assert self.fast.explain(self.X[0]).contributions == self.explained

    def grow(self, seed: int) -> None:
        self.fast.trie.grow(binary_rows(seed, 60)[0], n_jobs=2)


class Swapped:
    """Two models that are saved to the same file in turn."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "model.uk"
        self.models = [Shared(seed) for seed in (1, 2)]
        self.models[0].fast.save(self.path)

    def check(self, turn: int) -> None:
        self.models[turn % 2].fast.save(self.path)
        loaded_scores = load(self.path).decision_function(self.models[0].X)
        expected = [model.fast.decision_function(self.models[0].X) for model in self.models]
        assert any(np.allclose(loaded_scores, scores, atol=1e-9) for scores in expected), (
            "a mixture of two models"
        )


@contextmanager
def keep_threads_busy(shared: Shared, swapped: Swapped, askers: int = 8) -> Iterator[Callable[[], int]]:
    """Run ten threads; yield a function that returns the rounds of the slowest thread so far."""
    stop = threading.Event()
    works: list[Callable[[int], object]] = [lambda turn: shared.check(1 + turn % 2)] * askers
    works += [shared.grow, swapped.check]
    rounds = [0] * len(works)

    def keep_on(place: int) -> None:
        for turn in count():
            if stop.is_set():
                return
            works[place](turn)
            rounds[place] += 1

    with ThreadPoolExecutor(len(works)) as pool:
        futures = [pool.submit(keep_on, place) for place in range(len(works))]
        try:
            yield lambda: max(rounds) + 1 if any(future.done() for future in futures) else min(rounds)
        finally:
            stop.set()
        for future in futures:
            future.result()


def run_in_threads(rounds: int) -> None:
    """Wait until each of the ten threads has made this number of rounds."""
    with (
        tempfile.TemporaryDirectory() as folder,
        keep_threads_busy(Shared(), Swapped(Path(folder))) as slowest,
    ):
        while slowest() < rounds:
            threading.Event().wait(0.01)


# --- Processes that start while threads work --------------------------------------------------------------


def answer(shared: Shared) -> bool:
    """Return whether all methods of the model answer correctly in a process."""
    shared.check()
    shared.grow(3)
    shared.check()
    return True


def fork_and_answer(shared: Shared) -> None:
    """Fork while threads run, like preloading servers."""
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE)  # a child that hangs ends with a signal
        os._exit(0 if answer(shared) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, f"the child ended with {os.waitstatus_to_exitcode(status)}"


def ask_elsewhere(start_method: str, shared: Shared, processes: int) -> None:
    """Start processes by one method, and check the predictions of each."""
    if start_method == "fork":
        for _ in range(processes):
            fork_and_answer(shared)
    elif start_method == "loky":
        from joblib import Parallel, delayed

        jobs: Any = Parallel(n_jobs=2, backend="loky")(delayed(answer)(shared) for _ in range(processes))
        assert all(jobs)
    else:
        with multiprocessing.get_context(start_method).Pool(2, maxtasksperchild=1) as pool:
            assert all(pool.map_async(answer, [shared] * processes, chunksize=1).get(PATIENCE))


def run_in_processes(start_method: str, processes: int) -> None:
    shared = Shared()
    with tempfile.TemporaryDirectory() as folder, keep_threads_busy(shared, Swapped(Path(folder)), askers=2):
        ask_elsewhere(start_method, shared, processes)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=300, help="of each of the ten threads")
    parser.add_argument("--processes", type=int, default=20, help="of each kind")
    options = parser.parse_args()
    run_in_threads(options.rounds)
    print(f"10 threads, {options.rounds} rounds and more each: every answer was right", flush=True)
    for start_method in START_METHODS:
        run_in_processes(start_method, options.processes)
        print(
            f"{options.processes} processes by {start_method} beside busy threads: every answer was right",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
