"""CoNLL-U files: what is read, what is refused, and the trees that become of sentences."""

from __future__ import annotations

import bz2
import dataclasses
import gzip
import io
import lzma
import pickle
import re

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from unkernel.data import datasets
from unkernel.data.conllu_trees import Sentence, Word, from_sentence, read_conllu
from unkernel.errors import FormatError

DOGS = (
    Word("Dogs", "dog", "NOUN", "NNS", 2, "nsubj"),
    Word("bark", "bark", "VERB", "VBP", 0, "root"),
    Word("Loudly", "_", "ADV", "RB", 2, "advmod"),
)


def line(number, head, form="w", deprel="dep"):
    return f"{number}\t{form}\t{form}\tX\tXX\t_\t{head}\t{deprel}\t_\t_\n"


def read(text):
    return read_conllu(io.BytesIO(text.encode()))


def data_path(name, part):
    try:
        return datasets.path(name, part)
    except FileNotFoundError as missing:
        pytest.skip(str(missing))


def brackets(tree):
    done = []
    for label, arity in zip(reversed(tree.labels), reversed(tree.arities), strict=True):
        children = [done.pop() for _ in range(arity)]
        done.append(f"({' '.join([label, *children])})" if children else label)
    assert len(done) == 1
    return done[0]


# --- Reading ----------------------------------------------------------------------------------------

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


def test_words_comments_and_what_is_passed_over():
    first, second = read(TWO)
    assert first.words == (
        Word("Give", "give", "VERB", "VB", 0, "root", "Mood=Imp", "0:root", "_"),
        Word("it", "it", "PRON", "PRP", 1, "obj", "Case=Acc|Number=Sing", "1:obj", "A=B"),
    )
    assert first.comments == ("newdoc", "sent_id = s1", "text = Give it to 'em = all")
    assert first.metadata == {"newdoc": "", "sent_id": "s1", "text": "Give it to 'em = all"}
    assert second == Sentence((Word("10 000", "é", "NUM", "CD", 0, "root"),))
    assert second.metadata == {}


def test_sentences_are_values():
    first, _ = read(TWO)
    assert {first: 1}[read(TWO)[0]] == 1
    assert pickle.loads(pickle.dumps(first)) == first
    with pytest.raises(dataclasses.FrozenInstanceError):
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
def test_layout_does_not_matter(text):
    assert read(text) == read(TWO)


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


def test_open_text_files_and_lines_longer_than_a_block():
    long = line(1, 0, "x" * 9_000_000)
    assert len(read_conllu(io.StringIO(long + "\n" + TWO))[0].words[0].form) == 9_000_000


MALFORMED = [
    # text, line, column, a piece of the message
    ("1 w w X XX _ 0 root _ _\n", 1, 24, "1 column instead of 10; tabs"),
    ("# c\n1\tw\tw\n", 2, 6, "3 columns instead of 10"),
    (line(1, 0).rstrip("\n") + "\tmore\n", 1, 24, "11 columns instead of 10"),
    ("1-2\tw\n", 1, 6, "2 columns"),
    (line("x", 0), 1, 1, "'x' is not the number of a word; 1 is expected"),
    (line("", 0), 1, 1, "'' is not the number"),
    (line("1.", 0), 1, 1, "'1.' is not the number"),
    (line("-1", 0), 1, 1, "'-1' is not the number"),
    (line("1-", 0), 1, 1, "'1-' is not the number"),
    (line("١", 0), 1, 1, "'١' is not the number"),
    (line("x" * 500, 0), 1, 1, "xxx...' is not the number"),
    (line(2, 0), 1, 1, "word '2' where 1 is expected"),
    (line(0, 0), 1, 1, "word '0' where 1 is expected"),
    (line("01", 0), 1, 1, "word '01' where 1 is expected"),
    (line(1, 0) + line(1, 1), 2, 1, "word '1' where 2 is expected; an empty line"),
    (line(1, 0) + line(3, 1), 2, 1, "word '3' where 2 is expected"),
    (line("9" * 6000, 0), 1, 1, "where 1 is expected"),
    (line(1, "_"), 1, 14, "the head '_' is not a number"),
    (line(1, ""), 1, 14, "the head '' is not a number"),
    (line(1, "-1"), 1, 14, "the head '-1' is not a number"),
    (line(1, "1_0"), 1, 14, "the head '1_0' is not a number"),
    (line(1, "9" * 6000), 1, 14, "is not a word of the sentence"),
    (line(1, 0, "é日") + line(2, 3, "é日"), 2, 16, "the head 3 is not a word of the sentence, which has 2"),
    (line(1, 0) + line(2, 1) + line(3, 0), 3, 14, "a second root; word 1 is one already"),
    (line(1, 1), 1, 14, "circle, 1 → 1"),
    (line(1, 2) + line(2, 1), 1, 14, "circle, 1 → 2 → 1"),
    (line(1, 0) + line(2, 4) + line(3, 2) + line(4, 3), 2, 14, "circle, 2 → 4 → 3 → 2"),
    (line(1, 3) + line(2, 3) + line(3, 4) + line(4, 3), 3, 14, "circle, 3 → 4 → 3"),
    (line(1, 0) + "\n" + line(1, 0) + line(2, 2), 4, 14, "circle, 2 → 2"),
    (line(1, 20) + "".join(line(i, i - 1) for i in range(2, 21)), 1, 14, "→ 14 → ..."),
    ("", 0, 0, "no sentences"),
    ("# only a comment\n\n", 0, 0, "no sentences"),
    ("1-2\tw\t_\t_\t_\t_\t_\t_\t_\t_\n", 0, 0, "no sentences"),
]


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_files_are_refused(case):
    text, number, column, message = case
    stream = io.BytesIO(text.encode())
    stream.name = "bad.conllu"
    with pytest.raises(FormatError) as caught:
        read_conllu(stream)
    error = caught.value
    assert (error.file, error.line, error.column) == ("bad.conllu", number, column)
    assert message in error.reason
    assert len(error.reason) < 200


def test_bytes_that_are_not_utf8():
    text = TWO.encode() + b"\n# caf\xc3\xa9 caf\xe9\n"
    with pytest.raises(FormatError, match="not UTF-8") as caught:
        read_conllu(io.BytesIO(text))
    assert (caught.value.line, caught.value.column) == (11, 11)


def test_a_damaged_file_and_a_missing_one(tmp_path):
    path = tmp_path / "cut.conllu.xz"
    path.write_bytes(lzma.compress(TWO.encode())[:-20])
    with pytest.raises(FormatError, match="ends early"):
        read_conllu(path)
    with pytest.raises(FileNotFoundError):
        read_conllu(tmp_path / "none.conllu")
    with pytest.raises(TypeError, match=r"io\.BytesIO"):
        read_conllu(TWO.encode())


@given(st.text(alphabet="01234-._\t\n#a ", max_size=200))
def test_any_text_is_read_or_refused(text):
    try:
        sentences = read(text)
    except FormatError as error:
        assert error.line <= text.count("\n") + 1
    else:
        assert all(from_sentence(sentence).labels for sentence in sentences)


# --- Trees ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("grct", "(@root (@nsubj (/NOUN =dog)) (/VERB =bark) (@advmod (/ADV =loudly)))"),
        ("lct", "(=bark (=dog /NOUN @nsubj) (=loudly /ADV @advmod) /VERB @root)"),
        ("loct", "(=bark =dog =loudly)"),
    ],
)
def test_shapes(shape, expected):
    assert brackets(from_sentence(DOGS, shape)) == expected
    assert from_sentence(Sentence(DOGS), shape) == from_sentence(list(DOGS), shape)
    assert from_sentence(DOGS) == from_sentence(DOGS, "grct")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "(@root (@nsubj (/NOUN =dog)) (/VERB =bark) (@advmod (/ADV =loudly)))"),
        ({"lexical": "form"}, "(@root (@nsubj (/NOUN =Dogs)) (/VERB =bark) (@advmod (/ADV =Loudly)))"),
        ({"lexical": "lower"}, "(@root (@nsubj (/NOUN =dogs)) (/VERB =bark) (@advmod (/ADV =loudly)))"),
        ({"pos": "xpos"}, "(@root (@nsubj (/NNS =dog)) (/VBP =bark) (@advmod (/RB =loudly)))"),
    ],
)
def test_what_stands_for_a_word(options, expected):
    assert brackets(from_sentence(DOGS, **options)) == expected


def test_crossing_arcs_keep_the_order_of_each_head():
    heads = [3, 0, 2, 1, 2]  # 4 depends on 1, across the root
    words = [Word(str(i), str(i), "X", "X", head, f"r{i}") for i, head in enumerate(heads, start=1)]
    assert brackets(from_sentence(words, "loct")) == "(=2 (=3 (=1 =4)) =5)"
    assert brackets(from_sentence(words, "grct")) == (
        "(@r2 (/X =2) (@r3 (@r1 (/X =1) (@r4 (/X =4))) (/X =3)) (@r5 (/X =5)))"
    )


LABELS = st.sampled_from(["root", "NOUN", "=", "/", "@", "=x", "/x", "@x", "x", "@root", "/NOUN", ""])


@given(form=LABELS, tag=LABELS, relation=LABELS)
def test_kinds_of_labels_never_meet(form, tag, relation):
    words = [Word(form, form, tag, tag, 0, relation)]
    for shape, kinds in (("grct", 3), ("lct", 3), ("loct", 1)):
        assert len(set(from_sentence(words, shape, lexical="form").labels)) == kinds


@pytest.mark.parametrize("shape", ["grct", "lct", "loct"])
def test_deep_and_wide_sentences(shape):
    own = {"grct": 2, "lct": 2, "loct": 0}[shape]
    for heads in (range(10_000), [0] + [1] * 9_999):
        words = [Word("w", "w", "X", "X", head, "dep") for head in heads]
        tree = from_sentence(words, shape)
        assert len(tree.labels) == len(tree.arities) == sum(tree.arities) + 1 == 10_000 * (1 + own)


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ([], "without words"),
        ([0, 0], "word 2 is at fault: a second root"),
        ([0, 3], "word 2 is at fault: the head 3 is not a word"),
        ([0, -1], "word 2 is at fault: the head -1 is not a word"),
        ([0, 3, 2], "word 2 is at fault: the heads go round in a circle, 2 → 3 → 2"),
    ],
)
def test_words_that_make_no_tree(heads, message):
    with pytest.raises(ValueError, match=message):
        from_sentence([Word("w", "w", "X", "X", head, "dep") for head in heads])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shape": "GRCT"}, "shape must be one of 'grct', 'lct', 'loct', got 'GRCT'"),
        ({"lexical": "upper"}, "lexical must be one of 'lemma', 'form', 'lower', got 'upper'"),
        ({"pos": "tag"}, "pos must be one of 'upos', 'xpos', got 'tag'"),
    ],
)
def test_arguments_that_are_none(options, message):
    with pytest.raises(ValueError, match=message):
        from_sentence(DOGS, **options)


@st.composite
def random_heads(draw):
    """The heads of a random tree over up to eight words."""
    order = draw(st.permutations(range(draw(st.integers(1, 8)))))
    heads = [0] * len(order)
    for place, word in enumerate(order[1:], start=1):
        heads[word] = order[draw(st.integers(0, place - 1))] + 1
    return heads


def naive(heads, i, shape):
    """The definition of the shapes, recursively."""
    before = [naive(heads, j, shape) for j in range(i) if heads[j] == i + 1]
    after = [naive(heads, j, shape) for j in range(i + 1, len(heads)) if heads[j] == i + 1]
    parts = {
        "grct": [f"@r{i}", *before, f"(/P{i} =w{i})", *after],
        "lct": [f"=w{i}", *before, *after, f"/P{i}", f"@r{i}"],
        "loct": [f"=w{i}", *before, *after],
    }[shape]
    return f"({' '.join(parts)})" if len(parts) > 1 else parts[0]


@given(random_heads(), st.sampled_from(["grct", "lct", "loct"]))
def test_shapes_are_as_defined(heads, shape):
    words = [Word(f"w{i}", "_", f"P{i}", "_", head, f"r{i}") for i, head in enumerate(heads)]
    assert brackets(from_sentence(words, shape)) == naive(heads, heads.index(0), shape)


# --- Real data --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "part", "sentences", "words"),
    [("en_ewt", "dev", 2001, 25_147), ("en_ewt", "test", 2077, 25_094), ("en_atis", "test", 586, 6_580)],
)
def test_treebanks(name, part, sentences, words):
    found = read_conllu(data_path(name, part))
    assert len(found) == sentences
    assert sum(len(sentence.words) for sentence in found) == words
    assert all("sent_id" in sentence.metadata for sentence in found)
    for sentence in found:
        n = len(sentence.words)
        assert [len(from_sentence(sentence, shape).labels) for shape in ("grct", "lct", "loct")] == [
            3 * n,
            3 * n,
            n,
        ]


KELP_NODE = re.compile(r"\((LEX|POS|SYNT)##([^()]*)|\)")


def kelp_words(grct):
    """The words of a tree of KeLP's: relations open a word, its part of speech and itself follow in place."""
    open_words, words, heads = [], {}, {}
    relations, order, kinds = [], [], []
    for found in KELP_NODE.finditer(grct):
        kind, label = found.groups()
        if kind is None:
            if kinds.pop() == "SYNT":
                open_words.pop()
            continue
        kinds.append(kind)
        if kind == "SYNT":
            heads[len(relations)] = open_words[-1] if open_words else None
            open_words.append(len(relations))
            relations.append(label)
        elif kind == "POS":
            words[open_words[-1]] = [label]
            order.append(open_words[-1])
        else:
            words[open_words[-1]].append(label)
    number = {None: 0} | {word: place for place, word in enumerate(order, start=1)}
    return [Word(words[i][1], "_", "_", words[i][0], number[heads[i]], relations[i]) for i in order]


def as_kelp(tree):
    """Our tree with the marks of KeLP's file."""
    prefixes = {"=": "LEX##", "/": "POS##", "@": "SYNT##"}
    done = []
    for label, arity in zip(reversed(tree.labels), reversed(tree.arities), strict=True):
        children = [done.pop() for _ in range(arity)]
        done.append(f"({prefixes[label[0]]}{label[1:]}{''.join(children)})")
    return done[0]


def test_shapes_are_those_of_kelp():
    with lzma.open(data_path("kelp-trec", "test"), "rt", encoding="utf-8") as file:
        lines = list(file)
    assert len(lines) == 500
    for text in lines:
        trees = dict(re.findall(r"\|BT:(\w+)\| (.*?) *\|ET\|", text))
        words = kelp_words(trees["grct"])
        for shape in ("grct", "lct", "loct"):
            assert as_kelp(from_sentence(words, shape, lexical="form", pos="xpos")) == trees[shape]
