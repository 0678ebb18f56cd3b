"""Send the requests of sparse solvers to all parts of the rows, and sum the responses."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from unkernel.distributed.cluster.coordinator import Cluster
from unkernel.distributed.cluster.packed_vectors import Answer, Vector, count_bytes, pack_vector
from unkernel.distributed.cluster.reduced_result import ReducedResult
from unkernel.distributed.poly import sparse_tasks as tasks
from unkernel.distributed.poly.sparse_tasks import Flags, Keys, KeySums, Numbering, Point, SparseProblem


class SparseShards:
    """The parts of all rows, on a cluster or simulated in one process."""

    def judge(self, point: Point) -> tuple[float, Vector, Vector]:
        """Return the loss of all rows, its gradient, and its second derivative for each weight."""
        losses, gradients, curvatures = zip(*self._ask(tasks.judge, point), strict=True)
        return sum(losses), sum(gradients), sum(curvatures)

    def propose(self, point: Point, *arguments: Any) -> tuple[Vector, Vector]:
        """Return the mean of the weights proposed by all parts, and the dual objectives."""
        proposals, duals = zip(*self._ask(tasks.propose, point, *arguments), strict=True)
        return np.mean(proposals, axis=0), sum(duals)

    def sum_answers(self, task: Callable[..., Vector], point: Point, *arguments: Any) -> Vector:
        """Run a task with all parts; return the sum of the resulting vectors, which should be short."""
        return np.asarray(sum(self._ask(task, point, *arguments)))

    def find_occurring(self, point: Point) -> Keys:
        """Return all conjunctions of two or more features that occur in a row."""
        return np.unique(np.concatenate(self._ask(tasks.find_occurring, point)))

    @abstractmethod
    def use(self, problem: SparseProblem, keys: Keys, version: int) -> None:
        """Send the list of conjunctions in use to all parts."""

    @abstractmethod
    def sum_bounds(self, task: Callable[..., Vector], point: Point, *arguments: Any) -> Vector:
        """Run a task with all parts; return the sum of the resulting vectors, which may be long."""

    @abstractmethod
    def find_strongest(
        self, point: Point, arguments: tuple[int, Flags, Flags, Flags], threshold: float, max_count: int
    ) -> KeySums:
        """Return the conjunctions with the largest absolute gradients in the wanted buckets."""

    @abstractmethod
    def _ask(self, task: Callable[..., Any], point: Point, *arguments: Any) -> list[Any]:
        """Run a task with all parts, and return the response of each part."""


class ClusterSparseShards(SparseShards):
    """The parts on the workers of a cluster."""

    def __init__(self, cluster: Cluster, numbering: Numbering) -> None:
        self._cluster = cluster
        self._numbering = numbering
        self._in_use: tuple[SparseProblem, Keys, int] | None = None

    def use(self, problem: SparseProblem, keys: Keys, version: int) -> None:
        self._in_use = problem, keys, version
        self._prepare()

    def sum_bounds(self, task: Callable[..., Vector], point: Point, *arguments: Any) -> Vector:
        total = self._cluster.sum_answers(
            pack_answer, lambda k: (k, task, point, *arguments), "search", self._prepare
        )
        self._count_traffic("search", *arguments)
        return total

    def find_strongest(
        self, point: Point, arguments: tuple[int, Flags, Flags, Flags], threshold: float, max_count: int
    ) -> KeySums:
        question = tasks.sum_buckets, lambda _: (point, *arguments)
        task = tasks.find_strongest, (threshold, max_count)
        while True:
            result = ReducedResult(self._cluster, question, tasks.add_key_sums, task, owner=0)
            key_sums, nbytes = result.fetch()
            self._cluster.traffic["search"] += nbytes
            if key_sums is not None:
                break
            self._prepare()
        self._count_traffic("search", *arguments)
        strongest: KeySums = key_sums
        return strongest

    def _ask(self, task: Callable[..., Any], point: Point, *arguments: Any) -> list[Any]:
        answers = self._cluster.ask_directly(task, lambda _: (point, *arguments), restore=self._prepare)
        self._count_traffic("weights", point.weights, *arguments)
        self._cluster.traffic["weights"] += count_bytes(answers, scalar_bytes=8)
        return answers

    def _prepare(self, _parts: Sequence[int] = ()) -> None:
        """Send all parts the conjunctions in use, and rebuilt parts also the numbering of features."""
        assert self._in_use is not None
        in_use = self._in_use
        self._count_traffic("weights", in_use[1])
        while True:
            has_numbering = self._cluster.ask_directly(tasks.use_keys, lambda _: in_use)
            unnumbered = [k for k, is_numbered in enumerate(has_numbering) if not is_numbered]
            if not unnumbered:
                return
            self._cluster.ask_directly(tasks.number_columns, lambda _: (self._numbering,), unnumbered)
            self._cluster.traffic["numbering"] += self._numbering.columns.nbytes * len(unnumbered)

    def _count_traffic(self, purpose: str, *arguments: Any) -> None:
        """Add the bytes sent to all workers to the traffic."""
        self._cluster.traffic[purpose] += count_bytes(arguments, scalar_bytes=8) * len(self._cluster.workers)


def pack_answer(part: Any, number: int, task: Callable[..., Vector | None], *arguments: Any) -> Answer:
    """Run a task, and pack the resulting vector for :meth:`Cluster.sum_answers`."""
    vector = task(part, *arguments)
    return Answer(None, (number,)) if vector is None else Answer(pack_vector(vector))


def number_features(counts: Vector) -> Numbering:
    """Number features by descending frequency, given the sum of ``count_columns`` over all parts."""
    *_, n_not_one, n_pairs = counts
    used = np.flatnonzero(counts[:-2])
    order = np.argsort(-counts[used], kind="stable")
    return Numbering(np.ascontiguousarray(used[order], np.int64), bool(n_not_one == 0), float(n_pairs))
