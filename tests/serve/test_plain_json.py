"""Records read from JSON without creating objects have the same answers as with objects."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

import unkernel
from serve.serving import RECORDS, record_model
from unkernel import PolySVC, RecordEncoder
from unkernel._core import JsonShape
from unkernel.serve.answerers import Answerer, make_answerer

MOST = 1000


@pytest.fixture(scope="module")
def people() -> Answerer:
    return make_answerer(record_model())


def slow(answerer: Answerer, text: bytes) -> list[Any]:
    return answerer.answer_many(msgspec.json.decode(text))


def quick(answerer: Answerer, text: bytes, *, lines: bool = False) -> list[Any] | None:
    result = answerer.answer_json(text, JsonShape.LINES if lines else JsonShape.LIST, MOST)
    if result is None:
        return None
    return [json.loads(line) for line in result.splitlines()] if lines else json.loads(result)


def equal(actual: list[Any] | None, expected: list[Any]) -> bool:
    """Return whether answers are the same to the last bit."""
    return actual is not None and actual == expected


VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(10**15) + 1, 10**15 - 1)
    | st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)
)
TOWNS = st.sampled_from(["Kyoto", "Nara", "", "a b", "%s", "é", 'a"b', "\\", "\n", "\x7f"])
PLAIN = st.fixed_dictionaries({}, optional={"age": VALUES, "town": TOWNS, "other": VALUES | TOWNS})


@given(st.lists(PLAIN), st.booleans(), st.integers(0, 2))
def test_quick_and_slow_answers_are_equal(
    people: Answerer, records: list[Any], ascii_only: bool, indent: int
):
    text = json.dumps(records, ensure_ascii=ascii_only, indent=indent or None).encode()
    result = quick(people, text)
    is_plain = all(
        record.get(key, "x").isprintable()
        and record.get(key, "x").isascii()
        and not set('"\\') & set(record.get(key, "x"))
        for record in records
        for key in ("town", "other")
        if isinstance(record.get(key, "x"), str)
    )
    if is_plain:
        assert result is not None
    if result is not None:
        assert equal(result, slow(people, text))
    for record in records:
        answer = people.answer_json(json.dumps(record).encode(), JsonShape.ONE, 1)
        assert answer is None or equal([json.loads(answer)], [people.answer_one(record)])
    lines = "".join(json.dumps(record, ensure_ascii=ascii_only) + "\n" for record in records).encode()
    by_line = quick(people, lines, lines=True)
    if by_line is not None:
        assert equal(by_line, slow(people, text))


@given(st.data())
def test_accepted_json_is_read_as_by_msgspec(people: Answerer, data: Any):
    """Bytes are inserted, removed and changed: invalid JSON must not be answered."""
    text = bytearray(json.dumps(RECORDS[:2]).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(text) - 1))
        byte = data.draw(st.sampled_from(list(b'{}[]",:+-.0123456789eEntf\\ \n\x00\x1f\x80\xff')))
        text[place : place + data.draw(st.integers(0, 2))] = bytes([byte]) * data.draw(st.integers(0, 1))
    result = quick(people, bytes(text))
    if result is not None:
        assert equal(result, slow(people, bytes(text)))


@pytest.mark.parametrize(
    "text",
    [
        b"[", b"[{}", b"[{},]", b"[{}]x", b"[{} {}]", b"{}", b"[7]", b"[[1]]", b"[null]",
        b'[{"age": 01}]', b'[{"age": +1}]', b'[{"age": .5}]', b'[{"age": 1.}]', b'[{"age": 1e}]',
        b'[{"age": -}]',
        b'[{"age": 1e999}]', b'[{"age": 12345678901234567890}]', b'[{"age": NaN}]', b'[{"age": nul}]',
        b'[{"age": "x"}]', b'[{"age": [1]}]', b'[{"town": "\\u0041"}]', b'[{"town": "\xc3\xa9"}]',
        b'[{"town": "a}]', b'[{"town"}]', b'[{town: 1}]', b'[{"age": 1,}]', b'[{"age": tru', b'[{"age": 1',
    ],
)  # fmt: skip
def test_unusual_json_is_left_to_the_general_reader(people: Answerer, text: bytes):
    assert quick(people, text) is None


@pytest.mark.parametrize("text", [b"{} {}\n", b"{}{}", b"{\n}\n", b'{"age":\n1}', b"{},\n{}", b"[{}]\n"])
def test_lines_have_one_record_each(people: Answerer, text: bytes):
    assert quick(people, text, lines=True) is None


def test_blank_lines_are_passed_over(people: Answerer):
    result = quick(people, b"\n \n{}\r\n\t\n\n {} \n\n", lines=True)
    assert equal(result, slow(people, b"[{},{}]"))


def test_too_many_records_are_left_to_the_general_reader(people: Answerer):
    assert people.answer_json(b"[{},{}]", JsonShape.LIST, 2) is not None
    assert people.answer_json(b"[{},{},{}]", JsonShape.LIST, 2) is None
    assert people.answer_json(b" \n", JsonShape.LINES, 2) == b""
    assert people.answer_json(b"[ ] ", JsonShape.LIST, 2) == b"[]"


@pytest.mark.parametrize("text", [b"{", b"{}{}", b"{} x", b"[{}]", b"7", b'"{}"', b""])
def test_a_single_record_is_not_a_list(people: Answerer, text: bytes):
    assert people.answer_json(text, JsonShape.ONE, 1) is None


def test_long_texts_are_scored_like_short_ones(people: Answerer):
    """Long texts are scored without Python's lock, in separate buffers."""
    text = json.dumps(RECORDS * 30).encode()
    assert equal(quick(people, text), slow(people, text))


def test_escaped_column_names_are_left_to_the_general_reader():
    records = [{'a"b': number % 3, "c": number} for number in range(12)]
    y = [record['a"b'] > 0 for record in records]
    model = unkernel.compile(make_pipeline(RecordEncoder(min_count=1), PolySVC(degree=2)).fit(records, y))
    answerer = make_answerer(model)
    assert answerer.answer_json(b'{"a"b": 1, "c": 2}', JsonShape.ONE, 1) is None
    assert answerer.answer_json(b'{"c": 2}', JsonShape.ONE, 1) is not None


def test_the_last_of_repeated_keys_counts_and_keys_have_any_order(people: Answerer):
    text = b'[{"town": "Nara", "age": 3, "age": 70}, {"age": 70, "town": "Uji"}]'
    assert equal(quick(people, text), slow(people, text))


def test_records_without_required_columns_are_left_to_the_general_reader():
    import pandas as pd
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import OneHotEncoder

    columns = ColumnTransformer([("town", OneHotEncoder(handle_unknown="ignore"), ["town"])])
    y = [record["age"] > 40 for record in RECORDS]
    strict = unkernel.compile(make_pipeline(columns, LogisticRegression()).fit(pd.DataFrame(RECORDS), y))
    assert strict.plan.required
    answerer = make_answerer(strict)
    assert quick(answerer, b'[{"town": "Uji"}, {}]') is None
    text = json.dumps([*RECORDS, {"town": None}]).encode()
    assert equal(quick(answerer, text), slow(answerer, text))


@pytest.mark.parametrize("labels", [["a%b", 'c"dé'], [0, 1], ["x", "y", "z"]])
@pytest.mark.parametrize("kind", [PolySVC, unkernel.PolyLogisticRegression])
def test_written_answers_equal_the_json_of_their_objects(kind: Any, labels: list[Any]):
    y = [labels[number % len(labels)] for number in range(len(RECORDS))]
    model = unkernel.compile(make_pipeline(RecordEncoder(min_count=1), kind(degree=2)).fit(RECORDS, y))
    answerer, text = make_answerer(model), json.dumps(RECORDS).encode()
    assert equal(quick(answerer, text), slow(answerer, text))
    lines = b"".join(json.dumps(record).encode() + b"\n" for record in RECORDS)
    assert equal(quick(answerer, lines, lines=True), slow(answerer, text))
    answer = answerer.answer_json(json.dumps(RECORDS[0]).encode(), JsonShape.ONE, 1)
    assert answer is not None
    assert equal([json.loads(answer)], [answerer.answer_one(RECORDS[0])])


@pytest.mark.parametrize("shape", [JsonShape.ONE, JsonShape.LIST, JsonShape.LINES])
@pytest.mark.parametrize("kind", [PolySVC, unkernel.PolyLogisticRegression])
def test_bytes_of_answers_do_not_depend_on_the_reader(kind: Any, shape: JsonShape):
    """The bytes of an answer are the same whether or not Python objects are made of the record."""
    answerer = make_answerer(record_model(kind=kind))
    records = RECORDS[:1] if shape == JsonShape.ONE else RECORDS
    lines = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    text = {JsonShape.ONE: lines, JsonShape.LIST: json.dumps(records).encode(), JsonShape.LINES: lines}[shape]
    assert answerer.answer_json(text, shape, MOST) == answerer.answer_items(records, shape)


def test_answers_follow_a_threshold():
    model = record_model()
    probabilities = model.predict_proba(RECORDS)[:, 1]
    # Exactly the probability of a record, which is enough.
    value = float(sorted(probability for probability in probabilities if 0 < probability < 1)[0])
    decided = model.with_threshold(value)
    answerer = make_answerer(decided)
    text = json.dumps(RECORDS).encode()
    expected = [
        answer | {"prediction": label}
        for answer, label in zip(
            slow(make_answerer(model), text), decided.predict(RECORDS).tolist(), strict=True
        )
    ]
    assert expected != slow(make_answerer(model), text)
    assert slow(answerer, text) == expected
    assert quick(answerer, text) in (None, expected)
    assert json.loads(answerer.answer_items(RECORDS, JsonShape.LIST)) == expected
    assert [answerer.answer_one(record) for record in RECORDS] == expected
    assert answerer.describe()["threshold"]["value"] == value
