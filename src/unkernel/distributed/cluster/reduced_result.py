"""A result that one worker computes from the results of all parts, and keeps."""

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
    """A result that the worker of one part computes from the results of all parts, again if it is lost.

    Parameters
    ----------
    cluster : Cluster
    question : task and arguments
        The request to all parts.
    merge : callable
        Merges several answers into one, along a tree.
    task : task and arguments
        Computes the result from the list of merged answers, on the worker of part `at`.
    at : int
    """

    def __init__(
        self,
        cluster: Cluster,
        question: tuple[Callable[..., Any], Arguments],
        merge: Merge,
        task: tuple[Callable[..., Any], tuple[Any, ...]],
        at: int,
    ) -> None:
        self._cluster = cluster
        self._question, self._merge, self._task, self._at = question, merge, task, at
        self._results: dict[tuple[str, ...], Future] = {}  # by the places of the parts

    def fetch(self, view: Callable[..., Any] = return_unchanged) -> Any:
        """Fetch the result, or `view` of the result."""
        cluster = self._cluster

        def ask() -> list[Any]:
            seen = self._submit_view(view)
            return cluster.fetch_answers(list(seen.values()), seen)

        return cluster.retry_until_answered(ask)[0]

    def fetch_and_ask(
        self, view: Callable[..., Any], task: Callable[..., Any], arguments: Arguments
    ) -> tuple[Any, list[Any]]:
        """Fetch a view of the result, and the answers of all parts to a request that contains the complete
        result.
        """
        cluster = self._cluster

        def ask() -> list[Any]:
            copies = cluster.copy_to_workers(self._submit(), self._worker)
            groups = cluster.parts_by_worker()
            futures = cluster.submit_to_workers(
                task, lambda k: (copies[cluster.places[k]], *arguments(k)), groups
            )
            seen, *answers = cluster.fetch_answers(
                [*self._submit_view(view).values(), *futures.values()], futures
            )
            return [seen, *list_by_part(groups, answers)]

        seen, *answers = cluster.retry_until_answered(ask)
        return seen, answers

    @property
    def _worker(self) -> str:
        return self._cluster.places[self._at]

    def _submit_view(self, view: Callable[..., Any]) -> WorkerFutures:
        return {self._worker: self._cluster.submit(view, self._submit(), worker=self._worker)}

    def _submit(self) -> Future:
        cluster = self._cluster
        places = tuple(cluster.places)
        if places not in self._results:
            futures = cluster.submit_to_workers(*self._question, cluster.parts_by_worker(), self._merge)
            merged = list(cluster.reduce_on_workers(self._merge, futures).values())
            task, arguments = self._task
            self._results = {places: cluster.submit(task, merged, *arguments, worker=self._worker)}
        return self._results[places]
