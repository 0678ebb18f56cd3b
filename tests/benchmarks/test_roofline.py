"""The counts of the benchmark of limits, against counting by hand."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return sparse.csr_matrix((rng.random((20, 9)) < rng.random(9)).astype(float))


def test_features_are_ranked_by_frequency(rows):
    import roofline

    counts = np.asarray(roofline.renumber_by_frequency(rows).sum(axis=0)).ravel()
    assert (np.diff(counts) <= 0).all() and counts.sum() == rows.nnz


@pytest.mark.parametrize("degree", [2, 3])
def test_conjunctions_are_all_sets_of_features_with_distinct_places(rows, degree):
    import roofline

    keys = roofline.combinations(rows, degree)
    sets = [
        [chosen for size in range(1, degree + 1) for chosen in itertools.combinations(row.indices, size)]
        for row in (rows[i] for i in range(rows.shape[0]))
    ]
    assert [len(found) for found in keys] == [len(found) for found in sets]
    distinct = {frozenset(chosen) for found in sets for chosen in found}
    places = roofline.rank_keys(keys)
    assert len(np.unique(np.concatenate(keys))) == len(distinct)
    assert places.min() == 0 and places.max() == len(distinct) - 1


def test_reads_have_the_speed_of_the_cache_level_that_holds_them():
    import roofline

    machine = roofline.Machine({"stream 100": 4.0, "stream 1000": 2.0, "double": 8.0})
    assert machine.stream(8, 50) == 2.0 and machine.stream(8, 101) == 4.0 and machine.stream(8, 1e9) == 4.0
    assert machine.arithmetic(16) == 2.0


def test_the_slowest_resource_is_the_limit():
    import roofline
    from harness import Report, Times

    report = Report("roofline", quick=True)
    step = roofline.Step(Times([10.0, 8.0]), {"bytes": 1.0, "random reads": 4.0}, {"random reads": 3.0})
    roofline.add(report, "loop", step)
    result = {(figure.contender, figure.figure): figure for figure in report.figures}
    assert result["unkernel", "share of the limit"].value == 0.5
    limit = result[roofline.LIMIT, "time"]
    assert limit.value == 4.0 and limit.note == "random reads"


def test_shuffling_moves_rows_by_less_than_1024_places():
    import roofline

    order = roofline.shuffled_nearby(3000)
    assert np.array_equal(np.sort(order), np.arange(3000))
    assert (np.abs(order - np.arange(3000)) < 1024).all()
