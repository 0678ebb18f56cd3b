"""RecordEncoder: kinds of columns, features and their names, and all forms of records."""

from __future__ import annotations

import math
import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from unkernel import RecordEncoder

RECORDS = [
    {"job": "clerk", "age": 20, "note": "one two three four five 1", "tags": ["x", "y"], "ok": True},
    {"job": "clerk", "age": 30, "note": "one two three four five 2", "tags": ["x"], "ok": False},
    {"job": "pilot", "age": 40, "note": "six one two three seven 3", "tags": [], "ok": True},
    {"job": None, "age": None, "note": None, "tags": None, "ok": None},
]
COLUMNS = {name: [record[name] for record in RECORDS] for name in RECORDS[0]}
KINDS = {"job": "category", "age": "binned", "note": "text", "tags": "strings", "ok": "category"}


@parametrize_with_checks([RecordEncoder()])
def test_passes_the_estimator_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([RecordEncoder(n_bins=3, min_count=1)])
def test_other_parameters_pass_the_estimator_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def features(encoder: RecordEncoder, record: dict[str, Any]) -> list[str]:
    """Return the names of a record's features."""
    row = encoder.transform([record])
    return encoder.get_feature_names_out()[row.indices].tolist()


def test_kinds_are_found() -> None:
    assert RecordEncoder().fit(RECORDS).kinds_ == KINDS


def test_kinds_can_be_given() -> None:
    given_kinds = {"age": "number", "job": "drop", "note": "category", "ok": "binned"}
    encoder = RecordEncoder(kinds=given_kinds, min_count=1).fit(RECORDS)
    assert encoder.kinds_ == KINDS | given_kinds
    names = encoder.get_feature_names_out().tolist()
    assert "age" in names
    assert "age is missing" in names
    assert not any(name.startswith("job") for name in names)


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ({"wage": "number"}, "kinds names a column 'wage' that X does not have"),
        ({"age": "nothing"}, "the kind of column 'age' is 'nothing', and must be one of category, number"),
        (dict.fromkeys(COLUMNS, "drop"), "every column is dropped"),
        ({"tags": "category"}, "column 'tags' is a category, and holds a value of type list"),
        ({"job": "binned"}, "column 'job' is a number, and holds something else"),
        ({"age": "text"}, "column 'age' is a text, and holds a value of type int"),
        ({"age": "strings"}, "column 'age' is a list of strings, and holds a value of type int"),
    ],
)
def test_kinds_that_do_not_fit_are_refused(kinds: dict[str, str], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        RecordEncoder(kinds=kinds).fit(RECORDS)


def test_features_have_names_that_people_read() -> None:
    encoder = RecordEncoder(min_count=1, n_bins=2).fit(RECORDS)
    assert features(encoder, RECORDS[0] | {"note": "ONE, two!"}) == [
        "job = clerk",
        "ok = True",
        "age <= 24",
        "note has 'one'",
        "note has 'two'",
        "tags has 'x'",
        "tags has 'y'",
    ]


def test_intervals_of_whole_numbers_name_the_first_and_the_last() -> None:
    columns = {
        "age": [20, 21, 39, 40, 41, 50, 60, 70],
        "child": [0, 1, 2, 3, None, math.nan, 2.0, 3],
        "cold": [-9, -8, -5, -4, -2, -1, 3, 4],
        "size": [0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
        "same": [7] * 8,
        "huge": [2.0**60 * k for k in range(8)],
    }
    names = RecordEncoder(n_bins=4).fit(columns).get_feature_names_out().tolist()
    for name, first, *rest in (
        ("age", "age <= 29", "age 30–40", "age 41–54", "age >= 55"),
        ("child", "child <= 0", "child = 1", "child = 2", "child >= 3"),
        ("cold", "cold <= -7", "cold -6 to -4", "cold -3 to 0", "cold >= 1"),
        ("size", "size < 1.5", "size in [1.5, 3.5)", "size in [3.5, 5.5)", "size >= 5.5"),
        ("same", "same is a number"),
        ("huge", "huge < 1.72938e+18", "huge in [1.72938e+18, 4.03523e+18)"),
    ):
        place = names.index(first)
        assert names[place : place + 1 + len(rest)] == [first, *rest], name


def test_numbers_are_divided_at_several_resolutions() -> None:
    columns = {"x": [*range(100), None], "few": [1, 2] * 50 + [1]}
    encoder = RecordEncoder(n_bins=(8, 2)).fit(columns)
    fine, coarse = (RecordEncoder(n_bins=n_bins).fit(columns) for n_bins in (8, 2))
    names = encoder.get_feature_names_out().tolist()
    assert names[:3] == ["x <= 49", "x >= 50", "x is missing"]
    assert names.count("x is missing") == 1
    assert [name for name in names if name.startswith("few")] == ["few <= 1", "few >= 2", "few is missing"]
    assert set(names) == {*fine.get_feature_names_out(), *coarse.get_feature_names_out()}
    rows = encoder.transform(columns).toarray()
    for single in (fine, coarse):
        places = [names.index(name) for name in single.get_feature_names_out()]
        np.testing.assert_array_equal(rows[:, places], single.transform(columns).toarray())


@pytest.mark.parametrize("n_bins", [(), (1,), (4, 1001), (4, 2.5), ("4",), 1, 2.5, [4, 16]])
def test_numbers_of_bins_are_checked(n_bins: Any) -> None:
    with pytest.raises(ValueError, match="n_bins"):
        RecordEncoder(n_bins=n_bins).fit({"x": [1.0, 2.0]})


def test_whole_numbers_lie_in_the_interval_that_names_them() -> None:
    generator = np.random.default_rng(5)
    for scale in (5, 40, 10_000, 2**50):
        values = generator.integers(-scale, 3 * scale, 200).astype(np.float64)
        encoder = RecordEncoder(n_bins=9).fit({"x": values})
        names = encoder.get_feature_names_out()
        neighbours = np.unique([values, values - 1, values + 1])
        for value, place in zip(
            neighbours.tolist(), encoder.transform({"x": neighbours}).indices, strict=True
        ):
            words = names[place].replace("–", " to ").split()[1:]
            match words:
                case ["<=", last]:
                    assert value <= int(last)
                case [">=", first]:
                    assert value >= int(first)
                case ["=", only]:
                    assert value == int(only)
                case [first, "to", last]:
                    assert int(first) <= value <= int(last)
                case _:
                    raise AssertionError(names[place])


def test_missing_values_have_a_feature_each() -> None:
    encoder = RecordEncoder(min_count=1).fit(RECORDS)
    missing = [f"{name} is missing" for name in ("job", "ok", "age", "note", "tags")]
    assert features(encoder, RECORDS[3]) == missing
    assert features(encoder, dict.fromkeys(COLUMNS, math.nan)) == missing
    assert features(encoder, {}) == missing


def test_rare_and_unseen_categories_share_a_feature() -> None:
    encoder = RecordEncoder(min_count=2).fit(RECORDS)
    record = {"age": 20, "note": "one", "tags": ["x"], "ok": True}
    for job in ("pilot", "smith", 7):
        assert "job = (other)" in features(encoder, record | {"job": job})
    assert "job = clerk" in features(encoder, record | {"job": "clerk"})
    assert "tags has 'y'" not in encoder.get_feature_names_out()


def test_number_columns_are_divided_by_their_standard_deviation() -> None:
    encoder = RecordEncoder(kinds={"x": "number"}).fit({"x": [0.0, 2.0, None, 4.0]})
    deviation = np.std([0.0, 2.0, 4.0])
    result = encoder.transform({"x": [2.0, None, 5.0]}).toarray()
    np.testing.assert_allclose(result, [[2 / deviation, 0], [0, 1], [5 / deviation, 0]])


def test_every_way_to_give_records_gives_the_same_rows() -> None:
    pandas = pytest.importorskip("pandas")
    encoder = RecordEncoder(min_count=1, n_bins=3).fit(RECORDS)
    expected = encoder.transform(RECORDS)
    frame = pandas.DataFrame(COLUMNS)
    nullable = frame.astype({"age": "Int64", "job": "string", "ok": "boolean"})
    for X in (COLUMNS, frame, nullable, frame.astype({"job": "category"}), frame[frame.columns[::-1]]):
        assert (encoder.transform(X) != expected).nnz == 0
        refitted = RecordEncoder(min_count=1, n_bins=3).fit(X)
        assert set(refitted.get_feature_names_out()) == set(encoder.get_feature_names_out())


def test_frames_of_polars_are_records() -> None:
    polars = pytest.importorskip("polars")
    encoder = RecordEncoder(min_count=1, n_bins=3).fit(RECORDS)
    flat = {name: values for name, values in COLUMNS.items() if name != "tags"}
    expected = encoder.transform(flat)
    assert (encoder.transform(polars.DataFrame(flat)) != expected).nnz == 0


def test_arrays_have_no_names() -> None:
    X = np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 6.0]])
    encoder = RecordEncoder(n_bins=2).fit(X)
    assert not hasattr(encoder, "feature_names_in_")
    assert encoder.get_feature_names_out().tolist()[:2] == ["x0 <= 1", "x0 >= 2"]
    assert encoder.transform(X.tolist()).toarray().tolist() == encoder.transform(X).toarray().tolist()
    with pytest.raises(ValueError, match="X has 3 features, but"):
        encoder.transform(np.zeros((2, 3)))


def test_duplicate_and_invalid_column_names_are_refused() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="two columns have the name 'a'"):
        RecordEncoder().fit(pandas.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(TypeError, match="names of columns must be strings, and there is 0"):
        RecordEncoder().fit(pandas.DataFrame([[1, 2]]))
    with pytest.raises(TypeError, match="names of columns must be strings, and there is 1"):
        RecordEncoder().fit({1: [1, 2]})
    with pytest.raises(ValueError, match="the columns have different lengths: 1, 2"):
        RecordEncoder().fit({"a": [1, 2], "b": [1]})


@pytest.mark.parametrize("value", [{"b": 1}, b"bytes", object(), 1j])
def test_values_without_features_are_refused_by_name(value: Any) -> None:
    with pytest.raises(TypeError, match=r"column 'a' holds values of type .*kinds={'a': 'drop'}"):
        RecordEncoder().fit([{"a": value}])
    dropped = RecordEncoder(kinds={"a": "drop"}).fit([{"a": value, "b": 1}])
    assert dropped.transform([{"a": value, "b": 1}]).nnz == 1


@pytest.mark.parametrize("value", [10**400, "\ud800", math.inf])
def test_values_that_cannot_be_kept_are_refused_by_name(value: Any) -> None:
    with pytest.raises(ValueError, match="'a'"):
        RecordEncoder().fit_transform([{"a": value}])


def test_clone_and_pickle() -> None:
    encoder = RecordEncoder(n_bins=5, min_count=1, kinds={"age": "number"}).fit(RECORDS)
    assert clone(encoder).get_params() == encoder.get_params()
    unpickled = pickle.loads(pickle.dumps(encoder))
    assert (unpickled.transform(RECORDS) != encoder.transform(RECORDS)).nnz == 0


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table, lambda columns: columns])
def test_categories_that_are_nearly_all_numbers_warn(make):
    ages = [str(18 + place % 60) for place in range(500)]
    for values, warned in ((ages, False), ([*ages[1:], "abc"], True), ([*ages[1:], "NA"], False)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            RecordEncoder().fit(make({"age": values, "job": ["clerk", "pilot"] * 250}))
            RecordEncoder(kinds={"age": "category"}).fit(make({"age": values}))
        words = (
            "column 'age' is taken for categories: 60 of its 61 different values are numbers, but not 'abc'"
        )
        assert [str(warning.message).startswith(words) for warning in caught] == [True] * warned
