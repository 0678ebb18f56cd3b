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
# cost: two parts of a million rows take 5 % more time than one part of two million rows.
_LARGE_PART_ROWS = 1 << 22
_LARGE_PART_ENTRIES_PER_COLUMN = 32

PlacedPart = tuple[str, Future, Survey]  # a worker, its list of blocks, and the survey of these blocks


@dataclass(frozen=True, eq=False)
class GatheredBlocks:
    """Blocks on the workers, one list per part, and a survey of each list."""

    client: Client
    blocks: list[Future]
    surveys: list[Survey]

    @property
    def first_index(self) -> int:
        """The number of the first column: 0 if at least one file numbers its columns from 0, else 1."""
        return min(part_survey.first_index for part_survey in self.surveys)

    @property
    def n_features(self) -> int:
        """The number of columns of all parts together."""
        return max(max(part_survey.end_index for part_survey in self.surveys) - self.first_index, 0)

    def pack_parts(self, intercept: float, threads: int | None) -> Cluster:
        """Pack each list of blocks into a part."""
        parts = []
        for number, blocks in enumerate(self.blocks):
            packing = Packing(number, self.first_index, self.n_features, intercept, threads)
            parts.append(self.client.submit(Part, blocks, packing, pure=False))
        return Cluster(
            self.client, parts, [part_survey.rows for part_survey in self.surveys], self.n_features
        )


def gather_blocks(
    client: Client, sources: Sources, identify: bool, max_parts: int = 1, *, regression: bool = False
) -> GatheredBlocks:
    """Let the workers read, check and survey their blocks, in at most `max_parts` parts per worker."""
    placed_blocks = place_blocks(client, sources, max_parts)
    surveys = fetch_results(
        client,
        [client.submit(survey, blocks, identify, regression, pure=False) for _, blocks in placed_blocks],
    )
    nonempty = [
        (*part, part_survey)
        for part, part_survey in zip(placed_blocks, surveys, strict=True)
        if part_survey.rows > 0
    ]
    if not nonempty:
        raise ValueError("there are no rows to train on")
    return _merge_small_parts(client, nonempty)


def place_blocks(client: Client, sources: Sources, max_parts: int = 1) -> list[tuple[str, Future]]:
    """Return, for each part to be made, its worker and its list of blocks."""
    wait_for_worker(client)
    blocks = []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")  # rows in the client's memory make it large
        for worker, chosen in sources.assign_to_workers(client, max_parts):
            part = dask.delayed(list_blocks)(chosen)
            blocks.append((worker, client.compute(part, workers=[worker], allow_other_workers=True)))
    return blocks


def _merge_small_parts(client: Client, parts: list[PlacedPart]) -> GatheredBlocks:
    """Merge successive parts of the same worker until they are large enough."""
    min_entries = _LARGE_PART_ENTRIES_PER_COLUMN * max(part_survey.end_index for _, _, part_survey in parts)
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
    surveys = [_merge_surveys([part_survey for _, _, part_survey in group]) for group in groups]
    return GatheredBlocks(client, blocks, surveys)


def _is_large(group: list[PlacedPart], min_entries: int) -> bool:
    rows = sum(part_survey.rows for _, _, part_survey in group)
    entries = sum(part_survey.entries for _, _, part_survey in group)
    return rows >= _LARGE_PART_ROWS and entries >= min_entries


def _can_merge(first: PlacedPart, second: PlacedPart) -> bool:
    """Return whether two parts are on the same worker, and agree on whether rows have groups and weights."""
    (first_worker, _, first_survey), (second_worker, _, second_survey) = first, second
    return (
        first_worker == second_worker
        and first_survey.has_qid == second_survey.has_qid
        and first_survey.has_weights == second_survey.has_weights
    )


def merge_labels(surveys: Sequence[Survey]) -> tuple[Any, Any, Any]:
    """Return the distinct labels, and the total weight and the number of weighted rows of each label."""
    labels, codes = np.unique(
        np.concatenate([part_survey.labels for part_survey in surveys]), return_inverse=True
    )
    totals, counts = (
        np.bincount(codes, weights=np.concatenate(arrays), minlength=len(labels))
        for arrays in (
            [part_survey.totals for part_survey in surveys],
            [part_survey.counts for part_survey in surveys],
        )
    )
    return labels, totals, counts.astype(np.int64)


def _merge_surveys(surveys: Sequence[Survey]) -> Survey:
    """Merge the surveys of several parts into one."""
    labels, totals, counts = merge_labels(surveys)
    return Survey(
        rows=sum(part_survey.rows for part_survey in surveys),
        entries=sum(part_survey.entries for part_survey in surveys),
        end_index=max(part_survey.end_index for part_survey in surveys),
        first_index=min(part_survey.first_index for part_survey in surveys),
        labels=labels,
        totals=totals,
        counts=counts,
        has_qid=surveys[0].has_qid,
        has_weights=surveys[0].has_weights,
        fingerprint=sum(part_survey.fingerprint for part_survey in surveys) % 2**64,
    )
