"""Risks whose rows are on the workers of a cluster, as the one-slack loop asks about them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unkernel._core import Bundle, Oracle, minimise_distant
from unkernel.cutplane.options import LoopOptions
from unkernel.distributed.cluster import Cluster, Interrupted, Spread
from unkernel.distributed.line import STEPS_AT_ONCE, points_in_table
from unkernel.distributed.wire import Answer, Vector, packed
from unkernel.distributed.worker_tasks import (
    Problem,
    Round,
    combination_of,
    cut_at,
    look_ahead,
    restore,
    scores_of,
    values_along,
)

Points = list[tuple[float, float]]


class SeparableRisk:
    """Losses that count each row on its own: two questions per round.

    The first takes the new weights to the parts, and returns the table of the losses on the line to them
    (line.py): the line search needs no more. The second returns the gradient at the step that was chosen.
    """

    steps_at_once = STEPS_AT_ONCE

    def __init__(self, cluster: Cluster, problem: Problem, dimension: int) -> None:
        self._cluster = cluster
        self._here = np.zeros(dimension)
        self._there = np.zeros(dimension)
        self._round = Round(problem, 0, 0.0)
        self._moved: float | None = None  # since the round began
        self._message: Spread | None = None
        self._table = np.empty(0)

    def aim(self, weights: Vector) -> None:
        """Begin a round. Nothing is sent before the first question."""
        self._round = replace(self._round, number=self._round.number + 1, moved=self._moved or 0.0)
        self._there = weights
        self._moved = None
        self._message = self._cluster.spread(weights, "weights")
        self._table = self._asked(look_ahead, (self._message,), "line")

    def along(self, steps: Vector) -> Points:
        """Values and slopes on the line."""
        self._begin()
        points = points_in_table(self._table, steps)
        if points is not None:
            return points
        values, slopes = self._asked(values_along, (steps,), "line").reshape(2, -1)
        return list(zip(values.tolist(), slopes.tolist(), strict=True))

    def cut(self, step: float) -> tuple[float, Vector]:
        """Offset and gradient."""
        self._begin()
        found = self._asked(cut_at, (step,), "gradient")
        return float(found[-1]), np.ascontiguousarray(found[:-1])

    def move(self, step: float) -> None:
        """Follow the line. The parts are told when the next round begins."""
        self._here = self._here + step * (self._there - self._here)
        self._moved = step

    def _begin(self) -> None:
        """A question before the first round, or after a move: the line has one point."""
        if self._round.number == 0 or self._moved is not None:
            self.aim(self._here)

    def _asked(self, task: Callable[..., Answer], arguments: tuple[Any, ...], purpose: str) -> Vector:
        while True:
            answer = self._cluster.sums(task, lambda _: (self._round, *arguments), purpose)
            if answer.vector is not None:
                return answer.vector.unpacked()
            self._restore(answer.unprepared)

    def _restore(self, parts: tuple[int, ...]) -> None:
        """Give parts that were made again the scores of this round: two passes over them alone."""
        here, there = packed(self._here), packed(self._there)
        self._cluster.traffic["restored"] += (here.nbytes + there.nbytes) * len(parts)
        self._cluster.each(restore, lambda _: (self._round, here, there), parts)


class JointRisk:
    """Losses that look at all rows together: scores come to the client, coefficients go back.

    8 bytes per row each way and round, less where coefficients are 0. Workers remember nothing.
    """

    steps_at_once = 1

    def __init__(self, cluster: Cluster, oracle: Oracle, dimension: int, threads: int) -> None:
        self._cluster = cluster
        self._oracle = oracle
        self._threads = threads
        self._bounds = np.cumsum([0, *cluster.rows])
        self._here = np.zeros(self._bounds[-1])
        self._there = np.zeros(self._bounds[-1])

    def aim(self, weights: Vector) -> None:
        """Fetch the scores of these weights."""
        self._there = gathered_scores(self._cluster, weights)

    def along(self, steps: Vector) -> Points:
        """Values and slopes on the line."""
        return [self._oracle.along(self._here, self._there, step, self._threads) for step in steps.tolist()]

    def cut(self, step: float) -> tuple[float, Vector]:
        """Offset and gradient."""
        offset, coefficients = self._oracle.cut(self._here, self._there, step, self._threads)
        pieces = [packed(piece) for piece in np.split(np.asarray(coefficients), self._bounds[1:-1])]
        self._cluster.traffic["coefficients"] += sum(piece.nbytes for piece in pieces)
        answer = self._cluster.sums(combination_of, lambda k: (pieces[k],), "gradient")
        assert answer.vector is not None
        return float(offset), answer.vector.unpacked()

    def move(self, step: float) -> None:
        """Follow the line."""
        self._here = self._here + step * (self._there - self._here)


def gathered_scores(cluster: Cluster, weights: Vector) -> Vector:
    """The score of each row, part after part."""
    message = cluster.spread(weights, "weights")
    scores = np.concatenate(cluster.each(scores_of, lambda _: (message,)))
    cluster.traffic["scores"] += scores.nbytes
    return scores


@dataclass(frozen=True, eq=False)
class ClusterMinimiser:
    """The one-slack loop on the rows of a cluster. An oracle is a Problem, or one that the client asks."""

    cluster: Cluster
    dimension: int

    def new_bundle(self, most_cuts: int) -> Bundle:
        """No cuts yet."""
        return Bundle(self.dimension, most_cuts, of_rows=False)

    def run(
        self, oracle: Oracle | Problem, bundle: Bundle, start: Vector, options: LoopOptions, **observers: Any
    ) -> dict[str, Any]:
        """What the core's ``minimise_distant`` returns."""
        risk: SeparableRisk | JointRisk
        if isinstance(oracle, Problem):
            risk = SeparableRisk(self.cluster, oracle, self.dimension)
        else:
            risk = JointRisk(self.cluster, oracle, self.dimension, options.threads)
        return interruptible(
            lambda: dict(
                minimise_distant(
                    options,
                    risk=risk,
                    steps_at_once=risk.steps_at_once,
                    bundle=bundle,
                    start=start,
                    **observers,
                )
            ),
            self.cluster.stopped,
        )

    def scores(self, weights: Vector, threads: int) -> Vector:
        """The score of each row; how many threads there are, the workers know."""
        return gathered_scores(self.cluster, weights)


def interruptible(work: Callable[[], dict[str, Any]], stopped: threading.Event) -> dict[str, Any]:
    """Do it on another thread. Ctrl-C reaches only this one, also while the other waits for a cluster."""
    ended: dict[str, Any] = {}
    finished = threading.Event()

    def run() -> None:
        try:
            ended["result"] = work()
        except BaseException as error:
            ended["error"] = error
        finally:
            finished.set()

    worker = threading.Thread(target=run, name="unkernel-distributed", daemon=True)
    worker.start()
    try:
        while not finished.wait(0.1):
            pass
    except BaseException:
        stopped.set()
        finished.wait()  # not join: a thread whose join was interrupted counts as ended in Python 3.11
        raise
    if "error" in ended and not isinstance(ended["error"], Interrupted):
        raise ended["error"]
    result: dict[str, Any] = ended["result"]
    return result
