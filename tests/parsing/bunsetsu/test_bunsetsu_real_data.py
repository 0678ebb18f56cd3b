"""The bunsetsu parser on the Kyoto corpus: J.DepP's decisions and accuracies."""

from __future__ import annotations

import numpy as np
import pytest

from reference import real_data
from unkernel.data import read_bunsetsu
from unkernel.parsing import BunsetsuParser


def identify_columns(X):
    """Return the columns that occur in X, and for each a number that identifies the rows where it occurs."""
    columns = X.tocsc()
    numbers = np.random.default_rng(0).integers(0, 2**62, X.shape[0])
    used = np.flatnonzero(np.diff(columns.indptr))
    return used, np.add.reduceat(numbers[columns.indices], columns.indptr[used])


@pytest.mark.slow
def test_features_equal_the_features_of_jdepp():
    expected = real_data.load("bunsetsu_kyoto")
    corpus = read_bunsetsu(real_data.path("kyoto-reading", "train"))
    parser = BunsetsuParser(1).fit(corpus)
    X, y = parser.decisions(corpus)
    assert np.array_equal(y, expected.y > 0)
    assert np.array_equal(np.diff(X.indptr), np.diff(expected.X.indptr))
    (used, sums), (_, expected_sums) = identify_columns(X), identify_columns(expected.X)
    # J.DepP's rows do not distinguish the wide question mark from the other.
    differing = {parser.feature_name(column) for column in used[~np.isin(sums, expected_sums)]}
    assert differing == {f"{role}.first.surface={mark}" for role in ("candidate", "after") for mark in "?？"}
    assert len(sums) == len(expected_sums) + 2


@pytest.mark.slow
@pytest.mark.parametrize(("name", "degree", "min_accuracy"), [("wac", 2, 91.5), ("kyoto-reading", 2, 91.5)])
def test_accuracy_on_the_development_set(name, degree, min_accuracy):
    parser = BunsetsuParser(degree).fit(real_data.path(name, "train"), dev=real_data.path(name, "dev"))
    assert parser.dev_result_.dependency_accuracy >= min_accuracy
    corpus = read_bunsetsu(real_data.path(name, "dev"))
    parsed = parser.parse(corpus)
    X, y = parser.decisions(parsed)
    assert np.array_equal(parser.classifier_.decision_function(X) > 0, y == 1)  # exact decisions
    assert np.array_equal(parser.parse(corpus, n_jobs=2).heads, parsed.heads)
