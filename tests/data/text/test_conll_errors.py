"""Refused treebanks and chunks: errors name line, column and reason, like the slow twin."""

from __future__ import annotations

import io
import lzma

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import columns as twin
from unkernel._core import ColumnText
from unkernel.data import read_chunks, read_conllu, read_conllx
from unkernel.errors import FormatError

READERS = {"conllu": read_conllu, "conllx": read_conllx, "chunks": read_chunks}


def line(number, head, form="w", deprel="dep"):
    return f"{number}\t{form}\t{form}\tX\tXX\t_\t{head}\t{deprel}\t_\t_\n"


MALFORMED = [
    # text, line, column, a piece of the message
    ("1 w w X XX _ 0 root _ _\n", 1, 24, "1 column instead of 10; CoNLL-U has one word per line"),
    ("# c\n1\tw\tw\n", 2, 6, "3 columns instead of 10"),
    ("1\tw\tw\t\n", 1, 7, "4 columns instead of 10"),
    (line(1, 0).rstrip("\n") + "\tmore\n", 1, 24, "11 columns instead of 10"),
    (line(1, 0).rstrip("\n") + "\t\t\t\n", 1, 24, "13 columns instead of 10"),
    ("1-2\tw\n", 1, 6, "2 columns"),
    (line("x", 0), 1, 1, "'x' is not the number of a word; 1 is expected"),
    (line("", 0), 1, 1, "nothing in column 1; "),
    (line("1.", 0), 1, 1, "'1.' is not the number"),
    (line("-1", 0), 1, 1, "'-1' is not the number"),
    (line("1-", 0), 1, 1, "'1-' is not the number"),
    (line("1-2-3", 0), 1, 1, "'1-2-3' is not the number"),
    (line("١", 0), 1, 1, "'١' is not the number"),
    (line(" 1", 0), 1, 1, "' 1' is not the number"),
    (line("x" * 500, 0), 1, 1, "xxx...' is not the number"),
    (line("é" * 41, 0), 1, 1, f"'{'é' * 37}...' is not the number"),
    (line("é" * 40, 0), 1, 1, f"'{'é' * 40}' is not the number"),
    (line(2, 0), 1, 1, "word '2' where 1 is expected"),
    (line(0, 0), 1, 1, "word '0' where 1 is expected"),
    (line("01", 0), 1, 1, "word '01' where 1 is expected"),
    (line(1, 0) + line(1, 1), 2, 1, "word '1' where 2 is expected; an empty line"),
    (line(1, 0) + line(3, 1), 2, 1, "word '3' where 2 is expected"),
    (line("9" * 6000, 0), 1, 1, "where 1 is expected"),
    (line(str(2**32 + 1), 0), 1, 1, "where 1 is expected"),
    (line(1, ""), 1, 14, "nothing in column 7"),
    (line(1, "-1"), 1, 14, "the head '-1' is not a number"),
    (line(1, "1_0"), 1, 14, "the head '1_0' is not a number"),
    (line(1, "9" * 6000), 1, 14, "is not a word of the sentence"),
    (line(1, 2**31), 1, 14, "the head '2147483648' is not a word of the sentence"),
    (line(1, 2**32), 1, 14, "the head '4294967296' is not a word of the sentence"),
    (line(1, 0, "é日") + line(2, 3, "é日"), 2, 16, "the head 3 is not a word of the sentence, which has 2"),
    (line(1, 1), 1, 14, "word 1 is its own head"),
    (line(1, 0) + "\n" + line(1, 0) + line(2, 2), 4, 14, "word 2 is its own head"),
    (line("1-2", "_"), 1, 1, "a sentence without words"),
    ("\n# c\n" + line("1.1", "_") + "\n" + line(1, 0), 2, 1, "a sentence without words"),
    (line(1, 0) + "# caf\0\n", 2, 6, "a NUL byte"),
]

NO_TREES = [
    (line(1, 0) + line(2, "_"), 2, 14, "a tree needs the head of every word"),
    (line(1, 0) + line(2, 1) + line(3, 0), 3, 14, "a second root; word 1 is one already"),
    (line(1, 2) + line(2, 1), 1, 14, ", 1 → 2 → 1"),
    (line(1, 0) + line(2, 4) + line(3, 2) + line(4, 3), 2, 14, ", 2 → 4 → 3 → 2"),
    (line(1, 3) + line(2, 3) + line(3, 4) + line(4, 3), 3, 14, ", 3 → 4 → 3"),
    (line(1, 8) + "".join(line(i, i - 1) for i in range(2, 9)), 1, 14, "1 → 8 → 7 → 6 → 5 → 4 → 3 → 2 → 1"),
    (line(1, 20) + "".join(line(i, i - 1) for i in range(2, 21)), 1, 14, "→ 14 → ..."),
]

BAD_CHUNKS = [
    ("a b c\nd e\n", 2, 4, "2 columns instead of 3; blanks separate"),
    ("a b c\n\nd e f g\n", 3, 8, "4 columns instead of 3"),
    ("a b c\nd e\u3000f\n", 2, 6, "2 columns instead of 3"),
    ("a b c\n\nd\n", 3, 2, "1 column instead of 3"),
    ("a \0b c\n", 1, 3, "a NUL byte"),
]


def read_error(text, reader, **options):
    stream = io.BytesIO(text if isinstance(text, bytes) else text.encode())
    stream.name = "bad.conllu"
    with pytest.raises(FormatError) as caught:
        reader(stream, **options)
    error = caught.value
    assert error.file == "bad.conllu"
    assert len(error.reason) < 200
    return error.line, error.column, error.reason


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_treebanks(case):
    text, number, column, message = case
    place = read_error(text, read_conllu)
    assert place[:2] == (number, column)
    assert message in place[2]


@pytest.mark.parametrize("case", NO_TREES)
def test_heads_that_make_no_trees(case):
    text, number, column, message = case
    place = read_error(text, read_conllu, trees=True)
    assert place[:2] == (number, column)
    assert message in place[2]
    bank = read_conllu(io.BytesIO(text.encode()))
    with pytest.raises(FormatError) as caught:
        bank.check_trees()
    assert (caught.value.line, caught.value.column, caught.value.reason) == place


def test_several_roots_are_trees_of_conllx():
    text = (line(1, 0) + line(2, 0)).encode()
    read_conllx(io.BytesIO(text), trees=True).check_trees()
    assert read_error(line(1, 2) + line(2, 1), read_conllx, trees=True)[:2] == (1, 14)


@pytest.mark.parametrize("case", BAD_CHUNKS)
def test_malformed_chunks(case):
    text, number, column, message = case
    place = read_error(text, read_chunks)
    assert place[:2] == (number, column)
    assert message in place[2]


@pytest.mark.parametrize(
    "invalid",
    [
        b"\xe9",
        b"\xc3",
        b"\x80",
        b"\xc0\x80",
        b"\xe0\x80\x80",
        b"\xed\xa0\x80",
        b"\xf0\x80\x80\x80",
        b"\xf4\x90\x80\x80",
        b"\xff",
    ],
)
@pytest.mark.parametrize("reader", READERS.values())
def test_bytes_that_are_not_utf8(invalid, reader):
    prefix = b"a b\n\ncaf\xc3\xa9 " if reader is read_chunks else line(1, 0).encode() + b"\n# caf\xc3\xa9 "
    line_number, column, reason = read_error(prefix + invalid + b" x\n", reader)
    assert (line_number, column) == (3, 6 if reader is read_chunks else 8)
    assert reason.startswith("not UTF-8: convert the text first, from Latin-1 by `iconv -f latin1 -t utf-8`")


@given(st.binary(max_size=30), st.integers(0, 12))
def test_utf8_check_agrees_with_python(text, prefix_length):
    word = b"a" * prefix_length + text.translate(None, b" \t\n\r\0\v\f") + b"z"
    try:
        expected = word.decode()
    except UnicodeDecodeError as error:
        place = read_error(b"x\n\n" + word, read_chunks)
        assert place[:2] == (3, len(word[: error.start].decode()) + 1)
    else:
        assert read_chunks(io.BytesIO(word))[0].words == [expected]


@pytest.mark.parametrize("reader", READERS.values())
def test_invalid_arguments_and_files_are_refused(tmp_path, reader):
    path = tmp_path / "cut.xz"
    path.write_bytes(lzma.compress(line(1, 0).encode() * 100)[:-20])
    with pytest.raises(FormatError, match="ends early"):
        reader(path)
    with pytest.raises(FileNotFoundError):
        reader(tmp_path / "none.conllu")
    with pytest.raises(TypeError, match=r"io\.BytesIO"):
        reader(b"text")
    with pytest.raises(ValueError, match="on_error must be 'raise' or 'skip', got 'warn'"):
        reader(io.BytesIO(b""), on_error="warn")


# --- Skipping ---------------------------------------------------------------------------------------


def test_bad_sentences_are_left_out_and_listed():
    valid, invalid, malformed = line(1, 0), line(1, 7), "# c\n1\tx\n" + line(1, 0)
    text = "\n".join([valid, invalid, malformed, valid.replace("w", "v"), line(2, 0).rstrip("\n")])
    bank = read_conllu(io.BytesIO(text.encode()), on_error="skip")
    assert [s.forms for s in bank] == [["w"], ["v"]]
    assert [(error.line, error.column) for error in bank.skipped] == [(3, 14), (6, 4), (11, 1)]
    assert bank.to_bytes() == text.encode()
    assert bank[:].skipped == []
    assert [s.line for s in bank] == [1, 9]


def test_trees_are_checked_while_skipping_if_requested():
    text = (line(1, 2) + line(2, 1) + "\n" + line(1, 0)).encode()
    bank = read_conllu(io.BytesIO(text), trees=True, on_error="skip")
    assert (len(bank), "cycle" in bank.skipped[0].reason) == (1, True)


def test_skipped_lines_do_not_determine_the_number_of_columns():
    corpus = read_chunks(io.BytesIO(b"junk\nmore junk\n\na b c\n\nd e f\n"), on_error="skip")
    assert ([s.words for s in corpus], corpus.n_columns) == ([["a"], ["d"]], 3)
    assert [error.line for error in corpus.skipped] == [1]


def test_skipped_sentences_are_written_unchanged():
    text = line(1, 0) + "\n1\tbad\n\n" + line(1, 0)
    bank = read_conllu(io.BytesIO(text.encode()), on_error="skip")
    changed = bank.with_trees([-1, -1], ["x", "x"])
    assert changed.to_bytes().decode() == text.replace("\t0\tdep\t", "\t_\tx\t")
    assert (len(changed), [error.line for error in changed.skipped]) == (2, [3])


def test_skipped_sentences_stay_skipped_in_changed_treebanks():
    cycle = line(1, 2) + line(2, 1) + "\n"
    bank = read_conllu(io.BytesIO((cycle + line(1, 0)).encode()), trees=True, on_error="skip")
    assert len(bank.with_trees([0], ["x"])) == 1
    with pytest.raises(ValueError, match="would give 0 sentences instead of 1"):
        bank.with_trees([-1], ["x"])
    corpus = read_chunks(io.BytesIO(b"a b\n\nc d e\n"), on_error="skip")
    with pytest.raises(ValueError, match="would give 2 sentences instead of 1"):
        corpus.with_tags(["x"])
    assert corpus[:].with_tags(["x"]).to_bytes() == b"a b x\n\n"


# --- The twin ---------------------------------------------------------------------------------------

PIECES = [
    *(
        "1",
        "2",
        "3",
        "1-2",
        "1.1",
        "0",
        "_",
        "x",
        "é",
        "\t",
        "\t",
        "\n",
        "\n\n",
        "\r\n",
        " ",
        "#",
        "\ufeff",
        "\0",
        "犬",
    ),
    *("1\ta\t_\t_\t_\t_\t2\t_\t_\t_\n", "2\tb\t_\t_\t_\t_\t1\t_\t_\t_\n", "2\tb\t_\t_\t_\t_\t0\t_\t_\t_\r\n"),
    *("3\tc\t_\t_\t_\t_\t_\tx y\t_\t_\n", "3\tc\t_\t_\t_\t_\t2\t_\t_\t_\n", "4\td\t_\t_\t_\t_\t2\t_\t_\t_\n"),
    *(
        "1-2\tab\t_\t_\t_\t_\t_\t_\t_\t_\n",
        "1.1\te\t_\t_\t_\t_\t_\t_\t_\t_\n",
        "# c\n",
        "a b c\n",
        "d e f\n",
        "g\t h \n",
    ),
]
TEXT = st.lists(st.sampled_from(PIECES), max_size=25).map(lambda pieces: "".join(pieces).encode())
BYTES = st.lists(st.sampled_from([*(piece.encode() for piece in PIECES), b"\xe9", b"\xff"]), max_size=20).map(
    b"".join
)


def read_with_twin(text, format, trees):
    try:
        sentences = twin.read(text, format, trees)
    except twin.BadLineError as error:
        return error.line, error.column
    return [(s.line, s.lines, s.rows, s.heads) for s in sentences]


def read_with_package(text, format, trees):
    try:
        result = ColumnText(text, "f", format, 0, trees, False, 1)
    except FormatError as error:
        return error.line, error.column
    sentences = []
    for s in range(result.sentences):
        begin, end = result.first_token(s), result.first_token(s + 1)
        columns = [result.fields(column, begin, end) for column in range(result.columns)]
        rows = [list(row) for row in zip(*columns, strict=True)]
        lines = [result.line(token) for token in range(begin, end)]
        sentences.append((result.sentence_line(s), lines, rows, result.heads[begin:end].tolist()))
    return sentences


@pytest.mark.parametrize("format", READERS)
@given(text=TEXT | BYTES, trees=st.sampled_from(["none", "forest", "tree"]))
def test_the_twin_reads_equal_sentences(format, text, trees):
    assert read_with_package(text, format, trees) == read_with_twin(text, format, trees)


@pytest.mark.parametrize("format", READERS)
@given(text=TEXT | BYTES)
def test_skipping_keeps_the_good_sentences(format, text):
    result = ColumnText(text, "f", format, 0, "none", True, 1)
    strictly = read_with_package(text, format, "none")
    assert result.text == text
    if not result.skipped():
        assert result.sentences == len(strictly)
    elif format != "chunks":  # in "chunks", the number of columns is known only at the end
        assert (result.skipped()[0].line, result.skipped()[0].column) == strictly
