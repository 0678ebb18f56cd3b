"""Compute a result on one worker from the responses of all parts, and keep it on this worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dask.distributed import Future

from unkernel.distributed.cluster.coordinator import (
    Arguments,
    Cluster,
    Merge,
    WorkerFutures,
    list_by_part,
    return_unchanged,
)


class ReducedResult:
    """A result that one worker computes from the responses of all parts; it is recomputed if it is lost.

    Parameters
    ----------
    cluster : Cluster
    question : (callable, Arguments)
        The task for all parts, and its arguments.
    merge : callable
        Merges several responses into one, along a tree.
    task : (callable, tuple)
        The task that computes the result from the list of merged responses, and its further arguments.
    owner : int
        The part whose worker computes the result.
    """

    def __init__(
        self,
        cluster: Cluster,
        question: tuple[Callable[..., Any], Arguments],
        merge: Merge,
        task: tuple[Callable[..., Any], tuple[Any, ...]],
        owner: int,
    ) -> None:
        self._cluster = cluster
        self._question, self._merge, self._task, self._owner = question, merge, task, owner
        self._results: dict[tuple[str, ...], Future] = {}  # keyed by the workers of all parts

    def fetch(self, view: Callable[..., Any] = return_unchanged) -> Any:
        """Fetch `view(result)`; by default, the result itself."""
        cluster = self._cluster

        def ask() -> list[Any]:
            viewed = self._submit_view(view)
            return cluster.fetch_answers(list(viewed.values()), viewed)

        return cluster.retry_until_answered(ask)[0]

    def fetch_and_ask(
        self, view: Callable[..., Any], task: Callable[..., Any], arguments: Arguments
    ) -> tuple[Any, list[Any]]:
        """Fetch `view(result)`, and the responses of all parts to a task.

        The first argument of the task is the complete result, which does not pass through the client.
        """
        cluster = self._cluster

        def ask() -> list[Any]:
            copies = cluster.copy_to_workers(self._submit(), self._worker)
            groups = cluster.group_parts_by_worker()
            futures = cluster.submit_to_workers(
                task, lambda k: (copies[cluster.addresses[k]], *arguments(k)), groups
            )
            viewed, *answers = cluster.fetch_answers(
                [*self._submit_view(view).values(), *futures.values()], futures
            )
            return [viewed, *list_by_part(groups, answers)]

        viewed, *answers = cluster.retry_until_answered(ask)
        return viewed, answers

    @property
    def _worker(self) -> str:
        return self._cluster.addresses[self._owner]

    def _submit_view(self, view: Callable[..., Any]) -> WorkerFutures:
        return {self._worker: self._cluster.submit(view, self._submit(), worker=self._worker)}

    def _submit(self) -> Future:
        """Return the future of the result; start its computation if the workers have changed."""
        cluster = self._cluster
        addresses = tuple(cluster.addresses)
        if addresses not in self._results:
            futures = cluster.submit_to_workers(*self._question, cluster.group_parts_by_worker(), self._merge)
            merged = list(cluster.reduce_on_workers(self._merge, futures).values())
            task, arguments = self._task
            self._results = {addresses: cluster.submit(task, merged, *arguments, worker=self._worker)}
        return self._results[addresses]
