"""Train polynomial SVMs on many workers: one worker solves small problems, and all parts check the solutions.

Only rows on or inside the margin determine a support vector machine. One worker trains on a subset of the
rows, called the members. All parts then score their rows with the resulting model.

- The objective of all rows is the objective of the members plus the losses of all other rows.
- The dual objective of the members equals the dual objective of all rows if the dual variables of the other
  rows are 0. It is therefore a lower bound of the optimum, and the gap between objective and bound is
  certified.
- Rows on or inside the margin of the model become members. Other members are dropped only if the bound has
  grown enough; this guarantees that training terminates.

The first members are a tenth of the rows of each class. Later problems start from the dual variables of the
previous problem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np

from unkernel.distributed.cluster.coordinator import Cluster
from unkernel.distributed.cluster.packed_vectors import Vector, count_bytes
from unkernel.distributed.cluster.reduced_result import ReducedResult
from unkernel.distributed.poly.svc_tasks import (
    Effort,
    Places,
    PolyProblem,
    Solved,
    Verdict,
    concatenate_examples,
    drop_model,
    judge,
    sample_places,
    select_members,
    solve_members,
)
from unkernel.learners.base import Outcome
from unkernel.models import ConjunctionModel, KernelModel
from unkernel.poly._base import DualStart

_MAX_ROWS_AT_ONCE = 20_000  # largest number of rows that are all members from the start
_SAMPLE_STEP = 10  # every tenth row of each class is an initial member
# Relative gap at which the solver of the members stops: in the first round, and later as a share of the
# remaining gap of all rows.
_FIRST_TOLERANCE = 0.1
_SHARE_OF_GAP = 0.02
_MIN_BOUND_GROWTH = 0.1  # share of the gap by which the bound must grow before members may be dropped

Model = ConjunctionModel | KernelModel
FetchModel = Callable[[], Model]


@dataclass(frozen=True, eq=False)
class Members:
    """The indices of the members in each part, and their initial dual variables."""

    places: list[Places]
    duals: DualStart | None = None


class Shards(Protocol):
    """The parts of the rows, on a cluster or simulated in one process."""

    sizes: list[int]  # number of examples of each part

    def sample(self, step: int) -> list[Places]:
        """Return the indices of every `step`-th example of each class, as initial members."""

    def solve(self, problem: PolyProblem, members: Members, effort: Effort) -> tuple[FetchModel, Solved]:
        """Train on the members; return a function that fetches the model, and the solution."""

    def solve_and_judge(
        self, problem: PolyProblem, members: Members, effort: Effort
    ) -> tuple[FetchModel, Solved, list[Verdict]]:
        """Train on the members as in :meth:`solve`; also return the results of checking all parts."""


class ClusterShards:
    """The parts on the workers of a cluster. The worker with the most members trains on all members."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.sizes = cluster.rows

    def sample(self, step: int) -> list[Places]:
        return self._cluster.ask(sample_places, lambda _: (step,))

    def solve(self, problem: PolyProblem, members: Members, effort: Effort) -> tuple[FetchModel, Solved]:
        result = self._solve_on_worker(problem, members, effort)
        solved = result.fetch(drop_model)
        self._count_traffic(members, solved)
        return partial(self.fetch_model, result), solved

    def solve_and_judge(
        self, problem: PolyProblem, members: Members, effort: Effort
    ) -> tuple[FetchModel, Solved, list[Verdict]]:
        result = self._solve_on_worker(problem, members, effort)
        solved, verdicts = result.fetch_and_ask(drop_model, judge, lambda k: (problem, members.places[k]))
        self._count_traffic(members, solved)
        traffic = self._cluster.traffic
        traffic["model"] += solved.model_nbytes * (len(self.sizes) - 1)
        traffic["places"] += count_bytes(members.places)
        traffic["places"] += sum(verdict.wanted.nbytes for verdict in verdicts)
        return partial(self.fetch_model, result), solved, verdicts

    def fetch_model(self, result: ReducedResult) -> Model:
        """Fetch the model from the worker that computed it."""
        solved: Solved = result.fetch()
        self._cluster.traffic["model"] += solved.model_nbytes
        assert solved.model is not None
        return solved.model

    def _solve_on_worker(self, problem: PolyProblem, members: Members, effort: Effort) -> ReducedResult:
        part = int(np.argmax([len(places) for places in members.places]))
        question = (select_members, lambda k: (members.places[k],))
        task = (solve_members, (problem, effort))
        return ReducedResult(self._cluster, question, concatenate_examples, task, part)

    def _count_traffic(self, members: Members, solved: Solved) -> None:
        traffic = self._cluster.traffic
        traffic["rows"] += solved.rows_nbytes
        traffic["places"] += count_bytes(members.places)
        for duals in (members.duals, solved.duals):
            traffic["duals"] += 0 if duals is None else duals.hashes.nbytes + duals.duals.nbytes


@dataclass(frozen=True, eq=False)
class Certified:
    """The best solution so far, with its objectives and the best bounds, one per problem."""

    fetch_model: FetchModel
    objectives: Vector
    bounds: Vector
    storage: str
    passes: int
    history: list[tuple[int, Vector, Vector]]  # passes so far, objectives and bounds of each round
    members: Members

    @property
    def gap(self) -> float:
        """The largest relative gap of all one-versus-rest problems."""
        return relative_gap(self.objectives, self.bounds)

    def outcomes(self, tol: float) -> list[Outcome]:
        """Return the outcome of each problem."""
        return [
            Outcome(
                objective=float(self.objectives[j]),
                bound=float(self.bounds[j]),
                rounds=self.passes,
                converged=relative_gap(self.objectives[[j]], self.bounds[[j]]) <= tol,
                history=np.array([(n, objectives[j], bounds[j]) for n, objectives, bounds in self.history]),
            )
            for j in range(len(self.objectives))
        ]


def relative_gap(objectives: Vector, bounds: Vector) -> float:
    """Return the largest (P - D) / P of all problems, at least 0, for objectives P and bounds D."""
    differences = np.maximum(objectives - bounds, 0.0)
    return float(
        np.divide(differences, objectives, out=np.zeros_like(differences), where=objectives > 0).max()
    )


def choose_first_members(shards: Shards) -> Members:
    """Return all examples if they are few or in one part, otherwise a sample of each class."""
    takes_all = len(shards.sizes) == 1 or sum(shards.sizes) <= _MAX_ROWS_AT_ONCE
    return Members(shards.sample(1 if takes_all else _SAMPLE_STEP))


def solve_by_rounds(
    shards: Shards,
    problem: PolyProblem,
    members: Members,
    on_round: Callable[[Certified], None] = lambda _: None,
) -> Certified:
    """Alternate training and checking until the gap of all rows is at most the learner's ``tol``.

    ``max_iter`` limits the total passes of all rounds.
    """
    tol, max_iter = float(problem.learner.tol), int(problem.learner.max_iter)
    best: Certified | None = None
    passes = 0
    while True:
        has_all_members = all(
            len(part_members) == size for part_members, size in zip(members.places, shards.sizes, strict=True)
        )
        effort = Effort(
            members.duals, tol if has_all_members else _choose_tolerance(best, tol), max_iter - passes
        )
        verdicts: list[Verdict] = []
        if has_all_members:
            fetch_model, solved = shards.solve(problem, members, effort)
        else:
            fetch_model, solved, verdicts = shards.solve_and_judge(problem, members, effort)
        passes += max(solved.passes, 1)
        objectives = solved.objectives + sum(verdict.losses for verdict in verdicts)
        current = Certified(
            fetch_model,
            objectives,
            solved.bounds,
            solved.storage,
            passes,
            [],
            replace(members, duals=solved.duals),
        )
        previous, best = best, _choose_better(best, current)
        on_round(best)
        if best.gap <= tol or passes >= max_iter:
            return best
        places = (
            _choose_next_places(members.places, verdicts, _may_drop(previous, best))
            if verdicts
            else members.places
        )
        members = Members(places, solved.duals)


def _choose_next_places(members: list[Places], verdicts: list[Verdict], may_drop: bool) -> list[Places]:
    """Return the next members: the rows that parts want and, unless they may be dropped, the old members."""
    wanted = [verdict.wanted for verdict in verdicts]
    if may_drop and any(map(len, wanted)):  # an inexact solution may have no rows on or inside its margin
        return wanted
    return [np.union1d(*places) for places in zip(members, wanted, strict=True)]


def _choose_tolerance(best: Certified | None, tol: float) -> float:
    """Return the relative gap at which to stop the next training on members.

    The gap is large while many rows will still become members. Near the end it is small, because another
    round would cost more than a few passes.
    """
    tolerance = _FIRST_TOLERANCE if best is None else _SHARE_OF_GAP * best.gap
    return tolerance if tolerance > 2 * tol else tol / 2


def _choose_better(best: Certified | None, current: Certified) -> Certified:
    """Return the solution with the lower objective, together with the larger bound of each problem."""
    bounds = current.bounds if best is None else np.maximum(best.bounds, current.bounds)
    better = current if best is None or current.objectives.sum() <= best.objectives.sum() else best
    history = [] if best is None else best.history
    history = [*history, (current.passes, better.objectives, bounds)]
    return replace(better, bounds=bounds, passes=current.passes, history=history, members=current.members)


def _may_drop(previous: Certified | None, current: Certified) -> bool:
    """Return whether the bound grew enough to drop members. This growth can happen only finitely often."""
    if previous is None:
        return True
    growth = float(current.bounds.sum() - previous.bounds.sum())
    return growth >= _MIN_BOUND_GROWTH * float(previous.objectives.sum() - previous.bounds.sum())
