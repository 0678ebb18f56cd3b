"""Streams of raw text: the same results for any division; bad paragraphs; long lines."""

from __future__ import annotations

import io
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.selection import slow_after
from reference.text_treebanks import treebank_with_text
from unkernel import FormatError
from unkernel._core import whole_text
from unkernel.parsing import ArcEagerParser, Tagger, TextParser, Tokenizer, original_text, parse_stream
from unkernel.parsing.text import text_stream

BANK = treebank_with_text()
PARAGRAPH = "They didn't see it. Why not?\nDogs saw Mr. Smith!"
MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def nlp():
    """Return a parser that no test changes."""
    return TextParser(
        tokenizer=Tokenizer(epochs=4),
        tagger=Tagger(epochs=2, min_count=1, min_updates=1),
        parser=ArcEagerParser(epochs=2, runs=1, min_count=1, min_updates=1),
    ).fit(BANK)


class Dripping(io.RawIOBase):
    """A file that returns a few bytes at a time."""

    def __init__(self, data, step):
        self._data, self._step = io.BytesIO(data), step

    def readable(self):
        return True

    def readinto(self, buffer):
        received = self._data.read(min(self._step, len(buffer)))
        buffer[: len(received)] = received
        return len(received)


def answers(model, data, **options):
    return b"".join(part.data for part in parse_stream(model, io.BytesIO(data), **options))


pieces = st.lists(
    st.sampled_from(
        [*PARAGRAPH.split(), " ", "\n", "\n\n", "\r\n\r\n", " \n \n", "\u3000", "\0", "😀", "e\u0301", "\r"]
    ),
    max_size=40,
).map("".join)


@given(text=pieces, step=st.integers(1, 9), threads=st.integers(1, 3))
def test_results_do_not_depend_on_the_division_of_the_stream(nlp, text, step, threads):
    expected = nlp.parse(text).to_bytes()
    parts = list(parse_stream(nlp, Dripping(text.encode(), step), n_jobs=threads, block_bytes=step))
    assert b"".join(part.data for part in parts) == expected
    assert sum(part.n_sentences for part in parts) == len(nlp.parse(text))
    assert sum(part.n_words for part in parts) == nlp.parse(text).n_words
    assert not any(part.skipped for part in parts)
    tokens = nlp.model_.tokenizer
    assert answers(tokens, text.encode()) == tokens.tokenize(text).to_bytes()


def complete_bytes(text: str) -> int:
    """Return the number of bytes before the last paragraph that has begun with more than three bytes."""
    n_bytes, blanks_end = 0, 0
    for line_end in (k for k, character in enumerate(text) if character == "\n"):
        remaining = text[line_end:]
        blanks = remaining[
            : len(remaining) - len(remaining.lstrip("\0" + "".join(filter(str.isspace, set(remaining)))))
        ]
        blanks_end = line_end + len(blanks)
        if (
            text[:line_end].strip(" \n\r\t\0\u3000")
            and blanks.count("\n") > 1
            and len(text[blanks_end:].encode()) > 3
        ):
            n_bytes = max(n_bytes, len(text[:blanks_end].encode()))
    return n_bytes


@given(text=pieces)
def test_paragraphs_are_complete_when_another_has_begun(nlp, text):
    assert whole_text(nlp.model_.tokenizer.spec, text.encode()) == (complete_bytes(text), True)


@pytest.mark.parametrize("line", slow_after(1, ["Dogs saw it ", "犬が見た。", "x", "犬\u3000", "\U0001f600"]))
def test_a_long_line_is_cut_where_it_has_blanks(nlp, line):
    data = (line * (5 * MEGABYTE // 4 // len(line.encode()))).encode()
    tokenizer = nlp.model_.tokenizer
    cut, ends_paragraph = whole_text(tokenizer.spec, data)
    assert not ends_paragraph
    assert MEGABYTE - 20 < cut <= MEGABYTE + 4
    assert cut % len(line.encode()) == 0 or line == "Dogs saw it "
    assert data[:cut].decode()[-1].isspace() == any(map(str.isspace, line))
    tokenized = answers(tokenizer, data, n_jobs=2)
    assert tokenized == tokenizer.tokenize(data.decode()).to_bytes()
    assert tokenized.count(b"# newpar") == 1


def test_a_paragraph_is_answered_before_the_next_arrives(nlp):
    read, write = os.pipe()
    with os.fdopen(read, "rb", buffering=0) as source:
        stream = parse_stream(nlp, source, n_jobs=2)
        os.write(write, b"Why not?\n\nDogs")
        assert next(stream).n_sentences == 1
        os.write(write, b" saw it.\n\n")
        os.close(write)
        assert [part.n_words for part in stream if part.n_words] == [4]


def test_byte_order_marks_are_left_out(nlp):
    assert answers(nlp, b"\xef\xbb\xbfWhy not?") == answers(nlp, b"Why not?")
    assert answers(nlp, b"\xef\xbb\xbf") == b""


@pytest.mark.parametrize("data", [b"", b" ", b"\n\n\n", b"\0\0"])
def test_a_text_of_blanks_has_no_sentence(nlp, data):
    assert answers(nlp, data) == b""


def test_a_long_run_of_blanks_is_kept(nlp, monkeypatch):
    monkeypatch.setattr(text_stream, "_LONG_BYTES", 1 << 18)
    text = "Why" + " " * (3 * MEGABYTE // 2) + "not?"
    parts = list(parse_stream(nlp.model_.tokenizer, io.BytesIO(text.encode())))
    assert "".join(original_text(part.corpus) for part in parts) == text


BAD = b"Why not?\n\nDogs saw\nan \xe9toile.\n \nDogs saw it.\n\n\xff\n"


@pytest.mark.parametrize("threads", [1, 3])
def test_bytes_that_are_not_text_end_the_stream(nlp, threads):
    data_of_parts = []
    with pytest.raises(FormatError) as caught:
        for part in parse_stream(nlp, io.BytesIO(BAD), n_jobs=threads):
            data_of_parts.append(part.data)
    assert b"".join(data_of_parts) == nlp.parse("Why not?\n\n").to_bytes()
    assert (caught.value.line, caught.value.column) == (4, 4)
    assert "byte 0xE9 is not UTF-8: convert the text first" in str(caught.value)
    assert "iconv -f latin1 -t utf-8" in str(caught.value)


def test_paragraphs_that_are_not_text_can_be_skipped(nlp):
    parts = list(parse_stream(nlp, io.BytesIO(BAD), on_error="skip"))
    assert b"".join(part.data for part in parts) == nlp.parse("Why not?\n\nDogs saw it.\n\n").to_bytes()
    assert [error.line for part in parts for error in part.skipped] == [4, 8]


@given(data=st.binary(max_size=200))
def test_random_bytes_are_parsed_or_refused(nlp, data):
    try:
        parts = list(parse_stream(nlp, io.BytesIO(data), on_error="skip"))
    except FormatError as error:
        assert "compressed" in str(error)  # the text begins like a compressed file
        return
    text = "".join(original_text(part.corpus) for part in parts)
    try:
        decoded = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        assert any(part.skipped for part in parts)
    else:
        assert text in (decoded, "")  # nothing for blanks alone


def test_taggers_tag_treebanks(nlp):
    treebank = "".join(f"{k}\t{form}" + "\t_" * 8 + "\n" for k, form in enumerate(["Why", "not"], 1)) + "\n"
    tagged = answers(nlp.model_.tagger, treebank.encode())
    assert tagged == nlp.model_.tagger.tag(io.BytesIO(treebank.encode())).to_bytes()


def test_closing_a_stream_ends_its_threads(nlp):
    stream = parse_stream(nlp, io.BytesIO(f"{PARAGRAPH}\n\n".encode() * 20_000), n_jobs=2)
    next(stream)
    stream.close()
    assert not any(thread.name.startswith("unkernel-parser") for thread in threading.enumerate())
