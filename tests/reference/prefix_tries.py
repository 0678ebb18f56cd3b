"""The feature-sequence trie of Yoshinaga & Kitsuregawa 2009, as a dictionary of prefixes."""

from __future__ import annotations

from itertools import combinations
from math import comb


def sequences(tables, rows):
    """Return the ranks of rows (sets of columns), ascending, without the rare ones."""
    rank_of = {c: r for r, c in enumerate(tables.arrays["columns"].tolist()) if r < tables.numbers["rare"]}
    return [tuple(sorted(rank_of[c] for c in row if c in rank_of)) for row in rows]


def delta(degree, size):
    """Return the number of conjunctions of 2 to `degree` of `size` features that contain the last one."""
    return sum(comb(size, k) - comb(size - 1, k) for k in range(2, degree + 1))


def counted(degree):
    return lambda prefix: delta(degree, len(prefix))


def entries(tables, degree):
    """Return the number of entries read: all in the dense part, elsewhere partners and theirs."""
    head, begins = tables.numbers["head"], tables.arrays["owner_begins"].tolist()
    below = tables.arrays["pairs_begins"].tolist()

    def cost(prefix):
        rank = prefix[-1]
        if rank < head:
            return delta(degree, len(prefix))
        if degree < 2:
            return 1
        begin, end = begins[rank - head : rank - head + 2]
        partners = end - begin
        each = (below[end] - below[begin]) / partners if degree > 2 and partners else 0.0
        return min(partners, len(prefix)) * (1 + each)

    return cost


def grown(old, rows, limit, cost):
    """Return {prefix: rows that pass}: old prefixes and the rows', without the least useful leaves."""
    counts = dict(sorted(old.items(), key=lambda item: (len(item[0]), item[0]))) or {(): 0}
    for row in rows:
        for length in range(len(row) + 1):
            counts[row[:length]] = counts.get(row[:length], 0) + 1
    return pruned(counts, limit, cost)


def pruned(counts, limit, cost):
    """Remove leaves of the least utility; of equal ones, the deeper, then the larger rank, then the newer."""
    counts = dict(counts)
    order = {prefix: place for place, prefix in enumerate(counts)}
    while len(counts) - 1 > limit:
        parents = {prefix[:-1] for prefix in counts if prefix}
        leaves = [prefix for prefix in counts if prefix and prefix not in parents]
        counts.pop(min(leaves, key=lambda p: (counts[p] * cost(p), -len(p), -p[-1], -order[p])))
    return counts


def longest(stored, row):
    """Return the longest stored prefix of a row."""
    return max((row[:length] for length in range(len(row) + 1) if row[:length] in stored), key=len)


def partial_sum(weights, prefix, columns, degree):
    """Return the total weight of all sets of the features of a prefix."""
    features = sorted(columns[rank] for rank in prefix)
    total = 0.0
    for size in range(1, degree + 1):
        for chosen in combinations(features, size):
            total = total + weights(chosen)
    return total


def decoded(trie, scores):
    """Return {prefix: (rows that pass, sums)} from an engine's arrays."""
    first, ranks = trie["first_child"].tolist(), trie["ranks"].tolist()
    sums = trie["sums"].reshape(-1, scores)
    prefixes = [()] + [None] * (len(ranks) - 1)
    for parent in range(len(ranks)):
        for child in range(first[parent], first[parent + 1]):
            prefixes[child] = (*prefixes[parent], ranks[child])
    return {prefix: (int(trie["counts"][i]), sums[i]) for i, prefix in enumerate(prefixes)}
