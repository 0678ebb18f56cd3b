"""Rows that belong together are moved to one part, by tasks that Dask can repeat when a worker is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from dask.distributed import Client, Future
from numpy.typing import NDArray

from unkernel.distributed.cluster.coordinator import Gathered
from unkernel.distributed.cluster.row_tasks import Block, joined
from unkernel.distributed.cluster.workers import results

Keys = NDArray[Any]
Moves = dict[tuple[int, int], Keys]  # from one part to another: which groups


def with_whole_groups(found: Gathered) -> Gathered:
    """The same rows, each group in one part: that which has most of its rows. Most groups stay."""
    client = found.client
    seen = results(client, [client.submit(groups_in, part, pure=False) for part in found.blocks])
    parts = np.repeat(np.arange(len(seen)), [len(groups) for groups, _ in seen])
    groups, codes = np.unique(np.concatenate([groups for groups, _ in seen]), return_inverse=True)
    rows = np.concatenate([counts for _, counts in seen])
    owners = _owners(codes, parts, rows)
    moving = parts != owners[codes]
    if not moving.any():
        return found
    moves = _moves(parts[moving], owners[codes[moving]], groups[codes[moving]])
    blocks = _moved(client, found.blocks, moves)
    sizes = np.bincount(owners[codes], rows, minlength=len(blocks)).astype(int).tolist()
    kept = [k for k, size in enumerate(sizes) if size > 0]
    surveys = [replace(found.surveys[k], rows=sizes[k]) for k in kept]
    return Gathered(client, [blocks[k] for k in kept], surveys)


def _owners(codes: Keys, parts: Keys, rows: Keys) -> Keys:
    """For each group, the part that has most of its rows; the first one of several."""
    order = np.lexsort((-parts, rows, codes))
    last_of_group = np.r_[codes[order][1:] != codes[order][:-1], True]
    return np.asarray(parts[order][last_of_group])


def _moves(senders: Keys, takers: Keys, groups: Keys) -> Moves:
    order = np.lexsort((takers, senders))
    ways, first = np.unique(np.stack([senders, takers])[:, order], axis=1, return_index=True)
    pieces = np.split(groups[order], first[1:])
    return {(sender, taker): piece for (sender, taker), piece in zip(ways.T.tolist(), pieces, strict=True)}


def _moved(client: Client, parts: Sequence[Future], moves: Moves) -> list[Future]:
    result = []
    for number, part in enumerate(parts):
        leaving = [groups for (sender, _), groups in moves.items() if sender == number]
        stays = client.submit(without_groups, part, np.concatenate(leaving), pure=False) if leaving else part
        come = [
            client.submit(only_groups, parts[sender], groups, pure=False)
            for (sender, taker), groups in moves.items()
            if taker == number
        ]
        result.append(client.submit(joined, [stays, *come], pure=False) if come else stays)
    return result


# --- Tasks -----------------------------------------------------------------------------------------------


def groups_in(blocks: list[Block]) -> tuple[Keys, Keys]:
    """Each group once, and how many rows it has here."""
    return np.unique(np.concatenate([_groups(block) for block in blocks]), return_counts=True)


def only_groups(blocks: list[Block], groups: Keys) -> list[Block]:
    """The rows of these groups."""
    return [_chosen(block, np.isin(_groups(block), groups)) for block in blocks]


def without_groups(blocks: list[Block], groups: Keys) -> list[Block]:
    """All other rows."""
    return [_chosen(block, ~np.isin(_groups(block), groups)) for block in blocks]


def _groups(block: Block) -> Keys:
    assert block.qid is not None
    return block.qid


def _chosen(block: Block, rows: NDArray[np.bool_]) -> Block:
    weights = None if block.weights is None else block.weights[rows]
    return replace(block, X=block.X[rows], y=block.y[rows], qid=_groups(block)[rows], weights=weights)
