"""Polynomial SVMs of rows on many workers: one worker solves for few of the rows, all others judge.

Only rows on or inside the margin shape a support vector machine. The problem of some rows, the members, is
small enough for one worker, which solves it as on one machine. All parts then score their rows by its model.

- The losses of the other rows, added to the members' objective, give the objective of all rows.
- The dual objective of the members' problem is that of all rows where the others have the dual variable 0. So
  it is a lower bound of the optimum, and the gap between the two is certified.
- Rows that the model has on or inside the margin become members; the others are dropped, but only if the
  bound grew: so it ends.

The first members are a tenth of the rows, of each class. Later problems start from the dual variables of
earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from unkernel.distributed.cluster.coordinator import Cluster, MadeOfAll
from unkernel.distributed.cluster.packed_vectors import Vector
from unkernel.distributed.poly.svc_tasks import (
    Effort,
    Places,
    PolyProblem,
    Solved,
    Verdict,
    judge,
    members_of,
    sampled_places,
    sent_together,
    solve_members,
    without_model,
)
from unkernel.learners.base import Outcome
from unkernel.models import ConjunctionModel, KernelModel
from unkernel.poly._base import DualStart

_FEW_ROWS = 20_000  # that one worker solves for at once
_SAMPLED = 10  # every such row of each class is a member at first
# The members' problem is solved to this share of the gap that is left, and at first to that gap.
_SHARE_OF_GAP = 0.02
_FIRST_TOLERANCE = 0.1
_GROWTH = 0.1  # of the bound, as a share of the gap, for which members may be dropped


@dataclass(frozen=True, eq=False)
class Members:
    """Places of the members in each part, and the dual variables to start from."""

    places: list[Places]
    duals: DualStart | None = None


class Solution(Protocol):
    """The solution of a round, wherever it is."""

    def model(self) -> ConjunctionModel | KernelModel:
        """The model itself."""


class Crew(Protocol):
    """Who solves and judges: the workers of a cluster, or simulated ones."""

    sizes: list[int]  # examples of each part

    def sample(self, step: int) -> list[Places]:
        """The first members."""

    def solve(self, problem: PolyProblem, members: Members, effort: Effort) -> tuple[Solution, Solved]:
        """The solution for the members."""

    def solve_and_judge(
        self, problem: PolyProblem, members: Members, effort: Effort
    ) -> tuple[Solution, Solved, list[Verdict]]:
        """The same, and what all parts say of it."""


class ClusterSolution:
    """A solution on the worker that found it."""

    def __init__(self, cluster: Cluster, made: MadeOfAll) -> None:
        self._cluster = cluster
        self._made = made

    def model(self) -> ConjunctionModel | KernelModel:
        """Fetch the model."""
        solved: Solved = self._made.shown(_copied)
        self._cluster.traffic["model"] += solved.model_nbytes
        assert solved.model is not None
        return solved.model


def _copied(solved: Solved) -> Solved:
    return solved


class ClusterCrew:
    """The workers of a cluster. The one with most of the members solves."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.sizes = cluster.rows

    def sample(self, step: int) -> list[Places]:
        """The first members."""
        return self._cluster.each(sampled_places, lambda _: (step,))

    def solve(self, problem: PolyProblem, members: Members, effort: Effort) -> tuple[Solution, Solved]:
        """The solution for the members."""
        made = self._made(problem, members, effort)
        solved = made.shown(without_model)
        self._count(members, solved)
        return ClusterSolution(self._cluster, made), solved

    def solve_and_judge(
        self, problem: PolyProblem, members: Members, effort: Effort
    ) -> tuple[Solution, Solved, list[Verdict]]:
        """The same, and what all parts say of it."""
        made = self._made(problem, members, effort)
        solved, verdicts = made.shown_to_all(without_model, judge, lambda k: (problem, members.places[k]))
        self._count(members, solved)
        traffic = self._cluster.traffic
        traffic["model"] += solved.model_nbytes * (len(self.sizes) - 1)
        traffic["places"] += sum(places.nbytes for places in members.places)
        traffic["places"] += sum(verdict.wanted.nbytes for verdict in verdicts)
        return ClusterSolution(self._cluster, made), solved, verdicts

    def _made(self, problem: PolyProblem, members: Members, effort: Effort) -> MadeOfAll:
        place = int(np.argmax([len(places) for places in members.places]))
        give = (members_of, lambda k: (members.places[k],))
        return MadeOfAll(self._cluster, give, sent_together, (solve_members, (problem, effort)), place)

    def _count(self, members: Members, solved: Solved) -> None:
        traffic = self._cluster.traffic
        traffic["rows"] += solved.rows_nbytes
        traffic["places"] += sum(places.nbytes for places in members.places)
        for duals in (members.duals, solved.duals):
            traffic["duals"] += 0 if duals is None else duals.hashes.nbytes + duals.duals.nbytes


@dataclass(frozen=True, eq=False)
class Certified:
    """The best solution of all rounds, and how good it is."""

    solution: Solution
    objectives: Vector
    bounds: Vector
    storage: str
    passes: int
    history: list[tuple[int, Vector, Vector]]  # passes so far, objectives and bounds, round by round
    members: Members

    @property
    def gap(self) -> float:
        """The largest relative gap of all problems."""
        return relative_gap(self.objectives, self.bounds)

    def outcomes(self, tol: float) -> list[Outcome]:
        """How each problem ended."""
        return [
            Outcome(
                objective=float(self.objectives[j]),
                bound=float(self.bounds[j]),
                rounds=self.passes,
                converged=relative_gap(self.objectives[[j]], self.bounds[[j]]) <= tol,
                history=np.array([(n, found[j], bound[j]) for n, found, bound in self.history]),
            )
            for j in range(len(self.objectives))
        ]


def relative_gap(objectives: Vector, bounds: Vector) -> float:
    """(P - D) / P, the largest of all problems, never below 0."""
    above = np.maximum(objectives - bounds, 0.0)
    return float(np.divide(above, objectives, out=np.zeros_like(above), where=objectives > 0).max())


def first_members(crew: Crew) -> Members:
    """All examples if they are few or in one part, else a sample of each class."""
    at_once = len(crew.sizes) == 1 or sum(crew.sizes) <= _FEW_ROWS
    return Members(crew.sample(1 if at_once else _SAMPLED))


def solve_by_rounds(
    crew: Crew,
    problem: PolyProblem,
    members: Members,
    on_round: Callable[[Certified], None] = lambda _: None,
) -> Certified:
    """Solve and judge until the gap of all rows is at most the learner's ``tol``.

    ``max_iter`` limits the passes of all rounds together.
    """
    tol, max_iter = float(problem.learner.tol), int(problem.learner.max_iter)
    best: Certified | None = None
    passes = 0
    while True:
        everything = all(len(own) == size for own, size in zip(members.places, crew.sizes, strict=True))
        effort = Effort(members.duals, tol if everything else _tolerance(best, tol), max_iter - passes)
        verdicts: list[Verdict] = []
        if everything:
            solution, solved = crew.solve(problem, members, effort)
        else:
            solution, solved, verdicts = crew.solve_and_judge(problem, members, effort)
        passes += max(solved.passes, 1)
        objectives = solved.objectives + sum(verdict.losses for verdict in verdicts)
        now = Certified(
            solution,
            objectives,
            solved.bounds,
            solved.storage,
            passes,
            [],
            replace(members, duals=solved.duals),
        )
        before, best = best, _better(best, now)
        on_round(best)
        if best.gap <= tol or passes >= max_iter:
            return best
        places = (
            _next_places(members.places, verdicts, _may_drop(before, best)) if verdicts else members.places
        )
        members = Members(places, solved.duals)


def _next_places(members: list[Places], verdicts: list[Verdict], may_drop: bool) -> list[Places]:
    wanted = [verdict.wanted for verdict in verdicts]
    if may_drop and any(map(len, wanted)):  # a loose solution may have all rows outside of the margin
        return wanted
    return [np.union1d(*places) for places in zip(members, wanted, strict=True)]


def _tolerance(best: Certified | None, tol: float) -> float:
    """Where many rows are still to join, an exact solution for those that have is a waste.

    Near the end it is not: a round more costs more than some passes.
    """
    wanted = _FIRST_TOLERANCE if best is None else _SHARE_OF_GAP * best.gap
    return wanted if wanted > 2 * tol else tol / 2


def _better(best: Certified | None, now: Certified) -> Certified:
    """The solution with the lower objective, and the larger bound of each problem."""
    bounds = now.bounds if best is None else np.maximum(best.bounds, now.bounds)
    better = now if best is None or now.objectives.sum() <= best.objectives.sum() else best
    history = [] if best is None else best.history
    history = [*history, (now.passes, better.objectives, bounds)]
    return replace(better, bounds=bounds, passes=now.passes, history=history, members=now.members)


def _may_drop(before: Certified | None, after: Certified) -> bool:
    """Whether the bound grew enough: it cannot do so for ever."""
    if before is None:
        return True
    grown = float(after.bounds.sum() - before.bounds.sum())
    return grown >= _GROWTH * float(before.objectives.sum() - before.bounds.sum())
