"""Files of trees: errors, hostile input, and input that arrives in pieces."""

from __future__ import annotations

import gzip
import io
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unkernel.data.trees.tree_files as trees_module
from reference.tree_examples import chain
from reference.tree_files import COMPRESS, read, refuse
from unkernel import Forest, FormatError, read_trees
from unkernel._core import Forest as SubtreeTable
from unkernel._core import TreeLines
from unkernel.data import files

# --- Refused lines ----------------------------------------------------------------------------------

MALFORMED = [
    # line, column, a piece of the message; all in the second line of a file
    ("|BT| (A b) |ET|", 1, "begins with a label"),
    ("(A b)", 1, "begins with a label, not with a tree"),
    ("1 (A b)", 3, "between |BT| and |ET|"),
    ("1 |BT| A b |ET|", 8, "a tree begins with '('"),
    ("1 |BT| (A b |ET|", 8, "never closed"),
    ("1 |BT| (A (B c) |ET|", 8, "never closed"),
    ("1 |BT| (A b)", 13, "a tree ends with |ET|"),
    ("1 |BT| (A b)) |ET|", 13, "a tree ends with |ET|"),
    ("1 |BT| (A b) (C d) |ET|", 14, "a tree ends with |ET|"),
    ("1 |BT| (A b) |EV|", 14, "a tree ends with |ET|"),
    ("1 |BT| () |ET|", 9, "nothing in this pair of brackets"),
    ("1 |BT|", 7, "a tree begins with '('"),
    ("1 |ET|", 3, "ends a part of the line that has not begun"),
    ("1 |BT| (A b) |ET| |ET|", 19, "ends a part of the line that has not begun"),
    ("1 |BT| (A b) |ET| 1:1 |EV| |EV|", 28, "ends a part of the line that has not begun"),
    ("1 3:1 |BT| (A b) |ET|", 7, "vectors come after the trees"),
    ("1 |BT| (A b) |ET| 1:1 |BT| (A b) |ET|", 23, "vectors come after the trees"),
    ("1 |BT| (A b) |ET| 1", 19, "index:value"),
    ("1 |BT| (A b) |ET| :1", 19, "index:value"),
    ("1 |BT| (A b) |ET| 1:", 21, "finite number"),
    ("1 |BT| (A b) |ET| 1:x", 21, "finite number"),
    ("1 |BT| (A b) |ET| 1:1x", 21, "finite number"),
    ("1 |BT| (A b) |ET| 1:nan", 21, "finite number"),
    ("1 |BT| (A b) |ET| 1:inf", 21, "finite number"),
    ("1 |BT| (A b) |ET| 1:1e999", 21, "finite number"),
    ("1 |BT| (A b) |ET| 1:0x10", 21, "finite number"),
    ("1 |BT| (A b) |ET| 0:1", 19, "whole number from 1"),
    ("1 |BT| (A b) |ET| -1:1", 19, "whole number from 1"),
    ("1 |BT| (A b) |ET| 1.5:1", 19, "whole number from 1"),
    ("1 |BT| (A b) |ET| word:1", 19, "whole number from 1"),
    ("1 |BT| (A b) |ET| 2147483647:1", 19, "whole number from 1"),
    ("1 |BT| (A b) |ET| 99999999999999999999:1", 19, "whole number from 1"),
    ("1 |BT| (A b) |ET| 2:1 1:1", 23, "ascend"),
    ("1 |BT| (A b) |ET| 2:1 2:1", 23, "ascend"),
    ("1 |BT| (A b) |ET| 1:1 qid:3", 23, "whole number from 1"),
    ("1 qid:x |BT| (A b) |ET|", 3, "whole number"),
    ("1 qid: |BT| (A b) |ET|", 3, "whole number"),
    ("1 qid:1.5 |BT| (A b) |ET|", 3, "whole number"),
    ("1 qid:99999999999999999999 |BT| (A b) |ET|", 3, "whole number"),
    ("1 |BV:x| w:1", 13, "without |EV|"),
    ("1 |BV:x| w |EV|", 10, "index:value"),
    ("1 |BV:x| w: |EV|", 12, "finite number"),
    ("1 |BV:x| w:1e308 w:1e308 |EV|", 26, "infinity"),
    ("1 |BS:x| text", 3, "|BS| without |ES|"),
    ("1 |BX:x| text |EX|", 3, "and no others"),
]


@pytest.mark.parametrize("case", MALFORMED, ids=[case[0] for case in MALFORMED])
def test_malformed_lines_are_named(case):
    line, column, reason = case
    first_line = "1 qid:1 |BT| (A b) |ET|\n" if "qid:" in line.split("|")[0] else "1 |BT| (A b) |ET|\n"
    refuse(first_line + line + "\n1 |BT| (A b) |ET|\n", 2, column, reason)
    refuse("\n" + line, 2, column, reason, format="lines")


@pytest.mark.parametrize(
    ("lines", "line", "column", "reason"),
    [
        ("1 qid:1 |BT| (A b) |ET|\n\n1 |BT| (A b) |ET|\n", 3, 3, "has no qid, those before have one"),
        ("1 |BT| (A b) |ET|\n1 qid:1 |BT| (A b) |ET|\n", 2, 3, "has a qid, those before have none"),
        ("1 qid:1\n1\n", 2, 2, "has no qid"),
    ],
)
def test_queries_for_some_lines_only(lines, line, column, reason):
    refuse(lines, line, column, reason)


# --- Hostile files ----------------------------------------------------------------------------------


def test_bytes_that_are_not_text_are_refused():
    data = read(b"\xff\xfe |BT| (A\x80 b\0c) |ET|\n-1 |BT| (\xf0 \x9f) |ET|\n")
    assert data.y.tolist() == ["\udcff\udcfe", "-1"]
    assert data.X.brackets() == ["(A\udc80 b\0c)", "(\udcf0 \udc9f)"]
    assert data.X.compact().brackets() == data.X.brackets()
    assert read(b"(A \xff)").X.brackets() == ["(A \udcff)"]


def test_bytes_that_are_not_text_survive_a_round_trip():
    brackets = read(b"(A \xff)").X.brackets()
    assert Forest(brackets).brackets() == brackets


@pytest.mark.parametrize("start", [b"", b"1 |BT| "])
@pytest.mark.parametrize(
    "piece", [b"(" * 100_000, b"(A " * 100_000, b"(A" + b" b" * 100_000, b"(" + b"L" * 1_000_000]
)
def test_endless_brackets_are_refused(start, piece):
    with pytest.raises(FormatError) as caught:
        read(start + piece)
    assert caught.value.line == 1


def test_deep_and_large_trees_in_lines():
    deep, wide = chain(10_000), "(A" + "".join(f" (B w{i})" for i in range(50_000)) + ")"
    data = read(f"1 |BT| {deep} |BT| {wide} |ET| 1:1\n2 |BT| {wide} |BT| {deep} |ET|\n")
    assert data.X.brackets("0") == [deep, wide]
    assert data.X.brackets("1") == [wide, deep]
    assert data.X.trees["0"].tolist() == data.X.trees["1"].tolist()[::-1]


def test_very_long_labels():
    word = "w" * 3_000_000
    data = read(f"{word} |BT| ({word} {word}) |ET|\n")
    assert data.y.tolist() == [word]
    assert data.X.brackets() == [f"({word} {word})"]


def test_many_channels():
    data = read("1 " + "|BT| (A b) " * 2000 + "|ET| " + "|BV| " * 2000 + "|EV|\n")
    assert len(data.X.trees) == 2000
    assert len(data.X.vectors) == 2001


# --- In pieces, and compressed ----------------------------------------------------------------------

LINES = (
    "# a remark\n"
    "1 qid:1 |BT| (A (B c) New York) |BT| |ET| 1:1 |BV| 2:0.5 |EV|\r\n"
    "-1 qid:2 |BT| (犬 x) |ET|\n"
    "1 qid:2 3:1 |EV| |BT:lct| (A b c) |ET| |BS:s| x |ES|"
).encode()


def feed_pieces(pieces):
    lines = TreeLines("pieces", SubtreeTable())
    for piece in pieces:
        lines.feed(piece)
    lines.finish()
    return {key: np.asarray(value).tolist() for key, value in lines.take().items()}


def test_lines_can_be_cut_anywhere():
    expected = feed_pieces([LINES])
    assert expected["label_names"] == ["1", "-1"]
    for cut in range(len(LINES) + 1):
        assert feed_pieces([LINES[:cut], LINES[cut:]]) == expected
    assert feed_pieces([LINES[i : i + 1] for i in range(len(LINES))]) == expected


@given(st.lists(st.integers(0, len(LINES)), max_size=6))
def test_lines_can_be_cut_into_many(cuts):
    edges = [0, *sorted(cuts), len(LINES)]
    assert feed_pieces([LINES[begin:end] for begin, end in itertools.pairwise(edges)]) == feed_pieces([LINES])


@pytest.mark.parametrize("kind", COMPRESS)
def test_compressed_files(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(trees_module, "read_blocks", lambda source: files.read_blocks(source, 1000))
    lines = "".join(f"{i} |BT| (A (B w{i}) c) |ET| {i + 1}:1\n" for i in range(300))
    brackets = "\n".join(f"(A (B w{i}) c)" for i in range(300))
    for content in (lines, brackets):
        path = tmp_path / "trees"
        path.write_bytes(COMPRESS[kind](content.encode()))
        for source in (path, str(path), io.BytesIO(path.read_bytes())):
            X, y = read_trees(source)
            assert X.brackets() == brackets.split("\n")
            assert y is None or y.tolist() == list(range(300))


@pytest.mark.parametrize("kind", [kind for kind in COMPRESS if kind != "plain"])
def test_compressed_files_that_end_early(kind):
    content = COMPRESS[kind](b"1 |BT| (A b) |ET|\n" * 5000)
    with pytest.raises(FormatError, match="ends early"):
        read(content[:-10])


def test_errors_name_the_file(tmp_path):
    path = tmp_path / "some.dat.gz"
    path.write_bytes(gzip.compress(b"1 |BT| (A b) |ET|\n1 |BT| (A |ET|\n"))
    with pytest.raises(FormatError) as caught:
        read_trees(path)
    assert str(caught.value).startswith(f"{path}:2:8: ")
    with pytest.raises(FileNotFoundError):
        read_trees(tmp_path / "missing")
    with pytest.raises(TypeError, match="path or an open file"):
        read_trees(b"(A b)")


def test_text_files(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("(犬 b)", encoding="utf-8")
    with path.open(encoding="utf-8") as file:
        assert read_trees(file).X.brackets() == ["(犬 b)"]
