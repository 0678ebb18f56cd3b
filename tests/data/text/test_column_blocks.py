"""read_column_blocks: blocks of text with columns, from files of any length."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import real_data
from unkernel._core import ColumnText, whole_sentences
from unkernel.data import read_conllu, read_conllu_parts
from unkernel.data.text.columns import read_column_blocks
from unkernel.errors import FormatError

DOGS = "1\tDogs\t_\t_\t_\t_\t2\t_\t_\t_\n2\tbark\t_\t_\t_\t_\t0\t_\t_\t_\n"
PIECES = [
    DOGS,
    DOGS,
    "\n",
    "\n",
    "\n",
    "\r\n",
    " \n",
    "# c\n",
    "# c",
    "1\tbad\n",
    "a b c\n",
    "d e f\n",
    "g h\n",
    "\ufeff",
]
TEXT = st.lists(st.sampled_from(PIECES), max_size=30).map(lambda pieces: "".join(pieces).encode())


class Dribble(io.RawIOBase):
    """A pipe that returns at most `size` bytes per read."""

    def __init__(self, data, size):
        self.data, self.size = data, size

    def read(self, size=-1):
        block, self.data = self.data[: self.size], self.data[self.size :]
        return block


def content(text):
    result = []
    for s in range(text.sentences):
        begin, end = text.first_token(s), text.first_token(s + 1)
        rows = [text.fields(column, begin, end) for column in range(text.columns)]
        result.append((text.sentence_line(s), text.sentence_text(s), rows, text.heads[begin:end].tolist()))
    return result


@pytest.mark.parametrize("format", ["conllu", "conllx", "chunks"])
@given(text=TEXT, size=st.integers(1, 200))
def test_blocks_are_the_text(format, text, size):
    parts = list(read_column_blocks(io.BytesIO(text), format, on_error="skip", size=size))
    expected = ColumnText(text, "<stream>", format, 0, "none", True, 1)
    assert b"".join(part.text for part in parts) == text
    assert [sentence for part in parts for sentence in content(part)] == content(expected)
    faults = [(error.line, error.column) for part in parts for error in part.skipped()]
    assert len(faults) == len(expected.skipped())
    if format != "chunks":
        assert faults == [(error.line, error.column) for error in expected.skipped()]


@given(text=TEXT, size=st.integers(1, 200))
def test_the_first_bad_line_does_not_depend_on_the_blocks(text, size):
    try:
        expected = content(ColumnText(text, "<stream>", "conllu", 0, "none", False, 1))
    except FormatError as error:
        with pytest.raises(FormatError) as caught:
            list(read_column_blocks(io.BytesIO(text), size=size))
        assert str(caught.value) == str(error)
    else:
        assert [
            sentence for part in read_column_blocks(io.BytesIO(text), size=size) for sentence in content(part)
        ] == expected


@given(text=TEXT, format=st.sampled_from(["conllu", "chunks"]))
def test_whole_sentences_end_before_a_sentence_that_may_continue(text, format):
    end = whole_sentences(text, format)
    head = text[:end]
    assert end == 0 or head.endswith(b"\n")
    assert end == 0 or not head.splitlines(keepends=True)[-1].strip()
    if format == "conllu":  # text that follows must not change the sentences before
        head_text = ColumnText(head, "f", format, 0, "none", True, 1)
        longer_text = ColumnText(head + DOGS.encode(), "f", format, 0, "none", True, 1)
        assert content(longer_text)[: head_text.sentences] == content(head_text)


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
def test_blocks_of_a_stream_that_dribbles(size):
    text = ("# c\n" + DOGS + "\n").encode() * 5
    parts = list(read_column_blocks(Dribble(text, 3), size=size))
    assert b"".join(part.text for part in parts) == text
    assert sum(part.sentences for part in parts) == 5
    assert {part.first_line for part in parts} <= {1, 5, 9, 13, 17}
    assert (len(parts) > 1) == (size < len(text))


def test_a_sentence_that_does_not_end():
    text = DOGS.encode() + b"\n" + b"# c\n" * 1000
    with pytest.raises(FormatError, match="a sentence of more than 500 bytes; an empty line") as caught:
        list(read_column_blocks(io.BytesIO(text), size=100, longest=500))
    assert caught.value.line == 4
    assert len(list(read_column_blocks(io.BytesIO(text), size=100, longest=5000))) == 2


def test_endless_empty_lines_take_bounded_memory():
    parts = list(read_column_blocks(io.BytesIO(b"\n" * 10_000), size=100, longest=500))
    assert b"".join(part.text for part in parts) == b"\n" * 10_000
    assert max(len(part.text) for part in parts) <= 200


def test_chunks_have_as_many_columns_in_every_block():
    with pytest.raises(FormatError, match="2 columns instead of 3") as caught:
        list(read_column_blocks(io.BytesIO(b"a b c\n\nd e\n\n"), "chunks", size=5))
    assert caught.value.line == 3


def test_invalid_arguments_are_refused():
    with pytest.raises(ValueError, match="on_error must be"):
        list(read_column_blocks(io.BytesIO(b""), on_error="ignore"))
    with pytest.raises(ValueError, match="'conllu', 'conllx' or 'chunks', not 'tsv'"):
        list(read_column_blocks(io.BytesIO(b"x"), "tsv"))
    assert list(read_column_blocks(io.BytesIO(b""))) == []


def test_parts_of_a_treebank():
    path = real_data.path("en_ewt", "dev")
    bank = read_conllu(path)
    parts = list(read_conllu_parts(path, size=50_000))
    assert len(parts) > 10
    assert b"".join(part.to_bytes() for part in parts) == bank.to_bytes()
    assert [sentence.line for part in parts for sentence in part] == [sentence.line for sentence in bank]
