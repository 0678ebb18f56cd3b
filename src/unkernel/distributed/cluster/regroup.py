"""Move the rows of each group to one part, by tasks that Dask can repeat if a worker is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from dask.distributed import Client, Future
from numpy.typing import NDArray

from unkernel.distributed.cluster.gathered_blocks import GatheredBlocks
from unkernel.distributed.cluster.row_blocks import Block, list_blocks
from unkernel.distributed.cluster.workers import fetch_results

Keys = NDArray[Any]
Moves = dict[tuple[int, int], Keys]  # the groups to move from one part to another, by (sender, receiver)


def gather_groups(gathered: GatheredBlocks) -> GatheredBlocks:
    """Move each group to the part that has most of its rows."""
    client = gathered.client
    counted = fetch_results(
        client, [client.submit(count_groups, part, pure=False) for part in gathered.blocks]
    )
    parts = np.repeat(np.arange(len(counted)), [len(groups) for groups, _ in counted])
    groups, codes = np.unique(np.concatenate([groups for groups, _ in counted]), return_inverse=True)
    rows = np.concatenate([counts for _, counts in counted])
    owners = _find_owners(codes, parts, rows)
    is_moving = parts != owners[codes]
    if not is_moving.any():
        return gathered
    moves = _plan_moves(parts[is_moving], owners[codes[is_moving]], groups[codes[is_moving]])
    blocks = _move_groups(client, gathered.blocks, moves)
    sizes = np.bincount(owners[codes], rows, minlength=len(blocks)).astype(int).tolist()
    nonempty = [k for k, size in enumerate(sizes) if size > 0]
    surveys = [replace(gathered.surveys[k], rows=sizes[k]) for k in nonempty]
    return GatheredBlocks(client, [blocks[k] for k in nonempty], surveys)


def _find_owners(codes: Keys, parts: Keys, rows: Keys) -> Keys:
    """Return, for each group, the part with most of its rows; among equals, the first part."""
    order = np.lexsort((-parts, rows, codes))
    last_of_group = np.r_[codes[order][1:] != codes[order][:-1], True]
    return np.asarray(parts[order][last_of_group])


def _plan_moves(senders: Keys, receivers: Keys, groups: Keys) -> Moves:
    """Collect the groups of each pair (sender, receiver); entry k of the arguments describes one move."""
    order = np.lexsort((receivers, senders))
    routes, first = np.unique(np.stack([senders, receivers])[:, order], axis=1, return_index=True)
    pieces = np.split(groups[order], first[1:])
    return {
        (sender, receiver): piece for (sender, receiver), piece in zip(routes.T.tolist(), pieces, strict=True)
    }


def _move_groups(client: Client, parts: Sequence[Future], moves: Moves) -> list[Future]:
    """Return the list of blocks of each part after the moves."""
    result = []
    for number, part in enumerate(parts):
        leaving = [groups for (sender, _), groups in moves.items() if sender == number]
        remaining = client.submit(drop_groups, part, np.concatenate(leaving), pure=False) if leaving else part
        arriving = [
            client.submit(select_groups, parts[sender], groups, pure=False)
            for (sender, receiver), groups in moves.items()
            if receiver == number
        ]
        result.append(
            client.submit(list_blocks, [remaining, *arriving], pure=False) if arriving else remaining
        )
    return result


# --- Tasks -----------------------------------------------------------------------------------------------


def count_groups(blocks: list[Block]) -> tuple[Keys, Keys]:
    """Return the groups of a part, and the number of rows of each group in the part."""
    return np.unique(np.concatenate([_get_groups(block) for block in blocks]), return_counts=True)


def select_groups(blocks: list[Block], groups: Keys) -> list[Block]:
    """Return the rows of these groups."""
    return [_select_rows(block, np.isin(_get_groups(block), groups)) for block in blocks]


def drop_groups(blocks: list[Block], groups: Keys) -> list[Block]:
    """Return the rows of all other groups."""
    return [_select_rows(block, ~np.isin(_get_groups(block), groups)) for block in blocks]


def _get_groups(block: Block) -> Keys:
    assert block.qid is not None
    return block.qid


def _select_rows(block: Block, rows: NDArray[np.bool_]) -> Block:
    weights = None if block.weights is None else block.weights[rows]
    return replace(block, X=block.X[rows], y=block.y[rows], qid=_get_groups(block)[rows], weights=weights)
