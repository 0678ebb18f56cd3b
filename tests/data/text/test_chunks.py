"""Chunked text: columns, tags, and byte-exact writing."""

from __future__ import annotations

import io
import lzma
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import real_data
from unkernel.data import ChunkCorpus, read_chunks
from unkernel.errors import FormatError

TWO = "Confidence NN B-NP\nin IN B-PP\n\n# # B-NP\n10 CD I-NP\n"


def read(text, **options):
    return read_chunks(io.BytesIO(text.encode()), **options)


def test_words_parts_of_speech_and_tags():
    corpus = read(TWO)
    first, second = corpus
    assert (first.words, first.pos, first.tags) == (["Confidence", "in"], ["NN", "IN"], ["B-NP", "B-PP"])
    assert second.columns == [["#", "10"], ["#", "CD"], ["B-NP", "I-NP"]]
    assert (first.line, second.line, len(second), corpus.n_words) == (1, 4, 2, 4)
    assert (corpus.tagged, corpus.n_columns) == (True, 3)
    assert str(second) == "# # B-NP\n10 CD I-NP\n"
    assert repr(second) == "<ChunkSentence of 2 words: '# 10'>"
    assert repr(corpus) == "<ChunkCorpus <stream>: 2 sentences, 4 words>"


def test_the_last_column_holds_tags_if_it_looks_like_tags_or_tagged_is_set():
    text = "a X\nb Y\n"
    assert not read(text).tagged
    assert (read(text)[0].pos, read(text)[0].tags) == (["X", "Y"], None)
    assert (read(text, tagged=True)[0].pos, read(text, tagged=True)[0].tags) == (None, ["X", "Y"])
    assert read(TWO, tagged=False)[0].tags is None
    assert (read("a\n")[0].words, read("a\n")[0].pos, read("a\n").tagged) == (["a"], None, False)
    with pytest.raises(FormatError, match="a word and its tag"):
        read("\na\n", tagged=True)
    assert len(read("", tagged=True)) == 0


@pytest.mark.parametrize(
    "text",
    [
        TWO.replace("\n", "\r\n"),
        "\ufeff" + TWO,
        TWO.rstrip("\n"),
        "\n\n" + TWO + "\n\n\n",
        TWO.replace(" ", "\t"),
        TWO.replace(" ", "   "),
        TWO.replace("\n", " \n").replace("in", " in"),
    ],
)
def test_blanks_and_line_ends_are_ignored_and_kept(text):
    corpus = read(text)
    assert list(corpus) == list(read(TWO))
    assert corpus.to_bytes() == text.encode()
    assert corpus.with_tags([s.tags for s in corpus]).to_bytes() == text.encode()
    numbers, names = corpus.symbols(-1)
    assert [names[i] for i in numbers] == ["B-NP", "B-PP", "B-NP", "I-NP"]


def test_with_tags_replaces_or_appends_the_column_of_tags():
    assert read(TWO).with_tags("ABCD").to_bytes().decode() == ("Confidence NN A\nin IN B\n\n# # C\n10 CD D\n")
    untagged = read("a X\r\nb\tY \n\nc  Z")
    tagged = untagged.with_tags([["A", "B"], ["C"]])
    assert tagged.to_bytes().decode() == "a X A\r\nb\tY\tB \n\nc  Z C"
    assert (tagged.tagged, tagged[0].pos, tagged[0].tags) == (True, ["X", "Y"], ["A", "B"])
    assert read("a\n").with_tags(["B"]).to_bytes() == b"a B\n"
    assert read("").with_tags([]).to_bytes() == b""
    for tags, message in ((["A"], "1 tags for 4 words"), (["A B", "x", "y", "z"], "would end its column")):
        with pytest.raises(ValueError, match=message):
            read(TWO).with_tags(tags)


def test_corpora_and_sentences_compare_by_value():
    corpus = read(TWO)
    assert corpus == read(TWO) and corpus != read(TWO + "\n")
    unpickled = pickle.loads(pickle.dumps(corpus))
    assert unpickled == corpus and unpickled.tagged
    sentence = pickle.loads(pickle.dumps(corpus[1]))
    assert sentence == corpus[1] and hash(sentence) == hash(corpus[1]) and sentence.line == 4
    assert corpus[1] != read(TWO, tagged=False)[1]
    part = corpus[1:]
    assert (part.to_bytes().decode(), part.tagged) == ("# # B-NP\n10 CD I-NP\n\n", True)


def test_from_words():
    corpus = ChunkCorpus.from_words([["a", "b"], ["c"]], [["X", "Y"], ["Z"]], tags=[["B", "I"], ["O"]])
    assert corpus.to_bytes() == b"a X B\nb Y I\n\nc Z O\n\n"
    assert corpus.tagged
    assert not ChunkCorpus.from_words([["a"]]).tagged
    for words, error in (
        ([["a b"]], ValueError),
        ([[""]], ValueError),
        ([[]], ValueError),
        (["ab"], TypeError),
    ):
        with pytest.raises(error):
            ChunkCorpus.from_words(words)
    with pytest.raises(ValueError, match="sentence 0 has 1 words and 2 entries of column 1"):
        ChunkCorpus.from_words([["a"]], [["X", "Y"]])


FIELD = st.text(st.characters(exclude_characters=" \t\n\r\v\f\0", exclude_categories=["Cs"]), min_size=1)


@given(st.data())
def test_words_are_returned_unchanged(data):
    words = data.draw(st.lists(st.lists(FIELD, min_size=1, max_size=4), max_size=4))
    tags = [data.draw(st.lists(FIELD, min_size=len(word), max_size=len(word))) for word in words]
    corpus = ChunkCorpus.from_words(words, tags=tags)
    assert [s.words for s in corpus] == words
    assert [s.tags for s in corpus] == tags


@pytest.mark.parametrize(("part", "sentences", "words"), [("train", 8936, 211_727), ("test", 2012, 47_377)])
def test_conll2000(part, sentences, words):
    path = real_data.path("conll2000", part)
    corpus = read_chunks(path)
    assert (len(corpus), corpus.n_words, corpus.n_columns) == (sentences, words, 3)
    data = lzma.decompress(path.read_bytes())
    assert corpus.to_bytes() == data
    assert corpus.with_tags([s.tags for s in corpus]).to_bytes() == data
