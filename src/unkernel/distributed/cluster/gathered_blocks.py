"""Blocks of rows on the workers, before they are packed into parts."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
from dask.distributed import Client, Future

from unkernel.distributed.cluster.coordinator import Cluster
from unkernel.distributed.cluster.row_blocks import Survey, list_blocks, survey
from unkernel.distributed.cluster.row_parts import Packing, Part
from unkernel.distributed.cluster.row_sources import Sources
from unkernel.distributed.cluster.workers import fetch_results, wait_for_worker

# Successive parts of a worker are merged until they have this many rows and entries. Each part has a fixed
# cost: two parts of a million rows take 5 % more time than one of two million.
_LARGE_PART_ROWS = 1 << 22
_LARGE_PART_ENTRIES_PER_COLUMN = 32

PlacedPart = tuple[str, Future, Survey]  # its worker, its blocks, and their survey


@dataclass(frozen=True, eq=False)
class GatheredBlocks:
    """Blocks on the workers, one list per part, and a survey of each list."""

    client: Client
    blocks: list[Future]
    surveys: list[Survey]

    @property
    def first_index(self) -> int:
        """Return the number of the first column: 0 if at least one file counts from 0."""
        return min(seen.first_index for seen in self.surveys)

    @property
    def n_features(self) -> int:
        """Return the number of columns of all parts together."""
        return max(max(seen.end_index for seen in self.surveys) - self.first_index, 0)

    def pack_parts(self, intercept: float, threads: int | None) -> Cluster:
        """Pack each list of blocks into a part."""
        parts = []
        for number, blocks in enumerate(self.blocks):
            packing = Packing(number, self.first_index, self.n_features, intercept, threads)
            parts.append(self.client.submit(Part, blocks, packing, pure=False))
        return Cluster(self.client, parts, [seen.rows for seen in self.surveys], self.n_features)


def gather_blocks(client: Client, sources: Sources, identify: bool, max_parts: int = 1) -> GatheredBlocks:
    """Have the workers read, check and survey their blocks, for at most `max_parts` parts per worker."""
    placed = place_blocks(client, sources, max_parts)
    surveys = fetch_results(
        client, [client.submit(survey, blocks, identify, pure=False) for _, blocks in placed]
    )
    filled = [(*part, seen) for part, seen in zip(placed, surveys, strict=True) if seen.rows > 0]
    if not filled:
        raise ValueError("there are no rows to train on")
    return _merge_small_parts(client, filled)


def place_blocks(client: Client, sources: Sources, max_parts: int = 1) -> list[tuple[str, Future]]:
    """Return the worker and the list of blocks of each future part."""
    wait_for_worker(client)
    blocks = []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")  # the graph contains the client's rows, once
        for worker, chosen in sources.assign_to_workers(client, max_parts):
            part = dask.delayed(list_blocks)(chosen)
            blocks.append((worker, client.compute(part, workers=[worker], allow_other_workers=True)))
    return blocks


def _merge_small_parts(client: Client, parts: list[PlacedPart]) -> GatheredBlocks:
    """Merge successive parts of the same worker until they are large enough."""
    min_entries = _LARGE_PART_ENTRIES_PER_COLUMN * max(seen.end_index for _, _, seen in parts)
    groups: list[list[PlacedPart]] = []
    for part in parts:
        if groups and _can_merge(groups[-1][-1], part) and not _is_large(groups[-1], min_entries):
            groups[-1].append(part)
        else:
            groups.append([part])
    blocks = [
        group[0][1]
        if len(group) == 1
        else client.submit(list_blocks, [blocks for _, blocks, _ in group], pure=False)
        for group in groups
    ]
    surveys = [_merge_surveys([seen for _, _, seen in group]) for group in groups]
    return GatheredBlocks(client, blocks, surveys)


def _is_large(group: list[PlacedPart], min_entries: int) -> bool:
    rows = sum(seen.rows for _, _, seen in group)
    entries = sum(seen.entries for _, _, seen in group)
    return rows >= _LARGE_PART_ROWS and entries >= min_entries


def _can_merge(one: PlacedPart, other: PlacedPart) -> bool:
    """Return whether two parts are on the same worker, and both have groups or weights, or neither has."""
    (worker, _, seen), (other_worker, _, other_seen) = one, other
    return (worker, seen.has_qid, seen.has_weights) == (
        other_worker,
        other_seen.has_qid,
        other_seen.has_weights,
    )


def merge_labels(surveys: Sequence[Survey]) -> tuple[Any, Any, Any]:
    """Return the distinct labels, the total weight of their rows, and the number of rows with a weight."""
    labels, codes = np.unique(np.concatenate([seen.labels for seen in surveys]), return_inverse=True)
    totals, counts = (
        np.bincount(codes, weights=np.concatenate(arrays), minlength=len(labels))
        for arrays in ([seen.totals for seen in surveys], [seen.counts for seen in surveys])
    )
    return labels, totals, counts.astype(np.int64)


def _merge_surveys(surveys: Sequence[Survey]) -> Survey:
    """Merge the surveys of several parts into one."""
    labels, totals, counts = merge_labels(surveys)
    return Survey(
        rows=sum(seen.rows for seen in surveys),
        entries=sum(seen.entries for seen in surveys),
        end_index=max(seen.end_index for seen in surveys),
        first_index=min(seen.first_index for seen in surveys),
        labels=labels,
        totals=totals,
        counts=counts,
        has_qid=surveys[0].has_qid,
        has_weights=surveys[0].has_weights,
        fingerprint=sum(seen.fingerprint for seen in surveys) % 2**64,
    )
