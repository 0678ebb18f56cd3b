"""Dates of all types have the same parts as in Python's datetime module."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

import unkernel
from reference import dates as twin
from reference import records as slow
from unkernel import PolySVC, RecordEncoder
from unkernel.records import steps
from unkernel.records.files.columns import count_column_features, infer_column_kinds
from unkernel.records.plan import Plan
from unkernel.records.steps import DATE_PARTS

PARTS = range(len(DATE_PARTS))
PLAN = Plan(["when"], [steps.dates([0] * len(PARTS), PARTS, DATE_PARTS), steps.concatenate([0], DATE_PARTS)])
OFFSETS = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(
    datetime(1, 1, 3), datetime(9999, 12, 29), timezones=OFFSETS | st.none(), allow_imaginary=False
)
MANY = [datetime(2020, 1, 1) + timedelta(hours=1009 * k) for k in range(400)]


def parts(value: Any) -> list[float]:
    ids, values = PLAN.encode_one({"when": value})
    result = np.zeros(len(PARTS))
    result[ids] = values
    return result.tolist()


def expected(value: Any) -> list[float]:
    return [twin.part_of(value, part) for part in DATE_PARTS]


@given(MOMENTS)
def test_objects_and_strings_give_the_same_dates(moment: datetime) -> None:
    assert parts(moment) == expected(moment)
    assert parts(moment.isoformat()) == parts(str(moment)) == expected(moment)
    assert parts(moment.date()) == expected(moment.date())


@given(
    st.text(alphabet="0123456789-:TZ +.,", max_size=30)
    | MOMENTS.map(str).flatmap(lambda text: st.integers(0, len(text)).map(lambda end: text[:end]))
)
def test_strings_are_read_like_by_the_slow_twin(text: str) -> None:
    if twin.parse_moment(text) is None:
        with pytest.raises(
            ValueError, match=r"column 'when': (expected a date such as|the year of the date)"
        ):
            parts(text)
    else:
        assert parts(text) == expected(text)


@pytest.mark.parametrize("unit", ["Y", "M", "D", "h", "m", "s", "ms", "us", "ns"])
@given(seconds=st.integers(-(2**31), 2**33))
def test_numpy(unit: str, seconds: int) -> None:
    moment = np.datetime64(seconds, "s").astype(f"datetime64[{unit}]")
    assert parts(moment) == expected(np.datetime_as_string(moment, "s"))
    if unit == "ns":
        assert parts(pd.Timestamp(moment)) == parts(moment)


@pytest.mark.parametrize("missing_value", [None, math.nan, pd.NaT, np.datetime64("NaT")])
def test_missing(missing_value: Any) -> None:
    encoder = RecordEncoder().fit([{"when": moment} for moment in MANY])
    row = encoder.transform([{"when": missing_value}])
    assert [encoder.get_feature_names_out()[k] for k in row.indices] == ["when is missing"]
    assert (encoder.transform([{}]) != row).nnz == 0


def tables() -> list[Any]:
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    naive = [None, *MANY]
    in_utc = [None, *(moment.replace(tzinfo=UTC) for moment in MANY)]
    in_another_zone = [moment and moment.astimezone(timezone(timedelta(hours=-7))) for moment in in_utc]
    result: list[Any] = [
        [{"when": moment} for moment in naive],
        {"when": [moment and moment.isoformat() for moment in in_another_zone]},
        {"when": np.array(naive, dtype="datetime64[s]")},
        pd.DataFrame({"when": naive}),
        pd.DataFrame({"when": pd.Series(in_another_zone)}),
        pl.DataFrame({"when": naive}),
        pl.DataFrame({"when": in_utc}),
        pa.table({"when": pa.array([moment and str(moment) for moment in naive])}),
    ]
    result += [pa.table({"when": pa.array(naive, pa.timestamp(unit))}) for unit in ("s", "ms", "us", "ns")]
    return [*result, pa.table({"when": pa.array(in_utc, pa.timestamp("us", "UTC"))}).slice(0)]


def test_every_table_gives_the_same_rows() -> None:
    expected_rows = None
    for table in tables():
        encoder = RecordEncoder().fit(table)
        assert encoder.kinds_ == {"when": "date"}
        rows = encoder.transform(table).toarray()
        names = encoder.get_feature_names_out().tolist()
        expected_rows = (names, rows) if expected_rows is None else expected_rows
        assert names == expected_rows[0]
        np.testing.assert_array_equal(rows, expected_rows[1])
    records = [{"when": moment} for moment in (None, *MANY)]
    plan = RecordEncoder().fit(records).plan_
    for record, row in zip(records, expected_rows[1] if expected_rows else [], strict=True):
        assert slow.encode(plan, record) == {int(k): 1.0 for k in np.flatnonzero(row)}


def test_days_of_arrow() -> None:
    pa = pytest.importorskip("pyarrow")
    days = [moment.date() for moment in MANY]
    expected = RecordEncoder().fit_transform([{"when": day} for day in days])
    for kind in (pa.date32(), pa.date64()):
        assert (RecordEncoder().fit_transform(pa.table({"when": pa.array(days, kind)})) != expected).nnz == 0


def test_names_of_features() -> None:
    encoder = RecordEncoder(n_bins=2).fit([{"when": moment} for moment in MANY])
    names = encoder.get_feature_names_out().tolist()
    assert len(names) == 2 + 1 + 12 + 2 + 7 + 24
    row = encoder.transform([{"when": "2026-11-17 14:05"}])
    assert [names[k] for k in row.indices][1:2] + [names[k] for k in row.indices][3:] == [
        "when month = November",
        "when weekday = Tuesday",
        "when hour = 14",
    ]
    assert names[row.indices[0]].startswith("when year ") and names[row.indices[2]].startswith("when day ")
    assert infer_column_kinds(encoder.plan_) == {"when": "date"}
    assert count_column_features(encoder.plan_) == {"when": len(names)}


def test_parts_that_never_differ_are_left_out() -> None:
    days = [{"when": date(2026, 11, day)} for day in range(1, 20)]
    names = RecordEncoder(n_bins=3).fit(days).get_feature_names_out()
    assert {name.split(" ")[1] for name in names} == {"day", "weekday", "is"}
    assert RecordEncoder().fit(days[:1]).get_feature_names_out().tolist() == [
        "when is a date",
        "when is missing",
    ]


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (["2026-11-17", "soon"], "'soon'"),
        ([date(2026, 11, 17), 3.5], "float"),
        ([date(2026, 11, 17), time(3, 5)], "time"),
        ([["2026-11-17"]], "list"),
    ],
)
def test_values_that_are_not_dates_are_refused(values: list[Any], problem: str) -> None:
    with pytest.raises(ValueError, match=f"column 'when' is a date, and holds something else: {problem}"):
        RecordEncoder(kinds={"when": "date"}).fit({"when": values})


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("2026-02-30", "expected a date such as 2026-11-17 or 2026-11-17T14:05, got the string '2026-02-30'"),
        (20261117, "expected a date, got a number"),
        (["2026-11-17"], "expected a date, got a list or a dict"),
        (b"2026-11-17", "expected a number, a string or a date, got a value of type bytes"),
    ],
)
def test_records_that_cannot_be_read(value: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parts(value)


def test_years_beyond_9999_are_refused() -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"when": pa.array([10**12], pa.timestamp("s"))})
    with pytest.raises(ValueError, match="column 'when' holds a date outside the years 1 to 9999"):
        RecordEncoder().fit(table)
    with pytest.raises(ValueError, match="column 'when': the year of the date is not one of 1 to 9999"):
        PLAN.encode(table)


def test_dates_in_other_columns_are_refused() -> None:
    numbers = RecordEncoder().fit([{"a": float(k), "b": "xy"[k % 2]} for k in range(10)])
    with pytest.raises(ValueError, match="column 'a': expected a number, got a date"):
        numbers.plan_.encode_one({"a": date(2026, 11, 17)})
    with pytest.raises(ValueError, match="column 'b': expected a category, got a date"):
        numbers.plan_.encode_one({"b": date(2026, 11, 17)})


def test_a_model_of_weekends(tmp_path: Any) -> None:
    records = [{"when": moment, "who": "ab"[k % 2]} for k, moment in enumerate(MANY)]
    y = [moment.weekday() >= 5 and 8 <= moment.hour < 18 for moment in MANY]
    model = unkernel.compile(make_pipeline(RecordEncoder(n_bins=16), PolySVC(2, C=10.0)).fit(records, y))
    model.save(tmp_path / "weekends.uk")
    reloaded = unkernel.load(tmp_path / "weekends.uk")
    assert np.mean(reloaded.predict(records) == y) > 0.95
    assert reloaded.predict_one({"when": "2027-03-06T10:00", "who": "a"}) == np.True_
    assert "when weekday = Saturday" in str(reloaded.explain_one({"when": "2027-03-06T10:00", "who": "a"}))
    bound = reloaded.bind({"who": "a"})
    assert bound.score_one({"when": MANY[0]}) == pytest.approx(
        reloaded.score_one({"who": "a", "when": MANY[0]})
    )
