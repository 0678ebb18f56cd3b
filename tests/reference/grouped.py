"""Groups of features and the sums of their states, with itertools."""

from __future__ import annotations

from itertools import combinations, pairwise, product

import numpy as np


def read_groups(tables):
    """Return the columns of each group, in the order of their bits."""
    begins = tables.arrays["group_begins"].tolist()
    columns = tables.arrays["columns"].tolist()
    return [columns[begin:end] for begin, end in pairwise(begins)]


def read_states(tables):
    """Return the states of each group, as sets of columns."""
    begins = tables.arrays["state_begins"].tolist()
    masks = tables.arrays["states"].tolist()
    return [
        [frozenset(c for bit, c in enumerate(group) if mask >> bit & 1) for mask in masks[begin:end]]
        for group, begin, end in zip(read_groups(tables), begins, begins[1:], strict=False)
    ]


def count_states(groups, rows):
    """Return how often each group is in each of its states; rows are sets of columns."""
    counts_by_group = [{} for _ in groups]
    for row in rows:
        for counts, group in zip(counts_by_group, groups, strict=True):
            state = frozenset(group) & row
            if state:
                counts[state] = counts.get(state, 0) + 1
    return counts_by_group


def list_conjunctions(states, size):
    """Return all conjunctions of `size` states of different groups, in the order of their sums."""
    all_states = [state for group in states for state in group]
    begins = np.cumsum([0, *map(len, states)]).tolist()
    if size == 1:
        return [(state,) for state in all_states]
    paths = sorted(tuple(reversed(path)) for path in combinations(range(len(states)), size - 1))
    return [
        (*first, last)
        for path in paths
        for first in product(*(states[g] for g in path))
        for last in all_states[: begins[path[-1]]]
    ]


def sum_weights(weights, conjunction, degree):
    """Return the total weight of all sets with a feature of each of these states, and no others."""
    features = sorted(frozenset().union(*conjunction))
    total = 0.0
    for size in range(len(conjunction), degree + 1):
        for subset in combinations(features, size):
            if all(state & frozenset(subset) for state in conjunction):
                total = total + weights(subset)
    return total


def count_sums(states, degree):
    return sum(len(list_conjunctions(states, size)) for size in range(1, degree + 1))
