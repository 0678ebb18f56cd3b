"""Treebanks in CoNLL-U and CoNLL-X: reading, usage, and byte-exact writing."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import pickle

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from reference import real_data
from unkernel.data import Treebank, Word, read_conllu, read_conllx
from unkernel.errors import FormatError

TWO = (
    "# newdoc\n"
    "# sent_id = s1\n"
    "# text = Give it to 'em = all\n"
    "1-2\tGivit\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n"
    "1\tGive\tgive\tVERB\tVB\tMood=Imp\t0\troot\t0:root\t_\n"
    "2\tit\tit\tPRON\tPRP\tCase=Acc|Number=Sing\t1\tobj\t1:obj\tA=B\n"
    "2.1\tgone\tgo\tVERB\tVBN\t_\t_\t_\t1:x\t_\n"
    "\n"
    "1\t10 000\té\tNUM\tCD\t_\t0\troot\t_\t_\n"
)


def line(number, head, form="w", deprel="dep"):
    return f"{number}\t{form}\t{form}\tX\tXX\t_\t{head}\t{deprel}\t_\t_\n"


def read(text, reader=read_conllu, **options):
    return reader(io.BytesIO(text if isinstance(text, bytes) else text.encode()), **options)


# --- Reading ----------------------------------------------------------------------------------------


def test_words_and_comments_are_read_and_other_lines_kept():
    first, second = read(TWO)
    assert first.words == (
        Word("Give", "give", "VERB", "VB", 0, "root", "Mood=Imp", "0:root", "_"),
        Word("it", "it", "PRON", "PRP", 1, "obj", "Case=Acc|Number=Sing", "1:obj", "A=B"),
    )
    assert first.comments == ("newdoc", "sent_id = s1", "text = Give it to 'em = all")
    assert first.metadata == {"newdoc": "", "sent_id": "s1", "text": "Give it to 'em = all"}
    assert (first.text, second.text) == ("Give it to 'em = all", "10 000")
    assert second.words == (Word("10 000", "é", "NUM", "CD", 0, "root"),)
    assert second.metadata == {}
    assert (first.line, second.line, len(first), len(second)) == (1, 9, 2, 1)
    assert str(first) + "\n" + str(second) == TWO


def test_columns_are_lists():
    sentence = read(TWO)[0]
    assert (sentence.forms, sentence.lemmas) == (["Give", "it"], ["give", "it"])
    assert (sentence.upos, sentence.xpos) == (["VERB", "PRON"], ["VB", "PRP"])
    assert (sentence.heads, sentence.deprels) == ([0, 1], ["root", "obj"])
    assert sentence.feats == ["Mood=Imp", "Case=Acc|Number=Sing"]
    assert (sentence.deps, sentence.misc) == (["0:root", "1:obj"], ["_", "A=B"])
    assert list(sentence) == list(sentence.words)
    assert repr(sentence) == '<Sentence of 2 words: "Give it to \'em = all">'


def test_text_without_a_comment_is_made_of_the_forms():
    rows = [(1, "It", "SpaceAfter=No"), (2, "'s", "_"), (3, "ok", "X")]
    assert (
        read("".join(f"{i}\t{form}" + "\t_" * 7 + f"\t{misc}\n" for i, form, misc in rows))[0].text
        == "It's ok"
    )


def test_sentences_compare_by_value():
    first, second = read(TWO)
    assert {first: 1}[read(TWO)[0]] == 1
    assert first not in (second, "text")
    unpickled = pickle.loads(pickle.dumps(second))
    assert (unpickled, unpickled.line, str(unpickled)) == (second, 9, str(second))
    with pytest.raises(AttributeError):
        first.words = ()


@pytest.mark.parametrize(
    "text",
    [
        TWO.replace("\n", "\r\n"),
        "\ufeff" + TWO,
        TWO.rstrip("\n"),
        "\n\n" + TWO + "\n\n\n",
        TWO.replace("\n\n", "\n \t\n"),
        TWO + "\n# nothing follows\n",
        TWO.replace("# newdoc\n", "# newdoc\n\n"),
    ],
)
def test_blanks_and_line_ends_are_ignored_and_kept(text):
    bank = read(text)
    assert list(bank) == list(read(TWO))
    assert bank.to_bytes() == text.encode()
    assert bank.with_trees(bank.heads, [s.deprels for s in bank]).to_bytes() == text.encode()


def test_heads_that_are_not_given():
    bank = read(line(1, "_") + line(2, 1))
    assert bank[0].heads == bank.heads.tolist() == [-1, 1]
    assert bank.with_trees([-1, -1], ["_", "x"])[0].heads == [-1, -1]


def test_an_empty_file_is_an_empty_treebank():
    for text in ("", "\n \r\n", "# only a comment\n\n"):
        bank = read(text)
        assert (len(bank), bank.n_words, bank.to_bytes()) == (0, 0, text.encode())
        assert bank.with_trees([], []) == bank
        assert len(bank[:]) == 0


def test_conllx():
    text = line(1, 0) + line(2, 0, "a b") + "\n" + line(1, "_")
    bank = read(text, read_conllx)
    assert (bank.format, bank[0].heads, bank[0].forms) == ("conllx", [0, 0], ["w", "a b"])
    assert read(line(1, 0) + line(2, 0), read_conllx, trees=True)
    for line_text in (line("1-2", 0), line("1.1", "_")):
        with pytest.raises(FormatError, match="is not the number of a word; 1 is expected"):
            read(line_text, read_conllx)


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [
        ("", bytes),
        (".gz", gzip.compress),
        (".xz", lzma.compress),
        (".bz2", bz2.compress),
        (".zst", zstandard.ZstdCompressor().compress),
    ],
)
def test_files_plain_and_compressed(tmp_path, suffix, compress):
    path = tmp_path / f"two.conllu{suffix}"
    path.write_bytes(compress(TWO.encode()))
    assert read_conllu(path) == read_conllu(str(path)) == read(TWO)
    copy = path.with_name(f"copy{suffix}")
    read_conllu(path).write(copy)
    assert read_conllu(copy).to_bytes() == TWO.encode()
    assert (copy.read_bytes()[:2] == TWO.encode()[:2]) == (suffix == "")


def test_open_text_files_and_lines_longer_than_a_block():
    long = line(1, 0, "x" * 9_000_000)
    assert len(read_conllu(io.StringIO(long + "\n" + TWO))[0].forms[0]) == 9_000_000
    out = io.StringIO()
    read(TWO).write(out)
    assert out.getvalue() == TWO


# --- Indices and slices -----------------------------------------------------------------------------


def make_bank(count, newline="\n"):
    return read("\n".join(f"# s{i}\n" + line(1, 0, f"w{i}") for i in range(count)).replace("\n", newline))


def test_indices_slices_and_lists():
    bank = make_bank(5)
    assert [s.forms[0] for s in bank] == ["w0", "w1", "w2", "w3", "w4"]
    assert bank[-1] == bank[4] == bank[np.int64(4)]
    assert [s.forms[0] for s in bank[1:4:2]] == ["w1", "w3"]
    assert [s.forms[0] for s in bank[[3, 0, 3]]] == ["w3", "w0", "w3"]
    assert [s.forms[0] for s in bank[np.arange(5) % 2 == 0]] == ["w0", "w2", "w4"]
    assert len(bank[:0]) == len(bank[np.zeros(5, bool)]) == 0
    assert isinstance(bank[:2], Treebank) and bank[:2][1].comments == ("s1",)
    for place in (5, -6):
        with pytest.raises(IndexError, match="of 5"):
            bank[place]
    with pytest.raises(IndexError):
        bank[[5]]
    with pytest.raises(IndexError):
        bank["a"]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_slices_end_each_sentence_with_an_empty_line(newline):
    bank = make_bank(3, newline)
    last_sentence = f"# s2{newline}" + line(1, 0, "w2").replace("\n", newline) + newline
    first_sentence = last_sentence.replace("s2", "s0").replace("w2", "w0")
    assert bank[[2, 0]].to_bytes().decode() == last_sentence + first_sentence
    cut = read(bank.to_bytes().rstrip(b"\r\n"))
    assert cut[2:].to_bytes().decode() == last_sentence


def test_treebanks_compare_by_value():
    bank = read(TWO)
    assert bank == read(TWO) and hash(bank) == hash(read(TWO))
    assert bank != read(TWO + "\n") and bank != 3
    assert read(line(1, 0)) != read(line(1, 0), read_conllx)
    assert pickle.loads(pickle.dumps(bank)) == bank
    assert repr(bank) == "<Treebank <stream>: 2 sentences, 3 words>"


def test_arrays_of_all_words():
    bank = read(TWO)
    assert bank.offsets.tolist() == [0, 2, 3]
    assert (bank.heads.tolist(), bank.heads.dtype) == ([0, 1, 0], np.int32)
    with pytest.raises(ValueError, match="read-only"):
        bank.heads[0] = 1
    numbers, names = bank.symbols("deprel")
    assert [names[i] for i in numbers] == ["root", "obj", "root"]
    with pytest.raises(ValueError, match="column must be one of id, form"):
        bank.symbols("pos")


# --- Writing ----------------------------------------------------------------------------------------


def test_with_trees_changes_only_heads_and_relations():
    bank = read(TWO)
    changed = bank.with_trees([[2, 0], [-1]], [["a", "b:c"], ["_"]])
    expected = TWO.replace("\t0\troot\t0:root", "\t2\ta\t0:root").replace("\t1\tobj\t", "\t0\tb:c\t")
    assert changed.to_bytes().decode() == expected.replace("\t0\troot\t_\t_", "\t_\t_\t_\t_")
    assert changed.name == bank.name
    assert bank.with_trees(np.array([2, 0, 0]), ["a", "b", "c"])[0].heads == [2, 0]


@pytest.mark.parametrize(
    ("heads", "deprels", "message"),
    [
        ([0, 1], ["a", "b", "c"], "2 heads for 3 words"),
        ([0, 1, 0], ["a", "b"], "2 relations for 3 words"),
        ([[0, 1, 0]], ["a", "b", "c"], "heads of 1 sentence,"),
        ([[0], [1, 0]], ["a", "b", "c"], "sentence 0 has 2 words and 1 heads"),
        ([0, 2, 0], ["a", "b", "c"], "sentence 0, word 2: the head 2 is not another of its 2 words"),
        ([0, 1, 2], ["a", "b", "c"], "sentence 1, word 1: the head 2"),
        ([0, -2, 0], ["a", "b", "c"], "a head is the number of a word"),
        ([0, 2**31, 0], ["a", "b", "c"], "a head is the number of a word"),
        ([0.0, 1.0, 0.0], ["a", "b", "c"], "integers"),
        ([0, 1, 0], ["a", "b\tc", "c"], "would end its column"),
        ([0, 1, 0], ["a", "b\n", "c"], "would end its column"),
        ([0, 1, 0], ["a", "\0", "c"], "NUL byte"),
        ([0, 1, 0], ["a", "", "c"], "empty"),
    ],
)
def test_trees_that_do_not_fit(heads, deprels, message):
    with pytest.raises(ValueError, match=message):
        read(TWO).with_trees(heads, deprels)


def test_from_words():
    bank = Treebank.from_words(
        [["They", "saw it"], ["No"]],
        [["PRON", "VERB"], ["INTJ"]],
        xpos=[["PRP", "VBD"], ["UH"]],
        lemmas=[["they", "see"], ["no"]],
        heads=[[2, 0], [-1]],
        deprels=[["nsubj", "root"], ["_"]],
    )
    assert bank[0].words[1] == Word("saw it", "see", "VERB", "VBD", 0, "root")
    assert bank.to_bytes().endswith(b"\n\n1\tNo\tno\tINTJ\tUH\t_\t_\t_\t_\t_\n\n")
    assert Treebank.from_words([["a"]])[0].words == (Word("a", "_", "_", "_", -1, "_"),)
    assert len(Treebank.from_words([])) == 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([["a"], []],), ValueError, "sentence 1 has no words"),
        (([["a", "b\tc"]],), ValueError, r"sentence 0: 'b\\tc' has a character"),
        (([["a", "b\n"]],), ValueError, "has a character"),
        (([["a", ""]],), ValueError, "sentence 0: '' is empty"),
        (([["a", "\ud800"]],), ValueError, "surrogates"),
        (([["a", 3.5]],), TypeError, "3.5 is not a string"),
        ((["They", "saw"],), TypeError, "lists of words"),
        (([["a"]], [["X", "Y"]]), ValueError, "sentence 0 has 1 words and 2 tags"),
        (([["a"]], [["X"], ["Y"]]), ValueError, "tags of 2 sentences"),
    ],
)
def test_invalid_words_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        Treebank.from_words(*arguments)


def test_heads_of_from_words_are_checked():
    with pytest.raises(FormatError, match="the head 3 is not a word"):
        Treebank.from_words([["a", "b"]], heads=[[0, 3]])


FIELD = st.text(st.characters(exclude_characters="\t\n\r\0", exclude_categories=["Cs"]), min_size=1)


@given(st.data())
def test_words_are_returned_unchanged(data):
    words = data.draw(st.lists(st.lists(FIELD, min_size=1, max_size=4), max_size=4))
    tags = [data.draw(st.lists(FIELD, min_size=len(word), max_size=len(word))) for word in words]
    bank = Treebank.from_words(words, tags)
    assert [s.forms for s in bank] == words
    assert [s.upos for s in bank] == tags


# --- Real data --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "part", "sentences", "words"),
    [("en_ewt", "dev", 2001, 25_147), ("en_ewt", "test", 2077, 25_094), ("en_atis", "test", 586, 6_580)],
)
def test_treebanks(name, part, sentences, words):
    path = real_data.path(name, part)
    bank = read_conllu(path, trees=True)
    assert (len(bank), bank.n_words) == (sentences, words)
    assert all("sent_id" in sentence.metadata for sentence in bank)
    data = lzma.decompress(path.read_bytes())
    assert bank.to_bytes() == data
    assert bank.with_trees(bank.heads, [s.deprels for s in bank]).to_bytes() == data
    assert bank[: len(bank)].to_bytes().rstrip() == data.rstrip()
