"""Streams: the same bytes for any division into blocks, bad sentences refused or skipped, bounded memory."""

from __future__ import annotations

import gzip
import io
import itertools
import random
import threading
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.parse_corpora import MAKERS, chunks
from reference.patience import PATIENCE, wait_for
from unkernel import FormatError
from unkernel.data import read_bunsetsu, read_chunks, read_conllu
from unkernel.parsing import ArcEagerParser, BunsetsuParser, Chunker, parse_stream
from unkernel.parsing.streams import _PIECE_BYTES, _PIECES_AHEAD

READERS = {"trees": read_conllu, "chunks": read_chunks, "bunsetsu": read_bunsetsu}
BAD = {
    "trees": "# a comment\n1\tone\n2\ttwo\n\n",
    "chunks": "a DT B-NP\ntwo\n\n",
    "bunsetsu": "# S-ID:bad\n* 0 -1D\nEOS\n",
}
ERROR_LINE = {
    "trees": 2,
    "chunks": 2,
    "bunsetsu": 3,
}  # number of the line with the error, in the bad sentence


def fit_parser(task: str):
    corpus = READERS[task](io.BytesIO(MAKERS[task](60, 0).encode()))
    return {"trees": ArcEagerParser(epochs=2), "chunks": Chunker(), "bunsetsu": BunsetsuParser()}[task].fit(
        corpus
    )


@pytest.fixture(scope="module")
def parsers():
    return {task: fit_parser(task) for task in MAKERS}


class InPieces(io.RawIOBase):
    """A file whose read() often returns fewer bytes than requested, as for a pipe."""

    name = "pieces"

    def __init__(self, data: bytes, seed: int) -> None:
        self._data = io.BytesIO(data)
        self._random = random.Random(seed)

    def read(self, size: int = -1) -> bytes:
        return self._data.read(min(size, self._random.choice([1, 7, 100, 5000])))


def sentences(task: str, seed: int, count: int) -> list[str]:
    end = "EOS\n" if task == "bunsetsu" else "\n\n"
    return [part + end for part in MAKERS[task](count, seed).split(end)[:-1]]


def answers(parser, task: str, text: str) -> bytes:
    return parser.parse(READERS[task](io.BytesIO(text.encode()))).to_bytes()


@pytest.mark.parametrize("task", MAKERS)
@pytest.mark.parametrize("block_bytes", [1, 300, 1 << 20])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_answers_equal_answers_to_the_whole_file(parsers, task, block_bytes, n_jobs):
    text = MAKERS[task](50, 7)
    options = {"block_bytes": block_bytes, "n_jobs": n_jobs}
    parts = list(parse_stream(parsers[task], InPieces(text.encode(), 1), **options))
    assert b"".join(part.data for part in parts) == answers(parsers[task], task, text)
    assert sum(part.n_sentences for part in parts) == 50
    assert sum(len(part.corpus) for part in parts) == 50
    assert sum(part.n_words for part in parts) > 100


@given(data=st.data(), task=st.sampled_from(sorted(MAKERS)), seed=st.integers(0, 99))
def test_bad_sentences_are_skipped_or_end_the_stream(parsers, data, task, seed):
    parts = sentences(task, seed, 8)
    bad_positions = sorted(data.draw(st.sets(st.integers(0, 8), min_size=1, max_size=3)))
    sentences_and_errors, lines, n_lines = [], [], 0
    for position in range(9):
        if position in bad_positions:
            lines.append(n_lines + ERROR_LINE[task])
            sentences_and_errors.append(BAD[task])
            n_lines += BAD[task].count("\n")
        if position < 8:
            sentences_and_errors.append(parts[position])
            n_lines += parts[position].count("\n")
    if task == "chunks" and bad_positions[0] == 0:
        return  # the first line determines the number of columns
    source = "".join(sentences_and_errors).encode()
    options = {"block_bytes": data.draw(st.sampled_from([1, 200, 1 << 20]))}

    def stream(on_error: str):
        return parse_stream(parsers[task], InPieces(source, seed), on_error=on_error, **options)

    skipping = list(stream("skip"))
    valid_answers = iter(answers(parsers[task], task, part).decode() for part in parts)
    expected = [part if part == BAD[task] else next(valid_answers) for part in sentences_and_errors]
    assert b"".join(part.data for part in skipping).decode() == "".join(expected)
    errors = [error for part in skipping for error in part.skipped]
    assert [(error.file, error.line) for error in errors] == [("pieces", line) for line in lines]
    assert sum(part.n_sentences for part in skipping) == 8

    data_before_error: list[bytes] = []
    with pytest.raises(FormatError) as raised:
        data_before_error.extend(part.data for part in stream("raise"))
    assert b"".join(data_before_error).decode() == "".join(expected[: sentences_and_errors.index(BAD[task])])
    assert raised.value.line == lines[0]


class Endless:
    """A file that never ends, and counts the bytes that were read."""

    name = "endless"

    def __init__(self) -> None:
        self._sentence = chunks(500, 0, tags=False).encode()
        self.bytes_read = 0

    def read(self, size: int) -> bytes:
        self.bytes_read += len(self._sentence)
        return self._sentence


@pytest.mark.hostile
def test_an_endless_stream_takes_no_memory(parsers):
    source = Endless()
    tracemalloc.start()
    try:
        for part in itertools.islice(parse_stream(parsers["chunks"], source, block_bytes=1 << 18), 80):
            assert part.n_sentences
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert source.bytes_read > 10 << 20  # bytes; the limit of memory is not much larger
    assert peak < 12 << 20


def test_reading_ahead_is_bounded(parsers):
    source = Endless()
    stream = parse_stream(parsers["chunks"], source, block_bytes=1)
    next(stream)
    time.sleep(0.3)  # the reader has time to read too much
    assert source.bytes_read <= (_PIECES_AHEAD + 3) * max(_PIECE_BYTES, len(source._sentence))
    stream.close()
    wait_for(lambda: not any(thread.name == "unkernel-reader" for thread in threading.enumerate()))


def test_received_sentences_are_answered_before_the_next_arrive(parsers):
    """A client may wait for the answer to a sentence before it sends the next one."""
    first, second = sentences("chunks", 3, 2)
    answered = threading.Event()

    class Waiting:
        name = "waiting"
        parts = iter([first.encode(), second.encode(), b""])

        def read(self, size: int) -> bytes:
            part = next(self.parts)
            assert part == first.encode() or answered.wait(PATIENCE)
            return part

    stream = parse_stream(parsers["chunks"], Waiting())
    assert next(stream).data == answers(parsers["chunks"], "chunks", first)
    answered.set()
    assert next(stream).data == answers(parsers["chunks"], "chunks", second)
    assert list(stream) == []


def test_files_that_cannot_be_read(parsers, tmp_path):
    with pytest.raises(FileNotFoundError):
        list(parse_stream(parsers["chunks"], tmp_path / "nowhere"))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(chunks(2000, 0).encode())[:2000])
    with pytest.raises(FormatError, match="ends early"):
        list(parse_stream(parsers["chunks"], tmp_path / "cut.gz"))
    assert list(parse_stream(parsers["chunks"], io.BytesIO(b""))) == []


def test_endless_sentences_are_refused(parsers, monkeypatch):
    monkeypatch.setitem(parse_stream.__globals__["split_blocks"].__kwdefaults__, "longest", 1000)
    monkeypatch.setitem(parse_stream.__globals__["split_parts"].__kwdefaults__, "longest", 1000)
    for task, line in (
        ("trees", "1\ta" + 8 * "\t_" + "\n"),
        ("chunks", "a DT\n"),
        ("bunsetsu", "a a a a * * *\n"),
    ):
        with pytest.raises(FormatError, match="a sentence of more than 1000 bytes"):
            list(parse_stream(parsers[task], InPieces(line.encode() * 1000, 0), on_error="skip"))


def test_invalid_arguments_are_refused(parsers):
    for options, reason in (
        ({"on_error": "ignore"}, "on_error"),
        ({"block_bytes": 0}, "block_bytes"),
        ({"format": "xml"}, "format"),
    ):
        with pytest.raises(ValueError, match=reason):
            parse_stream(parsers["trees"], io.BytesIO(b""), **options)
    with pytest.raises(TypeError, match="expected a parser"):
        parse_stream(object(), io.BytesIO(b""))
    with pytest.raises(ValueError, match="4 columns, and the training text had 3"):
        list(parse_stream(parsers["chunks"], io.BytesIO(b"a b c d\n\n")))
