"""The slow twin of dividing scores into terms of columns, by inclusion and exclusion of average scores."""

import itertools


def list_terms(fast, rows, others, columns_of_features, columns):
    """Return the term of each subset of `columns` for each of `rows`, by the set of columns.

    The average of the score given some columns takes the features of all other columns from other records,
    independently for each column. `others` has these records. Both are dense arrays of encoded records.
    """
    subsets = [frozenset(s) for k in range(len(columns) + 1) for s in itertools.combinations(columns, k)]
    averages = {s: average_score(fast, rows, others, columns_of_features, set(columns) - s) for s in subsets}
    return {s: sum((-1) ** len(s - r) * averages[r] for r in subsets if r <= s) for s in subsets}


def average_score(fast, rows, others, columns_of_features, free):
    """Return the mean score of each row if every column in `free` comes from any other record."""
    total, count = 0.0, 0
    for choice in itertools.product(range(len(others)), repeat=len(free)):
        changed = rows.copy()
        for column, record in zip(free, choice, strict=True):
            is_of_column = columns_of_features == column
            changed[:, is_of_column] = others[record, is_of_column]
        total, count = total + raw_scores(fast, changed), count + 1
    return total / count


def raw_scores(fast, rows):
    """Return the scores of encoded records, of shape (records, scores)."""
    scores = fast.classifier.decision_function(rows)
    return scores[:, None] if scores.ndim == 1 else scores
