"""Plans keep counts of their training records, with which new records are compared."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

import unkernel
from unkernel import CuttingPlaneSVC, PolyRegressor, RecordEncoder, TableEstimator
from unkernel.errors import FormatError
from unkernel.records.plan import Plan
from unkernel.records.value_counts import make_marking_plan

RECORDS = [
    {
        "job": ["baker", "pilot", "clerk", None][k % 4] if k else "rare",
        "age": 20 + k if k % 5 else None,
        "code": [7, 3.5, "x"][k % 3],
        "member": k % 3 > 0,
        "day": f"2024-{1 + k % 12:02}-01" if k % 6 else None,
        "moment": datetime.datetime(2020 + k % 5, 1, 1, k % 24) if k % 7 else None,
        "tags": ["tall", "young"][: 1 + k % 2] if k % 8 else None,
        "note": f"some words that nobody should read again {k}" if k % 9 else None,
    }
    for k in range(60)
]
LABELS = ["yes" if k % 3 else "no" for k in range(60)]
KINDS = {"job": "category", "code": "category", "member": "category"}


def count_slowly(records: list[dict[str, Any]], min_count: int) -> tuple[dict[str, int], dict[str, int]]:
    """Return the missing values of each column, and the rare values of columns of categories."""
    missing = {name: sum(record.get(name) is None for record in records) for name in RECORDS[0]}
    unknown = {}
    for name in KINDS:
        counts = Counter(record[name] for record in records if record.get(name) is not None)
        unknown[name] = sum(count for count in counts.values() if count < min_count)
    return missing, unknown


@pytest.mark.parametrize("min_count", [1, 3])
@pytest.mark.parametrize("make_table", [list, pd.DataFrame], ids=["dicts", "pandas"])
def test_missing_and_rare_values_are_counted(make_table: Any, min_count: int) -> None:
    training = RecordEncoder(kinds=KINDS, min_count=min_count).fit(make_table(RECORDS), LABELS).plan_.training
    assert (training.missing, training.unknown) == count_slowly(RECORDS, min_count)
    assert (training.n_records, training.classes) == (60, {"no": 20, "yes": 40})


def test_arrow_tables_are_counted_like_dicts() -> None:
    records = [{name: record[name] for name in ("job", "age", "day", "moment", "tags")} for record in RECORDS]
    expected = RecordEncoder(min_count=2).fit(records).plan_.training
    assert RecordEncoder(min_count=2).fit(pa.Table.from_pylist(records)).plan_.training == expected
    assert expected.missing["age"] == 12 and expected.unknown == {"job": 1}


@given(st.integers(1, 4), st.lists(st.sampled_from(RECORDS), min_size=1, max_size=30))
@settings(max_examples=30, derandomize=True, deadline=None)
def test_marks_of_the_training_records_are_their_counts(
    min_count: int, records: list[dict[str, Any]]
) -> None:
    """Two ways of counting agree: summaries of columns, and a plan that marks values."""
    plan = RecordEncoder(kinds=KINDS, min_count=min_count).fit(records).plan_
    marking = make_marking_plan(plan)
    counts = marking.count(marking.plan.encode(records))
    assert (counts["missing"], counts["unknown"]) == (plan.training.missing, plan.training.unknown)
    one_by_one = Counter(
        marking.marks[feature]
        for record in records
        for feature in marking.plan.encode_one(record)[0].tolist()
    )
    assert {mark: one_by_one[mark] for mark in marking.marks} == {
        mark: counts[mark.what][mark.column] if mark.what else one_by_one[mark] for mark in marking.marks
    }


def test_values_that_training_did_not_see_are_unknown() -> None:
    plan = RecordEncoder(kinds=KINDS, min_count=1).fit(RECORDS).plan_
    marking = make_marking_plan(plan)
    new = [{"job": "sailor", "code": "7", "member": 3, "age": math.nan, "tags": ["new"], "note": "ü"}, {}]
    counts = marking.count(marking.plan.encode(new))
    assert counts["unknown"] == {"job": 1, "code": 1, "member": 1}
    assert counts["missing"] == {**dict.fromkeys(RECORDS[0], 1), "age": 2, "day": 2, "moment": 2}


def test_numbers_are_counted_by_deciles() -> None:
    targets = np.array([1.0] * 30 + list(range(2, 32)))
    training = RecordEncoder().fit(RECORDS, targets).plan_.training
    intervals = np.searchsorted(training.bounds, targets)
    assert training.bounds[0] == 1 and training.bounds[-1] == 25
    assert (
        list(training.interval_counts) == np.bincount(intervals, minlength=len(training.bounds) + 1).tolist()
    )


@pytest.mark.parametrize(
    "targets",
    [
        None,
        [[1, 2]] * 60,
        [[1], [2, 3]] * 30,
        [1] * 59,
        [math.nan] * 60,
        [{}] * 60,
        [*range(60), ["a"]][1:],
    ],
)
def test_targets_that_are_not_one_label_per_record_are_not_counted(targets: Any) -> None:
    training = RecordEncoder().fit(RECORDS, targets).plan_.training
    assert not training.classes and not training.bounds and training.n_records == 60


def test_models_keep_the_counts(tmp_path: Path) -> None:
    pipeline = make_pipeline(RecordEncoder(), CuttingPlaneSVC(C=1)).fit(RECORDS, LABELS)
    numbers = make_pipeline(RecordEncoder(), PolyRegressor()).fit(RECORDS, np.arange(60.0))
    for source in (pipeline, numbers, TableEstimator(max_seconds=1e-9).fit(RECORDS, LABELS)):
        fast = unkernel.compile(source, measure=False)
        fast.save(tmp_path / "m.uk")
        loaded = unkernel.load(tmp_path / "m.uk").plan.training
        assert loaded == fast.plan.training
        assert loaded.classes or loaded.bounds
        assert loaded.missing == count_slowly(RECORDS, 1)[0]


def test_counts_of_files_are_checked() -> None:
    plan = RecordEncoder().fit(RECORDS, np.arange(60.0)).plan_
    arrays, stored = plan.to_container("plan.")
    without = {name: value for name, value in stored.items() if name != "training"}
    assert Plan.from_container("old.uk", arrays, without).training is None
    assert Plan.from_container("new.uk", arrays, stored).training == plan.training
    for change in (
        {"records": 59.0},
        {"records": -1},
        {"records": True},
        {"missing": {"age": 61}},
        {"missing": {"age": 0.5}},
        {"missing": {"no column": 1}},
        {"unknown": {"job": math.nan}},
        {"unknown": []},
        {"classes": {"yes": 40, "no": 40}},
        {"bounds": [1.0, 1.0]},
        {"bounds": [math.inf]},
        {"bounds": ["1"]},
        {"interval_counts": [60]},
        {"interval_counts": [60] * 10},
    ):
        with pytest.raises(FormatError, match="the plan of the model is damaged"):
            Plan.from_container("m.uk", arrays, stored | {"training": stored["training"] | change})
