"""Who answers when a sparse model is trained: parts, and what all of them together say."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.distributed.cluster.coordinator import Cluster, MadeOfAll
from unkernel.distributed.cluster.packed_vectors import Answer, Vector, packed
from unkernel.distributed.poly import sparse_tasks as tasks
from unkernel.distributed.poly.sparse_tasks import Flags, Keys, KeySums, Numbering, Point, SparseProblem


class SparseCrew:
    """Answers of all rows, as sums of those of the parts."""

    def judge(self, point: Point) -> tuple[float, Vector, Vector]:
        """The loss; its gradient and its curvatures by weight."""
        losses, gradients, curvatures = zip(*self._each(tasks.judge, point), strict=True)
        return sum(losses), sum(gradients), sum(curvatures)

    def propose(self, point: Point, *told: Any) -> tuple[Vector, Vector]:
        """The mean of the proposals, and dual objectives."""
        proposals, duals = zip(*self._each(tasks.propose, point, *told), strict=True)
        return np.mean(proposals, axis=0), sum(duals)

    def losses_along(self, point: Point, direction: Vector, steps: Vector) -> Vector:
        """The losses on a line."""
        return np.asarray(sum(self._each(tasks.losses_along, point, direction, steps)))

    def losses_at(self, point: Point, changes: NDArray[np.float64]) -> Vector:
        """The losses after each of some changes of the weights."""
        return np.asarray(sum(self._each(tasks.losses_at, point, changes)))

    def hessian_product(self, point: Point, direction: Vector) -> Vector:
        """The Hessian of the loss times a direction."""
        return np.asarray(sum(self._each(tasks.hessian_product, point, direction)))

    def duals(self, point: Point, scales: Vector) -> Vector:
        """Dual objectives, for gradients of the loss times these scales."""
        return np.asarray(sum(self._each(tasks.duals, point, scales)))

    def occurring(self, point: Point) -> Keys:
        """All conjunctions of several features that occur."""
        return np.unique(np.concatenate(self._each(tasks.occurring, point)))

    @abstractmethod
    def use(self, problem: SparseProblem, keys: Keys, version: int) -> None:
        """Tell all parts which conjunctions are in use."""

    @abstractmethod
    def bounds(self, task: Callable[..., Vector], point: Point, *told: Any) -> Vector:
        """A long sum of what all parts say."""

    @abstractmethod
    def strongest(
        self, point: Point, told: tuple[int, Flags, Flags, Flags], threshold: float, most: int
    ) -> KeySums:
        """The strongest conjunctions in some buckets."""

    @abstractmethod
    def _each(self, task: Callable[..., Any], point: Point, *told: Any) -> list[Any]:
        """What each part says."""


class ClusterSparseCrew(SparseCrew):
    """The workers of a cluster."""

    def __init__(self, cluster: Cluster, numbering: Numbering) -> None:
        self._cluster = cluster
        self._numbering = numbering
        self._told: tuple[SparseProblem, Keys, int] | None = None

    def use(self, problem: SparseProblem, keys: Keys, version: int) -> None:
        """Tell all parts which conjunctions are in use."""
        self._told = problem, keys, version
        self._prepare()

    def bounds(self, task: Callable[..., Vector], point: Point, *told: Any) -> Vector:
        """A long sum of what all parts say, added along a tree."""

        def ask() -> Answer | None:
            answer = self._cluster.sums(packed_answer, lambda k: (k, task, point, *told), "search")
            return None if answer.unprepared else answer

        found = self._until_prepared(ask)
        self._count("search", *told)
        return np.asarray(found.vector.unpacked())

    def strongest(
        self, point: Point, told: tuple[int, Flags, Flags, Flags], threshold: float, most: int
    ) -> KeySums:
        """The strongest conjunctions in some buckets: one worker joins the sums of all."""
        give = tasks.sums_in_buckets, lambda _: (point, *told)
        make = tasks.strongest, (threshold, most)

        def ask() -> KeySums | None:
            made = MadeOfAll(self._cluster, give, tasks.sums_together, make, at=0)
            joined: KeySums | None
            joined, sent = made.shown(_copied)
            self._cluster.traffic["search"] += sent
            return joined

        found: KeySums = self._until_prepared(ask)
        self._count("search", *told)
        return found

    def _each(self, task: Callable[..., Any], point: Point, *told: Any) -> list[Any]:
        def ask() -> list[Any] | None:
            answers = self._cluster.directly(task, lambda _: (point, *told))
            return None if any(answer is None for answer in answers) else answers

        answers: list[Any] = self._until_prepared(ask)
        self._count("weights", point.weights, *told)
        self._cluster.traffic["weights"] += sum(map(_nbytes, answers))
        return answers

    def _until_prepared(self, ask: Callable[[], Any]) -> Any:
        """What is answered once all parts know the conjunctions in use: one that was lost does not."""
        while (found := ask()) is None:
            self._prepare()
        return found

    def _prepare(self) -> None:
        assert self._told is not None
        told = self._told
        known = self._cluster.directly(tasks.use_keys, lambda _: told)
        self._count("weights", told[1])
        while lacking := [k for k, knows in enumerate(known) if not knows]:
            self._cluster.directly(tasks.number_columns, lambda _: (self._numbering,), lacking)
            self._cluster.traffic["numbering"] += self._numbering.columns.nbytes * len(lacking)
            known = self._cluster.directly(tasks.use_keys, lambda _: told)

    def _count(self, purpose: str, *sent: Any) -> None:
        """Note what was sent to each worker."""
        self._cluster.traffic[purpose] += _nbytes(sent) * len(self._cluster.workers)


def packed_answer(part: Any, number: int, task: Callable[..., Vector | None], *told: Any) -> Answer:
    """A vector as questions for sums want it."""
    vector = task(part, *told)
    return Answer(None, (number,)) if vector is None else Answer(packed(vector))


def _copied(found: Any) -> Any:
    return found


def _nbytes(item: Any) -> int:
    if isinstance(item, list | tuple):
        return sum(map(_nbytes, item))
    return int(getattr(item, "nbytes", 8))


def numbering_of(counts: Vector) -> Numbering:
    """Frequent columns first, given what ``count_columns`` says of all parts."""
    *_, others, pairs = counts
    used = np.flatnonzero(counts[:-2])
    order = np.argsort(-counts[used], kind="stable")
    return Numbering(np.ascontiguousarray(used[order], np.int64), bool(others == 0), float(pairs))
