"""Native summaries of columns equal the summaries of the slow twin in Python, also for rare values."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import record_encoder as twin
from unkernel import RecordEncoder
from unkernel._core import ColumnSummary, summarize
from unkernel.records import steps
from unkernel.records.column_summary import ColumnFacts, Records, infer_kind, summarize_columns

MISSING = st.sampled_from([None, math.nan])
WORDS = st.sampled_from(
    [
        "a",
        "b",
        "",
        " ",
        "clerk",
        "a longer text of words",
        "Married-civ-spouse",
        "12345678",
        "x" * 24,
        "x" * 30,
    ]
)
TEXTS = WORDS | st.text(
    alphabet=st.characters(exclude_categories=["Cs"], max_codepoint=0x10FFFF), max_size=30
)
REALS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-3, 3).map(float)
INTEGERS = st.integers(-(2**53), 2**53)
LISTS = st.lists(WORDS, max_size=4) | st.tuples(WORDS, WORDS) | st.frozensets(WORDS, max_size=3)
COLUMNS = st.one_of(
    *(
        st.lists(values | MISSING, max_size=40)
        for values in (
            TEXTS,
            WORDS,
            REALS,
            INTEGERS,
            st.booleans(),
            LISTS,
            st.dates() | st.datetimes() | st.dates().map(str) | st.datetimes().map(str),
            st.dates() | INTEGERS | WORDS,
            TEXTS | INTEGERS | REALS | st.booleans(),
            WORDS | LISTS | st.just(1j),
        )
    )
)


def facts(values: Any, kind: str) -> ColumnFacts:
    return ColumnFacts("a", 0, kind, summarize(values, "a", kind in ("binned", "number")))


def outcome(find: Callable[[], Any]) -> Any:
    """Return the result of a function, or the type of its error."""
    try:
        result = find()
    except (TypeError, ValueError) as error:
        return type(error)
    return result.tolist() if isinstance(result, np.ndarray) else result


@given(COLUMNS, st.integers(1, 3), st.integers(2, 6))
def test_facts_equal_the_twin(values: list[Any], min_count: int, n_bins: int) -> None:
    def assert_same_outcome(actual: Callable[[], Any], expected: Callable[[], Any]) -> None:
        assert outcome(actual) == outcome(expected)

    assert_same_outcome(
        lambda: infer_kind("a", summarize(values, "a", False)), lambda: twin.kind_of("a", values)
    )
    column = facts(values, "category")
    assert_same_outcome(
        lambda: column.categories(min_count),
        lambda: twin.frequent_categories("a", values, min_count),
    )
    assert_same_outcome(
        lambda: column.words(steps.text_table(0), min_count),
        lambda: twin.frequent_words("a", values, min_count),
    )
    assert_same_outcome(lambda: column.items(min_count), lambda: twin.frequent_items("a", values, min_count))
    if all(value is None or isinstance(value, (int, float)) for value in values):
        numbers = facts(values, "binned")
        assert_same_outcome(lambda: numbers.edges(n_bins), lambda: twin.edges("a", values, n_bins))


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False) | st.integers(0, 5).map(float), max_size=50),
    st.integers(1, 60),
    st.integers(2, 10),
)
def test_edges_ascend_and_part_the_values(values: list[float], times: int, n_bins: int) -> None:
    array = np.array(values * times, dtype=np.float64)  # many values use another sort than few
    edges = facts(array, "binned").edges(n_bins)
    np.testing.assert_array_equal(edges, twin.quantile_edges(array, n_bins))
    assert len(edges) < n_bins
    assert np.isfinite(edges).all()
    assert (np.diff(edges) > 0).all()
    counts = np.bincount(np.searchsorted(edges, array, side="right"), minlength=len(edges) + 1)
    if len(array):
        assert (counts > 0).all()


def test_frequent_values_have_a_separate_interval() -> None:
    edges = facts(np.array([0.0] * 90 + list(range(1, 11))), "binned").edges(4)
    assert edges[0] == 0.5
    assert len(edges) == 3
    assert not len(facts(np.array([3.0, 3.0]), "binned").edges(4))


def test_strings_are_counted_by_value_not_by_object() -> None:
    values = ["".join(["a", "b"]) for _ in range(5)] + ["ab"] * 3
    assert facts(values, "category").categories(8) == ["ab"]


def test_numbers_and_truth_values_of_numpy_are_known() -> None:
    assert infer_kind("a", summarize([np.int8(3), np.float32(2.5), None], "a", False)) == "binned"
    assert infer_kind("a", summarize([np.bool_(True), False], "a", False)) == "category"
    assert facts([np.int64(3), np.int64(3), np.bool_(True)], "category").categories(1) == [1.0, 3.0]


COLUMNS_OF_FRAMES: dict[str, list[Any]] = {
    "text": ["a", "b\u00e9", None, "a", "x" * 40],
    "whole": [1, 2, None, 1, 7],
    "real": [0.5, None, 2.5, 1e300, 0.5],
    "truth": [True, False, None, True, True],
    "empty": [None, None, None, None, None],
    "note": [f"some words that are many, {k}" for k in "abcde"],
    "list": [["x", "y"], [], None, ["x"], ["z"]],
}


@pytest.mark.parametrize("maker", ["polars", "pyarrow", "pandas"])
def test_frames_are_learned_from_as_lists_are(maker: str) -> None:
    library = pytest.importorskip(maker)
    frame = (library.table if maker == "pyarrow" else library.DataFrame)(COLUMNS_OF_FRAMES)
    of_lists = RecordEncoder(min_count=1, n_bins=3).fit(COLUMNS_OF_FRAMES)
    encoder = RecordEncoder(min_count=1, n_bins=3)
    rows = encoder.fit_transform(frame)
    assert encoder.kinds_ == of_lists.kinds_
    assert encoder.get_feature_names_out().tolist() == of_lists.get_feature_names_out().tolist()
    assert (rows != of_lists.transform(COLUMNS_OF_FRAMES)).nnz == 0
    assert (encoder.transform(frame) != rows).nnz == 0


def test_frames_of_several_chunks_are_read_as_one() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(COLUMNS_OF_FRAMES)
    chunked = polars.concat([frame, frame.slice(1, 3)], rechunk=False)
    expected = RecordEncoder(min_count=1).fit_transform(chunked.rechunk())
    encoder = RecordEncoder(min_count=1)
    assert (encoder.fit_transform(chunked) != expected).nnz == 0
    assert encoder.get_feature_names_out().tolist()


def test_series_of_several_chunks_are_read_as_one() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": ["x", None, "y"], "b": [1, 2, 3]})
    doubled = pandas.concat([frame, frame], ignore_index=True)
    expected = RecordEncoder(min_count=1).fit_transform(doubled.to_dict("records"))
    assert (RecordEncoder(min_count=1).fit_transform(doubled) != expected).nnz == 0


def test_dropped_columns_are_not_read() -> None:
    records = Records.from_input({"a": [object()], "b": [1]}, ["a", "b"])
    kinds = {"a": "drop", "b": None}
    dropped, binned = summarize_columns(records.names, kinds, records.summaries(kinds))
    assert dropped.summary is None
    assert binned.kind == "binned"


def test_batches_encode_rows_as_single_records() -> None:
    """Batches whose columns give one feature each are encoded column by column."""
    records = [
        {"a": word, "b": number}
        for word in ["x", "Married-civ-spouse", "y" * 30, None, "", "é" * 9, 3]
        for number in [0, 1.5, None, math.nan, -7, 10**6]
    ]
    encoder = RecordEncoder(min_count=7, n_bins=4).fit(records)
    rows = encoder.transform(records)
    for number, record in enumerate(records):
        ids, values = encoder.plan_.encode_one(record)
        assert ids.tolist() == rows[number].indices.tolist()
        assert values.tolist() == rows[number].data.tolist()
    with pytest.raises(ValueError, match=r"row 1: column 'b': expected a number, got the string 'z'"):
        encoder.transform([{"a": "x", "b": 1}, {"a": "x", "b": "z"}])


# --- Parts of a column, joined in any order, equal the whole column -----------------------------------------

ALL = 2**62
NUMBERS = st.lists(
    st.floats(allow_nan=False, allow_infinity=False) | st.integers(0, 40).map(float) | st.just(-0.0),
    max_size=60,
)
CUTS = st.lists(st.integers(0, 60), max_size=4)


def join_summaries(parts: list[Any], max_entries: int) -> ColumnSummary:
    """Return the summary of parts that are joined in two steps, after pickling."""
    states = [summarize(part, "a", False).state(max_entries) for part in parts]
    first_half = ColumnSummary("a")
    for state in states[: len(states) // 2]:
        first_half.join(pickle.loads(pickle.dumps(state)), max_entries)
    joined_summary = ColumnSummary("a")
    for state in [*states[len(states) // 2 :], first_half.state(max_entries)]:
        joined_summary.join(pickle.loads(pickle.dumps(state)), max_entries)
    return joined_summary


def split_values(values: Any, cuts: list[int]) -> list[Any]:
    bounds = [0, *sorted(min(cut, len(values)) for cut in cuts), len(values)]
    return [values[begin:end] for begin, end in itertools.pairwise(bounds)]


@given(NUMBERS, CUTS, st.sampled_from([1, 2, 5, 20, 1000]), st.integers(2, 6))
def test_numbers_do_not_depend_on_the_parts(
    values: list[float], cuts: list[int], max_entries: int, n_bins: int
) -> None:
    array = np.array(values, dtype=np.float64)
    lows, highs, counts, dropped = join_summaries(split_values(array, cuts), max_entries).counted_numbers()
    expected = twin.number_ranges(array, max_entries)
    assert (list(zip(lows, highs, counts, strict=True)), dropped) == expected
    edges = join_summaries(split_values(array, cuts), max_entries).edges(n_bins)
    assert (np.searchsorted(edges, lows, "right") == np.searchsorted(edges, highs, "right")).all()
    if dropped == 0:
        np.testing.assert_array_equal(edges, twin.quantile_edges(array, n_bins))


@given(COLUMNS, CUTS, st.integers(1, 3), st.integers(2, 6))
def test_facts_do_not_depend_on_the_parts(
    values: list[Any], cuts: list[int], min_count: int, n_bins: int
) -> None:
    column_summary, joined_summary = (
        summarize(values, "a", False),
        join_summaries(split_values(values, cuts), ALL),
    )
    kinds = [
        outcome(lambda summary=summary: infer_kind("a", summary))
        for summary in (column_summary, joined_summary)
    ]
    assert kinds[0] == kinds[1]
    of_column, of_parts = (
        ColumnFacts("a", 0, "category", summary) for summary in (column_summary, joined_summary)
    )
    for find in (
        lambda facts: facts.categories(min_count),
        lambda facts: facts.words(steps.text_table(0), min_count),
        lambda facts: facts.items(min_count),
        lambda facts: facts.edges(n_bins),
        lambda facts: facts.deviation(),
        lambda facts: facts.is_whole(),
        lambda facts: [facts.date_part_differs(part) for part in range(len(steps.DATE_PARTS))],
        lambda facts: [facts.date_edges(part, n_bins).tolist() for part in range(len(steps.DATE_PARTS))],
    ):
        assert outcome(lambda find=find: find(of_column)) == outcome(lambda find=find: find(of_parts))


def test_too_many_distinct_numbers_are_counted_in_ranges() -> None:
    values = np.random.default_rng(0).normal(size=5000)
    summary = join_summaries(np.array_split(values, 7), 256)
    lows, highs, counts, dropped = summary.counted_numbers()
    assert len(counts) <= 256
    assert counts.sum() == 5000
    assert dropped > 0
    assert (np.abs(highs - lows) <= np.abs(lows) * 2.0 ** (dropped - 52)).all()
    shares = np.bincount(np.searchsorted(summary.edges(8), values, "right")) / 5000
    assert np.abs(shares - 1 / 8).max() <= counts.max() / 5000
    with pytest.raises(ValueError, match="too many different numbers to be a category"):
        summary.frequent_numbers(1)


def test_arrays_of_missing_numbers_do_not_affect_the_kind() -> None:
    missing = np.full(3, np.nan)
    assert infer_kind("a", join_summaries([missing, ["x", "y"]], ALL)) == "category"
    assert infer_kind("a", join_summaries([missing, ["2026-11-17"]], ALL)) == "date"
    assert infer_kind("a", join_summaries([missing, missing], ALL)) == "binned"
    assert infer_kind("a", join_summaries([[None], [None]], ALL)) == "category"


def test_categories_of_an_array_are_named_by_their_numbers() -> None:
    facts = ColumnFacts("a", 0, "category", summarize(np.array([3.0, 7.0]), "a", False))
    assert not facts.is_boolean()
