"""Valid input of read_svmlight, compared with the slow twin and with scikit-learn."""

from __future__ import annotations

import io
import lzma
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from reference import svmlight as twin
from unkernel import _core
from unkernel.data import datasets, read_svmlight
from unkernel.errors import FormatError

GOLDEN = Path(__file__).parent / "golden" / "binary.test.svm"


def read_text(text: str | bytes, **options):
    return read_svmlight(io.BytesIO(text.encode() if isinstance(text, str) else text), **options)


def native_outcome(data: bytes, cuts: list[int], threads: int, piece_bytes: int):
    parser = _core.SvmlightParser("file", threads, piece_bytes, 0, 2**63 - 2)
    bounds = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    try:
        for begin, end in pairwise(bounds):
            parser.feed(data[begin:end])
        parser.finish()
    except FormatError as error:
        return error.line, error.column
    offsets, indices, values, labels, queries = (array.tolist() for array in parser.take(0))
    rows = [dict(zip(indices[begin:end], values[begin:end], strict=True)) for begin, end in pairwise(offsets)]
    return labels, queries, rows, parser.comments, parser.ignored_fields, parser.largest_index


def twin_outcome(data: bytes):
    try:
        result = twin.read(data)
    except twin.BadLineError as error:
        return error.line, error.column
    rows = [{index: value for index, value in sorted(row.items()) if value != 0} for row in result.rows]
    queries = [query for query in result.queries if query is not None]
    largest = max((index for row in result.rows for index in row), default=-1)
    return result.labels, queries, rows, result.comments, result.ignored_fields, largest


numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-300, 300).map(str),
    st.from_regex(r"\A[+-]?[0-9]{0,25}\.?[0-9]{0,25}(e[+-]?[0-9]{1,3})?\Z"),
    st.sampled_from(
        ["0", "+1", "-0", "nan", "inf", "1e400", "1e-400", ".", "", "1_0", "0x1", "9007199254740993"]
    ),
)
indices = st.one_of(
    st.integers(0, 12).map(str),
    st.integers(0, 2**65).map(str),
    st.sampled_from(["-1", "+1", "007", "0000000000000000000000002", "1.0", ""]),
)
entries = st.builds("{}:{}".format, indices, numbers)
names = st.sampled_from(["qid:3", "qid:-7", "qid:x", "cost:0.5", "sid:4", "a_1:", "abc", "é:1", ":1", "qid:"])
blanks = st.sampled_from([" ", "  ", "\t", " \r", "\v", "\f"])
fields = st.one_of(entries, entries, entries, names)
line_ends = st.sampled_from(["\n", "\r\n", "\n\n", " # note\n", "#\n", "# é \0\n", "\n   \n"])


@st.composite
def messy_files(draw):
    """Draw a file in which most lines are valid."""
    text = ""
    for _ in range(draw(st.integers(0, 6))):
        line = [draw(numbers), *draw(st.lists(fields, max_size=5))]
        text += draw(blanks).join(line) + draw(line_ends)
    data = text.encode()
    return data if draw(st.booleans()) else data.rstrip(b"\n")


@st.composite
def valid_files(draw, ordered=False):
    values = st.one_of(
        st.floats(allow_nan=False, allow_infinity=False).map(repr), st.integers(-9, 300).map(str)
    )
    queries = draw(st.booleans())
    text = ""
    for _ in range(draw(st.integers(1, 8))):
        columns = draw(st.lists(st.integers(0, 40), unique=True, max_size=8))
        columns = sorted(columns) if ordered else columns
        line = [draw(values), *(["qid:5"] if queries else []), *(f"{i}:{draw(values)}" for i in columns)]
        text += draw(blanks).join(line) + draw(line_ends)
    return text.encode()


cuts_and_threads = st.tuples(st.lists(st.integers(0, 200), max_size=4), st.integers(1, 3), st.integers(0, 40))


@given(st.one_of(messy_files(), valid_files()), cuts_and_threads)
@example(b"", ([], 1, 0))
@example(b"\xef\xbb\xbf1 1:1", ([1, 2], 1, 0))
@example(b"1 3:1 2:1 3:x\n1 2:1 2:1", ([7], 2, 3))
def test_equals_the_twin_for_any_cuts_and_threads(data, plan):
    assert native_outcome(data, *plan) == twin_outcome(data)


@given(st.binary(max_size=60), cuts_and_threads)
def test_equals_the_twin_on_any_bytes(data, plan):
    assert native_outcome(data, *plan) == twin_outcome(data)


@given(valid_files(ordered=True), st.sampled_from([True, False, "auto"]))
def test_equals_scikit_learn(text, zero_based):
    if zero_based is False and any(0 in row for row in twin.read(text).rows):
        return
    data = read_svmlight(io.BytesIO(text), zero_based=zero_based, n_features=41)
    X, y, qid = load_svmlight_file(io.BytesIO(text), zero_based=zero_based, n_features=41, query_id=True)
    assert data.X.shape == X.shape
    np.testing.assert_array_equal(data.X.toarray(), X.toarray())
    np.testing.assert_array_equal(data.y, y)
    assert (data.qid is None) == (len(qid) == 0)
    np.testing.assert_array_equal([] if data.qid is None else data.qid, qid)


def test_golden_file_equals_scikit_learn():
    data = read_svmlight(GOLDEN)
    X, y = load_svmlight_file(str(GOLDEN))
    assert (data.X != X).nnz == 0
    np.testing.assert_array_equal(data.y, y)
    assert not data.zero_based


def test_files_written_by_scikit_learn_are_read():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(50, 20)), random.normal(size=50)
    stream = io.BytesIO()
    dump_svmlight_file(X, y, stream, zero_based=False, comment="made here")
    stream.seek(0)
    data = read_svmlight(stream)
    np.testing.assert_allclose(data.X.toarray(), X, rtol=1e-15)
    assert data.comments > 0


def test_the_result_has_rows_labels_and_other_fields():
    result = read_text("# head\n1 qid:4 cost:2 3:1 # row\n-1 qid:5 sid:1 1:0 2:7\n")
    X, y = result
    assert X is result.X
    assert y is result.y
    np.testing.assert_array_equal(X.toarray(), [[0, 0, 1], [0, 7, 0]])
    np.testing.assert_array_equal(y, [1, -1])
    np.testing.assert_array_equal(result.qid, [4, 5])
    assert (result.ignored_fields, result.comments, result.zero_based) == (2, 2, False)
    assert result.qid.dtype == np.int64
    assert X.format == "csr"
    assert X.has_canonical_format


def test_rows_without_entries():
    result = read_text("1\n-1\n")
    assert result.X.shape == (2, 0)
    assert read_text("1\n", n_features=3).X.shape == (1, 3)


def test_zeros_are_not_stored_but_their_index_widens_the_matrix():
    X = read_text("1 2:1 5:0 4:-0\n").X
    assert X.shape == (1, 5)
    assert X.nnz == 1


@pytest.mark.parametrize(
    ("zero_based", "text", "columns"),
    [
        ("auto", "1 1:1 3:1\n", [0, 2]),
        ("auto", "1 1:1\n1 0:1 3:1\n", [1, 0, 3]),
        (True, "1 1:1 3:1\n", [1, 3]),
        (False, "1 1:1 3:1\n", [0, 2]),
    ],
)
def test_the_first_index_is_detected_or_given(zero_based, text, columns):
    assert read_text(text, zero_based=zero_based).X.indices.tolist() == columns


@pytest.mark.parametrize(
    ("index", "dtype"),
    [(2**31 - 1, np.int32), (2**31, np.int64), (2**40, np.int64), (2**63 - 2, np.int64)],
)
def test_index_types(index, dtype):
    X = read_text(f"1 1:1 {index}:2\n").X
    assert X.indices.dtype == X.indptr.dtype == dtype
    assert X.shape == (1, index)
    assert X.indices.tolist() == [0, index - 1]


def test_a_64_bit_index_after_many_32_bit_ones_is_read():
    X = read_text("1 1:1 7:2\n" * 1000 + f"1 {2**40}:1\n", n_jobs=2).X
    assert X.indices.dtype == np.int64
    assert X.indices[-3:].tolist() == [0, 6, 2**40 - 1]


def test_float32():
    X = read_text("1 1:0.1 2:1e-60\n", dtype=np.float32).X
    assert X.dtype == np.float32
    assert X.data.tolist() == [np.float32(0.1)]
    with pytest.raises(FormatError, match="too large for float32"):
        read_text("1 1:1e60\n", dtype=np.float32)


@pytest.mark.parametrize("n_jobs", [2, 3, -1])
def test_the_rows_do_not_depend_on_the_number_of_threads(n_jobs):
    random = np.random.default_rng(1)
    text = "".join(
        f"{label} " + " ".join(f"{i}:{v!r}" for i, v in enumerate(values.tolist(), start=1)) + "\n"
        for label, values in enumerate(random.normal(size=(30_000, 8)))
    )
    assert len(text) > 2**22  # more than one block
    single_threaded, multi_threaded = read_text(text), read_text(text, n_jobs=n_jobs)
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(single_threaded.X, name), getattr(multi_threaded.X, name))
    np.testing.assert_array_equal(single_threaded.y, multi_threaded.y)


def test_a_bad_line_after_many_blocks_is_named():
    valid_lines = b"1 1:0.25 2:1 # a remark\n" * 400_000
    for n_jobs in (1, 2):
        with pytest.raises(FormatError) as caught:
            read_text(valid_lines + b"1 1:1 x\n1 y\n" + valid_lines, n_jobs=n_jobs)
        assert (caught.value.line, caught.value.column) == (400_001, 7)


@pytest.mark.parametrize("name", ["mushrooms", "mq2008.fold1", "a9a", "covtype68k"])
def test_real_data_equals_scikit_learn(name, tmp_path):
    try:
        source = datasets.path(name)
    except FileNotFoundError as error:
        pytest.skip(str(error))
    data = datasets.load(name, n_jobs=2)
    uncompressed = tmp_path / "plain.svm"
    lines = lzma.decompress(source.read_bytes()).splitlines(keepends=True)[:3000]
    uncompressed.write_bytes(b"".join(lines))
    X, y, qid = load_svmlight_file(
        str(uncompressed), n_features=data.X.shape[1], zero_based=False, query_id=True
    )
    assert (data.X[: len(lines)] != X).nnz == 0
    np.testing.assert_array_equal(data.y[: len(lines)], y)
    if data.qid is not None:
        np.testing.assert_array_equal(data.qid[: len(lines)], qid)
