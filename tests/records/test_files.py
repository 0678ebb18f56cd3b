"""Files of records: results of the readers, and errors."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from unkernel import RecordEncoder
from unkernel.errors import FormatError
from unkernel.records.files import Block, delimited, format_of, open_records, read_training
from unkernel.records.files.columns import count_column_features, infer_column_kinds, infer_column_types

PEOPLE = "age,job,member,zip\n39,clerk,true,01234\n,pilot,false,99999\n50,,true,00501\n"
TYPES = {"age": "number", "job": "string", "member": "boolean", "zip": "string"}
RECORDS = [
    {"age": 39.0, "job": "clerk", "member": True, "zip": "01234"},
    {"age": None, "job": "pilot", "member": False, "zip": "99999"},
    {"age": 50.0, "job": None, "member": True, "zip": "00501"},
]


def open_text(text: str | bytes, name: str = "x.csv", **options):
    data = text.encode() if isinstance(text, str) else text
    return open_records(io.BytesIO(data), name=name, **options)


def list_records(file, types):
    return [record for block in file.blocks(types) for record in block.records()]


@pytest.fixture(params=["pyarrow", "csv"])
def parser(request, monkeypatch):
    """Read with pyarrow, and without it."""
    if request.param == "csv":
        monkeypatch.setattr(delimited, "arrow_csv", lambda: None)
    return request.param


# --- Values -------------------------------------------------------------------------------------------


def test_cells_are_converted_to_the_given_types(parser):
    assert list_records(open_text(PEOPLE), TYPES) == RECORDS


def test_only_requested_columns_are_read(parser):
    assert list_records(open_text(PEOPLE), {"job": "string"}) == [
        {"job": record["job"]} for record in RECORDS
    ]


def test_blocks_of_any_size_give_the_same_records(parser):
    text = PEOPLE + '7,"a, ""quoted""\nname",true,1\n' * 3
    expected = list_records(open_text(text), TYPES)
    assert expected[-1]["job"] == 'a, "quoted"\nname'
    for size in (1, 7, 40):
        assert list_records(open_text(text, size=size), TYPES) == expected


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [
        ("", bytes),
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".xz", lzma.compress),
        (".zst", zstandard.ZstdCompressor().compress),
    ],
)
def test_compressed_files(tmp_path, suffix, compress):
    lines = "".join(json.dumps(record) + "\n" for record in RECORDS)
    for name, text in (("p.csv", PEOPLE), ("p.tsv", PEOPLE.replace(",", "\t")), ("p.jsonl", lines)):
        path = tmp_path / (name + suffix)
        path.write_bytes(compress(text.encode()))
        assert format_of(str(path)) == name[2:]
        assert list_records(open_records(path), TYPES) == RECORDS


def test_parquet_whole_or_compressed_or_a_stream(tmp_path):
    table = pa.table({name: [record[name] for record in RECORDS] for name in TYPES})
    table = table.append_column("cost", pa.array([1, 2, 3], pa.decimal128(5, 2)))
    table = table.append_column("tags", pa.array([["a"], [], None]))
    pq.write_table(table, tmp_path / "p.parquet")
    (tmp_path / "p.parquet.gz").write_bytes(gzip.compress((tmp_path / "p.parquet").read_bytes()))
    for path in (tmp_path / "p.parquet", tmp_path / "p.parquet.gz"):
        records = list_records(open_records(path), TYPES | {"cost": "number", "tags": "string"})
        assert [record.pop("cost") for record in records] == [1.0, 2.0, 3.0]
        assert [record.pop("tags") for record in records] == [["a"], [], None]
        assert records == RECORDS
    with (tmp_path / "p.parquet").open("rb") as stream:
        assert list_records(open_records(stream, name="-"), {"age": "number"}) == [
            {"age": record["age"]} for record in RECORDS
        ]


@pytest.mark.parametrize(
    ("begin", "format"),
    [(b'{"a": 1}\n', "jsonl"), (b" \n{}", "jsonl"), (b"a,b\n1,2\n", "csv"), (b"a\tb\n1\t2\n", "tsv")],
)
def test_formats_of_unnamed_files_are_detected_from_their_first_bytes(begin, format):
    assert open_text(begin, "-").format == format


@pytest.mark.parametrize("size", [1, 3, 4096])
@pytest.mark.parametrize(
    ("text", "format"),
    [
        (PEOPLE.replace(",", "\t"), "tsv"),
        ("\n" + PEOPLE, "csv"),
        ("a\tb,c\n1\t2,3\n", "csv"),
        ("\n {}\n", "jsonl"),
    ],
)
def test_formats_are_detected_from_first_bytes_that_arrive_in_parts(text, format, size):
    assert open_text(text, "stdin", size=size).format == format


@pytest.mark.parametrize("delimiter", [";", "|", "\t"])
def test_other_delimiters_and_line_ends_and_marks(parser, delimiter):
    text = "\ufeff" + PEOPLE.replace(",", delimiter).replace("\n", "\r\n")
    assert list_records(open_text(text), TYPES) == RECORDS


@pytest.mark.parametrize("size", [1, 5, 4096])
@pytest.mark.parametrize("blank", ["\n", "\r\n\n\n", "\r"])
def test_empty_lines_before_the_header_are_left_out(parser, size, blank):
    file = open_text(blank + PEOPLE.replace(",", ";"), size=size)
    [*blocks] = file.blocks(TYPES)
    assert [record for block in blocks for record in block.records()] == RECORDS
    assert [block.line_of(row) for block in blocks for row in range(block.n_rows)] == [
        blank.count("\n") + line for line in (2, 3, 4)
    ]


@pytest.mark.parametrize("size", [1, 5, 4096])
def test_a_lone_carriage_return_ends_a_record(parser, size):
    text = PEOPLE.replace("zip\n", "zip\r").replace("01234\n", "01234\r")
    [*blocks] = open_text(text, size=size).blocks(TYPES)
    assert [record for block in blocks for record in block.records()] == RECORDS
    assert [block.line_of(row) for block in blocks for row in range(block.n_rows)] == [1, 1, 2]


cell = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=4)


@given(
    st.lists(
        st.tuples(cell, st.sampled_from(["1", "-2.5", "1e3", "", " 7 ", "NA", "nan", "inf"])), max_size=9
    )
)
def test_pyarrow_and_csv_read_equal_records(rows):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows([("name", "number"), *rows])
    types = {"name": "string", "number": "number"}
    fast = list_records(open_text(text.getvalue(), size=16), types)
    header, piece = delimited.read_header(delimited.Piece(text.getvalue().encode(), 1), "x", "csv")
    assert fast == delimited._parse_by_csv(piece, header, types, 0).records()
    assert [record["name"] for record in fast] == [name or None for name, _ in rows]


@pytest.mark.parametrize("size", [4, 1 << 20])
def test_byte_order_marks_inside_of_files_are_kept(parser, size):
    text = "\ufeffname\n\ufeffann\nbob\n\ufeffeve\n"
    records = list_records(open_text(text, size=size), {"name": "string"})
    assert [record["name"] for record in records] == ["\ufeffann", "bob", "\ufeffeve"]


@pytest.mark.parametrize("number", ["-nan", "+nan", "NAN", "nan(1)", "Nan"])
def test_other_spellings_of_nan_are_refused(parser, number):
    with pytest.raises(FormatError, match="expected a number"):
        list_records(open_text(f"a\n1\n{number}\n"), {"a": "number"})


# --- Training -----------------------------------------------------------------------------------------


def test_types_are_found(parser):
    text = "n,zip,flag,name,gap,label\n1,007,TRUE,NA,NA,a\n-2.5,010,false,x,3,b\n"
    table = read_training([open_text(text)], "label", kinds={}, drop=["name"])
    assert table.types == {
        "n": "number", "zip": "string", "flag": "boolean", "gap": "number", "label": "string",
    }  # fmt: skip
    assert table.columns["zip"] == ["007", "010"]
    np.testing.assert_array_equal(table.columns["gap"], [np.nan, 3.0])
    assert table.labels.tolist() == ["a", "b"]


def test_kinds_types_and_features_of_a_plan():
    encoder = RecordEncoder(kinds={"n": "number"}, min_count=1).fit(
        {"age": [1.0, 2.0], "n": [1.0, 2.0], "zip": ["a", "b"], "code": [7, 8], "tags": [["a"], ["b"]]}
    )
    plan = (
        RecordEncoder(kinds={"n": "number", "code": "category"}, min_count=1)
        .fit({"age": [1.0, 2.0], "n": [1.0, 2.0], "zip": ["a", "b"], "code": [7, 8], "tags": [["a"], ["b"]]})
        .plan_
    )
    assert infer_column_kinds(plan) == {
        "age": "binned", "n": "number", "zip": "category", "code": "category", "tags": "strings",
    }  # fmt: skip
    assert infer_column_types(plan) == {
        "age": "number", "n": "number", "zip": "string", "code": "number", "tags": "string",
    }  # fmt: skip
    assert sum(count_column_features(plan).values()) == plan.n_features
    assert count_column_features(encoder.plan_)["age"] == 3


def test_features_of_columns_are_counted_for_every_label_of_an_interval() -> None:
    values = {"age": [20, 30, 40, 41, 60], "cold": [-9, -7, -3, -1, 4], "size": [0.5, 1, 2, 3, 4]}
    encoder = RecordEncoder(n_bins=4).fit(values)
    assert count_column_features(encoder.plan_) == {"age": 5, "cold": 5, "size": 5}


# --- Refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 0, "the file is empty"),
        ("\n\n", 0, "the file is empty"),
        ("a,a\n1,2\n", 1, "two columns have the name 'a'"),
        ("a,\n1,2\n", 1, "column 2 has no name"),
        ("a,b\n1,2\n3\n", 3, "expected 2 fields, as the first line has, got 1"),
        ("a,b\n1,2\n\n3,4,5\n", 4, "expected 2 fields"),
        ('a,b\n1,"x\ny"\nold,z\n', 4, "column 'a': expected a number, got 'old'"),
        (b"a,b\n1,\xff\n", 2, "byte 0xFF is not UTF-8"),
        (b"a,\xff\n1,2\n", 1, "byte 0xFF is not UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), 1, "UTF-16"),
        ("a,b\n1_000,2\n", 2, "column 'a': expected a number"),
        ("a,b\n" + "9" * 100 + "x,2\n", 2, "9…'"),
    ],
)
def test_bad_tables_name_the_line(parser, text, line, words):
    with pytest.raises(FormatError, match=words) as caught:
        list(open_text(text, "x.csv").blocks({"a": "number", "b": "string"}))
    assert (caught.value.file, caught.value.line) == ("x.csv", line)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('{"a": 1}\n{"a": \n', 2, "not a JSON object"),
        ('{"a": 1}\n\n[1]\n', 3, "got a list"),
        (b'{"a": "\xff"}\n', 1, "not UTF-8"),
        ('{"a": ' + "9" * 5000 + "}\n", 1, "cannot be read|can be read"),
        ("{}\n" + "[" * 100_000 + "\n", 2, "not a JSON object"),
    ],
)
def test_bad_lines_of_json(text, line, words):
    with pytest.raises(FormatError, match=words) as caught:
        list(open_text(text, "x.jsonl").blocks({}))
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("labels", "line", "words"),
    [
        (["a", None], 2, "needs a label"),
        (["a", ["b"]], 2, "a label is a string or a number"),
        ([1, 2, "1"], 3, "the label 1 is a string in one record and none in another"),
        ([True, 1, "True"], 3, "write all as strings"),
        (["a", "b\0"], 2, "cannot end in a NUL character"),
        (["a", "\ud800"], 2, "lone surrogate"),
        ([1.0, float("inf")], 2, "cannot be infinite"),
        ([1, 2**53, 0.5], 2, "too large for an exact label"),
        ([1, 2**63], 2, "too large for an exact label"),
        ([1, 10**400], 2, "larger than any float"),
    ],
)
def test_labels_that_an_array_would_change_are_refused(labels, line, words):
    text = "".join(json.dumps({"x": 1, "y": label}) + "\n" for label in labels)
    with pytest.raises(FormatError, match=words) as caught:
        read_training([open_text(text, "x.jsonl")], "y", kinds={}, drop=())
    assert caught.value.line == line


def test_labels_of_tables_are_exact_or_refused(parser):
    with pytest.raises(FormatError, match="too large for an exact label") as caught:
        read_training([open_text("x,y\n1,2\n1,9007199254740993\n")], "y", kinds={}, drop=())
    assert caught.value.line == 3


@pytest.mark.parametrize(
    "labels", [[True, 2, False], [1, 2, 3], [0.5, 1], [True, False], ["1", "a"], [2**62, 5]]
)
def test_labels_are_distinct_as_they_were(labels):
    text = "".join(json.dumps({"x": 1, "y": label}) + "\n" for label in labels)
    result = read_training([open_text(text, "x.jsonl")], "y", kinds={}, drop=()).labels
    assert result.tolist() in (labels, list(map(str, labels)))


def test_numbers_larger_than_any_float_name_the_line(parser):
    for text, name in (
        ("x,y\n1,a\n1e999,b\n", "x.csv"),
        ('{"x":1,"y":0}\n{"x":1%s,"y":0}' % ("0" * 400), "x.jsonl"),
    ):
        with pytest.raises(FormatError, match="column 'x': the number is larger than any float") as caught:
            read_training([open_text(text, name)], "y", kinds={}, drop=())
        assert caught.value.line == text[: text.index("1e999" if name == "x.csv" else "1000")].count("\n") + 1


@pytest.mark.parametrize("options", [{"kinds": {"y": "drop"}, "drop": ()}, {"kinds": {}, "drop": ("y",)}])
def test_the_target_cannot_be_dropped(options):
    with pytest.raises(ValueError, match="--target 'y' cannot be dropped"):
        read_training([open_text("x,y\n1,a\n")], "y", **options)


def test_a_quotation_mark_that_is_not_closed_takes_no_memory(monkeypatch):
    monkeypatch.setattr(delimited, "_MAX_RECORD_BYTES", 1 << 10)
    with pytest.raises(FormatError, match="is a quotation mark not closed") as caught:
        list(open_text('a,b\n1,2\n3,"' + "x\n" * 2000, size=64).blocks({"a": "number"}))
    assert caught.value.line == 3


def test_marks_inside_of_fields_are_no_quotation(parser):
    text = "a,b\n" + '5" pipe,1\n' * 9
    records = list_records(open_text(text, size=20), {"a": "string", "b": "number"})
    assert records == [{"a": '5" pipe', "b": 1.0}] * 9


def test_long_strings(parser):
    long = "x" * 10_000_000
    assert list_records(open_text(f"a,b\n{long},2\n"), {"a": "string"}) == [{"a": long}]


@pytest.mark.parametrize("kind", ["gz", "xz", "parquet"])
def test_files_that_end_early(tmp_path, kind):
    path = tmp_path / ("p.parquet" if kind == "parquet" else f"p.csv.{kind}")
    if kind == "parquet":
        pq.write_table(pa.table({"a": list(range(1000))}), path)
    else:
        path.write_bytes({"gz": gzip, "xz": lzma}[kind].compress(PEOPLE.encode() * 99))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(FormatError, match=r"ends early|damaged"):
        list(open_records(path).blocks({"a": "number", "age": "number"}))


def test_records_that_cannot_be_encoded_name_the_place():
    plan = RecordEncoder(min_count=1).fit([{"n": 1, "job": "a"}, {"n": 2, "job": "b"}]).plan_
    lines = '{"n": 1}\n\n' * 50 + '{"n": "old"}\n' + '{"n": 1}\n' * 30
    (block,) = open_text(lines, "x.jsonl").blocks({})
    with pytest.raises(
        FormatError, match=r"^x.jsonl:101: column 'n': expected a number, got the string 'old'$"
    ):
        block.encode(plan)
    (block,) = open_text('{"n": 1}\n{"job": [1]}\n', "x.jsonl").blocks({})
    with pytest.raises(FormatError, match=r"^x.jsonl:2: column 'job': "):
        block.encode(plan)
    (block,) = open_text('n,job\n1,a\n"inf",b\n').blocks({"n": "number", "job": "string"})
    with pytest.raises(FormatError, match=r"^x.csv:3: column 'n': the number is infinite$"):
        block.encode(plan)


def test_parquet_without_pyarrow_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ValueError, match=r'pip install "unkernel\[records\]"'):
        open_text(b"PAR1", "x.parquet")


@pytest.mark.parametrize("values", [["b", "a", "b", "c"], ["b", None, "b", "a"], [None, None], []])
@pytest.mark.parametrize(
    "kind", [pa.string(), pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int64(), pa.string())]
)
@pytest.mark.parametrize("begin", [0, 1])
def test_coded_values_read_back(values, kind, begin):
    column = pa.array(values, pa.string()).cast(kind)
    parts = pa.table({"c": pa.chunked_array([column, column], type=kind)}).slice(begin)
    block = Block("x.parquet", parts, parts.num_rows, lambda _: 0)
    words, places = block.encode_column("c")
    assert places.dtype == np.intp
    assert [words[place] for place in places] == (values + values)[begin:]
