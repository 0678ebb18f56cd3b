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


def saved_sums(degree):
    return lambda prefix: delta(degree, len(prefix))


def saved_entries(tables, degree):
    """Return the cost function of a prefix: the number of table entries that its last feature reads."""
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
        entries_per_partner = (below[end] - below[begin]) / partners if degree > 2 and partners else 0.0
        return min(partners, len(prefix)) * (1 + entries_per_partner)

    return cost


def grow(old, rows, limit, cost):
    """Return {prefix: number of rows} of old prefixes and new rows, without the least useful leaves."""
    counts = dict(sorted(old.items(), key=lambda item: (len(item[0]), item[0]))) or {(): 0}
    for row in rows:
        for length in range(len(row) + 1):
            counts[row[:length]] = counts.get(row[:length], 0) + 1
    return prune(counts, limit, cost)


def prune(counts, limit, cost):
    """Remove the leaves of the least utility; ties: the deepest, the largest rank, the newest leaf."""
    counts = dict(counts)
    order = {prefix: position for position, prefix in enumerate(counts)}
    while len(counts) - 1 > limit:
        parents = {prefix[:-1] for prefix in counts if prefix}
        leaves = [prefix for prefix in counts if prefix and prefix not in parents]
        counts.pop(min(leaves, key=lambda p: (counts[p] * cost(p), -len(p), -p[-1], -order[p])))
    return counts


def longest_prefix(stored, row):
    """Return the longest stored prefix of a row."""
    return max((row[:length] for length in range(len(row) + 1) if row[:length] in stored), key=len)


def partial_sum(weights, prefix, columns, degree):
    """Return the total weight of all sets of the features of a prefix."""
    features = sorted(columns[rank] for rank in prefix)
    total = 0.0
    for size in range(1, degree + 1):
        for members in combinations(features, size):
            total = total + weights(members)
    return total


def decode(trie, scores):
    """Return {prefix: (number of rows, sums)} from an engine's arrays."""
    first, ranks = trie["first_child"].tolist(), trie["ranks"].tolist()
    sums = trie["sums"].reshape(-1, scores)
    prefixes = [()] + [None] * (len(ranks) - 1)
    for parent in range(len(ranks)):
        for child in range(first[parent], first[parent + 1]):
            prefixes[child] = (*prefixes[parent], ranks[child])
    return {prefix: (int(trie["counts"][i]), sums[i]) for i, prefix in enumerate(prefixes)}
