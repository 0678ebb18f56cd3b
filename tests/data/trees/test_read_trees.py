"""Files of trees: brackets, SVM-light-TK's and KeLP's lines, CoNLL-U; accepted and refused input."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import golden
from reference.tree_examples import as_trees, text, trees
from reference.tree_files import COMPRESS, read, refuse
from reference.tree_kernels import read_tk_examples
from unkernel import Forest, FormatError, read_trees
from unkernel.data import read_conllu


def read_vectors(line):
    """Return the vectors of an example, by channel: entries by index from 1, or None."""
    return [
        {int(k) + 1: value for k, value in enumerate(channel.matrix.toarray()[0]) if value}
        if channel.present[0]
        else None
        for channel in read(line).X.vectors.values()
    ]


# --- Files of brackets ------------------------------------------------------------------------------


@given(st.lists(trees(), min_size=1, max_size=8), st.sampled_from(["", " ", "\n", "\n\n\t", "\r\n"]))
def test_trees_one_after_another(given_trees, between):
    data = read(between + between.join(text(tree) for tree in given_trees) + between)
    assert as_trees(data.X.brackets()) == given_trees
    assert data.y is None
    assert data.qid is None


def test_a_treebank():
    result = read("( (S (NP (PRP It))\n     (VP (VBZ works)) (. .)) )\n( (NP (NN Yes)) )\n")
    assert result.X.brackets() == ["( (S (NP (PRP It)) (VP (VBZ works)) (. .)))", "( (NP (NN Yes)))"]


@pytest.mark.parametrize(
    ("content", "line", "column", "reason"),
    [
        ("(A b)\n(C d", 2, 1, "never closed"),
        ("(A b)\n  (C (D e)\n", 2, 3, "never closed"),
        ("(A b)\n(C d))\n", 2, 6, "a tree begins with '('"),
        ("(A b)\nword\n", 2, 1, "a tree begins with '('"),
        ("(A b)\n\n (C ( ))", 3, 7, "nothing in this pair"),
        ("(A b) |ET|", 1, 7, "a tree begins with '('"),
        ("(犬 b) x", 1, 9, "a tree begins with '('"),  # columns are bytes
    ],
)
def test_malformed_files_of_brackets_are_refused_with_their_place(content, line, column, reason):
    refuse(content, line, column, reason)


# --- Labels and queries -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["1", "-1"], np.array([1, -1])),
        (["+1", "-1", "1"], np.array([1, -1, 1])),
        (["0.5", "2"], np.array([0.5, 2.0])),
        (["1.0", "1"], np.array([1, 1])),
        (["DESC", "1"], np.array(["DESC", "1"])),
        (["nan", "1"], np.array(["nan", "1"])),
        (["inf", "1"], np.array(["inf", "1"])),
        (["犬", "ü:x"], np.array(["犬", "ü:x"])),
        (["a|b", "|x"], np.array(["a|b", "|x"])),
    ],
)
def test_labels(labels, expected):
    result = read("".join(f"{label} |BT| (A b) |ET|\n" for label in labels)).y
    assert result.dtype.kind == expected.dtype.kind
    assert result.tolist() == expected.tolist()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "labels",
    [
        ["1e30", "1"],
        ["1e999", "1"],
        ["1_0", "1"],
        ["1,5", "1"],
        ["0x10", "1"],
        ["٣", "1"],
        ["9007199254740995", "9007199254740994"],
        ["9007199254740993", "9007199254740992"],
    ],
    ids=str,
)
def test_labels_that_no_number_holds_exactly_are_text(labels):
    assert read("".join(f"{label} |BT| (A b) |ET|\n" for label in labels)).y.tolist() == labels


def test_query_numbers():
    data = read("1 qid:3 |BT| (A b) |ET|\n-1 qid:-4 |BT| (A c) |ET| 1:1\n")
    assert data.qid.tolist() == [3, -4]
    assert data.qid.dtype == np.int64
    X, y = data
    assert (len(X), y.tolist()) == (2, [1, -1])
    assert read("1 |BT| (A b) |ET|\n").qid is None


def test_blank_lines_and_remarks_are_left_out():
    data = read(
        "# head\n\n   \n1 |BT| (A b) |ET| # why\n\t\n"
        "2 |BT| (C d) |ET| 1:1 |EV| # 3:1\n3 |BT| (A b) |ET| 1:2 # 2:2\n"
    )
    assert data.y.tolist() == [1, 2, 3]
    assert data.X.brackets() == ["(A b)", "(C d)", "(A b)"]
    assert data.X.vectors["0"].matrix.toarray().tolist() == [[0], [1], [2]]


@pytest.mark.parametrize("content", ["1 |BT| (A b) |ET|\n", "(A b)"])
def test_a_byte_order_mark_is_skipped(content):
    data = read("\ufeff" + content)
    assert data.X.brackets() == ["(A b)"]
    assert data.y is None or data.y.tolist() == [1]


def test_the_last_line_needs_no_end():
    assert read("1 |BT| (A b) |ET|\r\n2 |BT| (C d) |ET|").y.tolist() == [1, 2]


# --- SVM-light-TK's trees ---------------------------------------------------------------------------


def test_several_trees():
    data = read(
        "1 |BT| (A b) |BT| (C d) |ET|\n"
        "2 |BT| (A b) |ET|\n"
        "3 |BT|  |BT| (C d) |BT| (E f) |ET|\n"
        "4 |BT| |ET| 1:1\n"
        "5 1:1\n"
        "6\n"
    )
    assert list(data.X.trees) == ["0", "1", "2"]
    assert data.X.brackets("0") == ["(A b)", "(A b)", "", "", "", ""]
    assert data.X.brackets("1") == ["(C d)", "", "(C d)", "", "", ""]
    assert data.X.brackets("2") == ["", "", "(E f)", "", "", ""]
    assert data.X.vectors["0"].present.tolist() == [False, False, False, True, True, False]


@pytest.mark.parametrize(
    ("tree", "bracketed"),
    [
        ("(NN word)", "(NN (word))"),
        ("(NN (word))", "(NN (word))"),
        ("(NN New York)", "(NN (New York))"),
        ("(NN New   York )", "(NN (New York))"),
        ("(A (b) (C d))", "(A (b)(C (d)))"),
        ("(A (C d) b)", "(A (C (d))(b))"),
        ("(A (C d) New York)", "(A (C (d))(New)(York))"),  # the program joins these, too
        ("( (S (NP x)))", "( (S (NP (x))))"),
        ("(A)", "(A)"),
    ],
)
def test_trees_as_svm_light_tk_reads_them(tree, bracketed):
    assert read(f"1 |BT| {tree} |ET|\n").X.brackets(bracket_leaves=True) == [bracketed]


@pytest.mark.parametrize("part", ["train", "test"])
def test_golden_trees_equal_trees_of_the_slow_twin(part):
    path = golden.FOLDER / f"trees.{part}.dat"
    X, y = read_trees(path)
    expected = read_tk_examples(path)
    assert y.tolist() == [label for label, _ in expected]
    assert as_trees(X.brackets()) == [tree for _, tree in expected]


# --- SVM-light-TK's vectors -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "vectors"),
    [
        ("1 |BT| (A b) |ET|", []),
        ("1 |BT| (A b) |ET|  ", []),
        ("1 |BT| (A b) |ET| 1:0.5 7:-1e-2", [{1: 0.5, 7: -0.01}]),
        ("1 |BT| (A b) |ET| 1:0.5 7:1 |EV|", [{1: 0.5, 7: 1}]),
        ("1 |BT| (A b) |ET| 1:1 |BV| 2:1 3:+1 |EV|", [{1: 1}, {2: 1, 3: 1}]),
        ("1 |BT| (A b) |ET| 1:1 |BV| 2:1", [{1: 1}, {2: 1}]),
        ("1 |BT| (A b) |ET| |BV| 1:1 |EV|", [{}, {1: 1}]),  # |BV| separates
        ("1 |BT| (A b) |ET| 1:1 |BV| |EV|", [{1: 1}, {}]),
        ("1 |BT| (A b) |ET| |EV|", [{}]),
        ("1 |BT| (A b) |ET| |BV| |BV| |EV|", [{}, {}, {}]),
        ("1 2:1 3:1 |EV|", [{2: 1, 3: 1}]),
        ("1 |EV|", [{}]),
        ("1 |BT| (A b) |ET| 2147483646:1 |EV| ", None),
    ],
)
def test_vectors_as_svm_light_tk_reads_them(line, vectors):
    if vectors is None:
        assert read(line).X.vectors["0"].matrix.shape == (1, 2147483646)
    else:
        assert read_vectors(line) == vectors


def test_empty_vectors_differ_from_missing_ones():
    X, _ = read("1 |BT| (A b) |ET| |EV|\n1 |BT| (A b) |ET|\n1 |BT| (A b) |ET| 3:1\n")
    assert X.vectors["0"].present.tolist() == [True, False, True]
    assert X.vectors["0"].matrix.shape == (3, 3)


# --- KeLP -------------------------------------------------------------------------------------------


def test_kelp():
    data = read(
        "DESC |BT:grct| (ROOT (NN x) y z) |ET| |BV:bow| be::v:1.0 what::w:2.0 be::v:0.5 |EV| "
        "|BS:text| any (text |EV| 1:x |ES|\n"
        "NUM |BV:bow| |EV| |BT:lct| (A b) |ET|\n"
    )
    assert data.y.tolist() == ["DESC", "NUM"]
    assert data.X.brackets("grct", bracket_leaves=True) == ["(ROOT (NN (x))(y)(z))", ""]
    assert data.X.brackets("lct") == ["", "(A b)"]
    assert data.X.features == ["be::v", "what::w"]
    assert data.X.vectors["bow"].matrix.toarray().tolist() == [[1.5, 2.0], [0, 0]]
    assert data.X.vectors["bow"].present.tolist() == [True, True]


def test_named_and_numbered_vectors_in_one_file():
    line = "1 |BT| (A b) |ET| 7:2 |EV| |BV:x| w:1 |EV|\n"
    refuse(line, 1, 39, "features with names, others with numbers")
    refuse("1 |BV:x| w:1 |EV|\n1 7:2\n", 2, 6, "features with names, others with numbers")


@pytest.mark.parametrize(
    ("line", "column"),
    [("1 |BT| (A b) |BT:x| (C d) |ET|", 14), ("1 |BT:x| (A b) |BT| (C d) |ET|", 16)],
)
def test_named_and_numbered_trees_in_one_line(line, column):
    refuse(line, 1, column, "some trees of this line have names")


@pytest.mark.parametrize(
    "line",
    [
        "1 |BT:a| (A b) |ET| |BT:a| (C d) |ET|",
        "1 |BT| (A b) |ET| |BT:0| (C d) |ET|",
        "1 |BV:a| w:1 |EV| |BV:a| w:1 |EV|",
    ],
)
def test_a_channel_twice_in_a_line(line):
    with pytest.raises(FormatError) as caught:
        read("1 |BT| (A b) |ET|\n" + line)
    assert caught.value.line == 2


# --- CoNLL-U ----------------------------------------------------------------------------------------

CONLLU = (
    "1\tDogs\tdog\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n"
    "2\tbark\tbark\tVERB\tVBP\t_\t0\troot\t_\t_\n"
    "\n"
    "1\tGo\tgo\tVERB\tVB\t_\t0\troot\t_\t_\n"
    "\n"
)


@pytest.mark.parametrize("shape", ["grct", "lct", "loct"])
def test_conllu(shape, tmp_path):
    expected = Forest.from_sentences(read_conllu(io.BytesIO(CONLLU.encode())), shape).brackets()
    assert read(CONLLU, format="conllu", shape=shape).X.brackets() == expected
    for name, pack in COMPRESS.items():
        path = tmp_path / f"some.conllu.{name}"
        path.write_bytes(pack(CONLLU.encode()))
        data = read_trees(path, shape=shape)
        assert data.X.brackets() == expected
        assert data.y is None


def test_wrong_conllu():
    refuse(CONLLU.replace("\t2\tnsubj", "\t7\tnsubj"), 1, 23, "7", format="conllu")


# --- Detection of the format ------------------------------------------------------------------------


def test_the_format_is_detected_from_the_first_character():
    assert read("\n  (A b)").y is None
    assert read("\n 1 |BT| (A b) |ET|").y.tolist() == [1]
    assert read("# (A b)\n1 |BT| (A b) |ET|").y.tolist() == [1]


def test_the_format_can_be_given():
    refuse("1 |BT| (A b) |ET|", 1, 1, "a tree begins with '('", format="brackets")
    refuse("(A b)", 1, 1, "read it as a file of brackets", format="lines")
    for options in ({"format": "penn"}, {"format": "conllu", "shape": "tree"}):
        with pytest.raises(ValueError, match="must be one of"):
            read(CONLLU, **options)


@pytest.mark.parametrize("content", [b"", b"\n", b" \t\r\n"])
@pytest.mark.parametrize("options", [{}, {"format": "brackets"}, {"format": "lines"}])
def test_empty_files_are_refused(content, options):
    refuse(content, 0, 0, "empty", **options)


def test_files_of_remarks_alone_are_refused():
    refuse("# nothing\n", 0, 0, "no examples")
