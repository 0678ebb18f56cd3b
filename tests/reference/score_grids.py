"""The slow twin of scores on a grid: the shares of each score, and the risk over all pairs of shares."""

from __future__ import annotations

from itertools import product

import numpy as np


def list_edges(centre, width, cells, levels):
    """Return all edges, outwards from the centre."""
    distances = [0.0]
    for level in range(levels):
        distances += [distances[-1] + width * 2**level / cells * (j + 1) for j in range(cells)]
    return np.array([centre - d for d in distances[:0:-1]] + [centre + d for d in distances])


def shares(edges, score):
    """Return {edge: share} of a score on the grid: one or two edges, whose mean is the score."""
    upper = min(max(int(np.searchsorted(edges, score, side="right")), 1), len(edges) - 1)
    share = (score - edges[upper - 1]) / (edges[upper] - edges[upper - 1])
    return {upper - 1: 1.0 - share, upper: share}


def counts(edges, ranks, rank_count, weights, scores):
    """Return weights by rank and edge."""
    table = np.zeros((rank_count, len(edges)))
    for rank, weight, score in zip(ranks, weights, scores, strict=True):
        for edge, share in shares(edges, score).items():
            table[rank, edge] += weight * share
    return table


def risk(edges, table, pair_weights):
    """Return the loss of all pairs of ranks and edges, their offset, and the coefficients."""
    value, offset, coefficients = 0.0, 0.0, np.zeros_like(table)
    cells = list(product(range(table.shape[0]), range(table.shape[1])))
    for (high, e), (low, f) in product(cells, cells):
        violation = 1.0 - (edges[e] - edges[f])
        if pair_weights[high][low] > 0 and violation > 0:
            weight = pair_weights[high][low] * table[high, e] * table[low, f]
            value += weight * violation
            offset += weight
            coefficients[high, e] += pair_weights[high][low] * table[low, f]
            coefficients[low, f] -= pair_weights[high][low] * table[high, e]
    return value, offset, coefficients
