"""Trees made from dependencies."""

from __future__ import annotations

import lzma
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import real_data
from reference.preorders import brackets
from unkernel.data.text.conll import Treebank, read_conllu
from unkernel.data.text.conll_sentence import Word
from unkernel.data.trees.conllu_trees import from_sentence

DOGS = (
    Word("Dogs", "dog", "NOUN", "NNS", 2, "nsubj"),
    Word("bark", "bark", "VERB", "VBP", 0, "root"),
    Word("Loudly", "_", "ADV", "RB", 2, "advmod"),
)


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
    forms, lemmas, upos, xpos, heads, deprels = ([column] for column in list(zip(*DOGS, strict=True))[:6])
    bank = Treebank.from_words(forms, upos, xpos=xpos, lemmas=lemmas, heads=heads, deprels=deprels)
    assert from_sentence(bank[0], shape) == from_sentence(list(DOGS), shape)
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
def test_options_choose_the_labels_of_words(options, expected):
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
def test_words_tags_and_relations_have_distinct_labels(form, tag, relation):
    words = [Word(form, form, tag, tag, 0, relation)]
    for shape, kinds in (("grct", 3), ("lct", 3), ("loct", 1)):
        assert len(set(from_sentence(words, shape, lexical="form").labels)) == kinds


@pytest.mark.parametrize("shape", ["grct", "lct", "loct"])
def test_deep_and_wide_sentences(shape):
    nodes_per_word = {"grct": 2, "lct": 2, "loct": 0}[shape]
    for heads in (range(10_000), [0] + [1] * 9_999):
        words = [Word("w", "w", "X", "X", head, "dep") for head in heads]
        tree = from_sentence(words, shape)
        assert len(tree.labels) == len(tree.arities) == sum(tree.arities) + 1 == 10_000 * (1 + nodes_per_word)


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ([], "without words"),
        ([0, 0], "word 2: a second root"),
        ([0, 3], "word 2: the head 3 is not a word"),
        ([0, -1], "word 2: the head -1 is not a word"),
        ([0, 3, 2], "word 2: the heads form a cycle, 2 → 3 → 2"),
    ],
)
def test_heads_that_form_no_tree_are_refused(heads, message):
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
def test_invalid_arguments_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        from_sentence(DOGS, **options)


@st.composite
def random_heads(draw):
    """Draw the heads of a random tree over up to eight words."""
    order = draw(st.permutations(range(draw(st.integers(1, 8)))))
    heads = [0] * len(order)
    for place, word in enumerate(order[1:], start=1):
        heads[word] = order[draw(st.integers(0, place - 1))] + 1
    return heads


def naive(heads, i, shape):
    """Return the tree below word `i` by the recursive definition of its shape."""
    left = [naive(heads, j, shape) for j in range(i) if heads[j] == i + 1]
    right = [naive(heads, j, shape) for j in range(i + 1, len(heads)) if heads[j] == i + 1]
    parts = {
        "grct": [f"@r{i}", *left, f"(/P{i} =w{i})", *right],
        "lct": [f"=w{i}", *left, *right, f"/P{i}", f"@r{i}"],
        "loct": [f"=w{i}", *left, *right],
    }[shape]
    return f"({' '.join(parts)})" if len(parts) > 1 else parts[0]


@given(random_heads(), st.sampled_from(["grct", "lct", "loct"]))
def test_shapes_are_as_defined(heads, shape):
    words = [Word(f"w{i}", "_", f"P{i}", "_", head, f"r{i}") for i, head in enumerate(heads)]
    assert brackets(from_sentence(words, shape)) == naive(heads, heads.index(0), shape)


# --- Real data --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "part", "sentences", "words"),
    [("en_ewt", "dev", 2001, 25_147), ("en_ewt", "test", 2077, 25_094), ("en_atis", "test", 586, 6_580)],
)
def test_treebanks(name, part, sentences, words):
    result = read_conllu(real_data.path(name, part))
    assert len(result) == sentences
    assert sum(len(sentence.words) for sentence in result) == words
    assert all("sent_id" in sentence.metadata for sentence in result)
    for sentence in result:
        n = len(sentence.words)
        assert [len(from_sentence(sentence, shape).labels) for shape in ("grct", "lct", "loct")] == [
            3 * n,
            3 * n,
            n,
        ]


KELP_NODE = re.compile(r"\((LEX|POS|SYNT)##([^()]*)|\)")


def kelp_words(grct):
    """Return the words of a GRCT tree of KeLP: a relation node has a word and its part of speech below it."""
    open_words, words, heads = [], {}, {}
    relations, order, kinds = [], [], []
    for match in KELP_NODE.finditer(grct):
        kind, label = match.groups()
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
    """Return our tree in KeLP's notation."""
    prefixes = {"=": "LEX##", "/": "POS##", "@": "SYNT##"}
    stack = []
    for label, arity in zip(reversed(tree.labels), reversed(tree.arities), strict=True):
        children = [stack.pop() for _ in range(arity)]
        stack.append(f"({prefixes[label[0]]}{label[1:]}{''.join(children)})")
    return stack[0]


def test_shapes_equal_the_trees_of_kelp():
    with lzma.open(real_data.path("kelp-trec", "test"), "rt", encoding="utf-8") as file:
        lines = list(file)
    assert len(lines) == 500
    for text in lines:
        trees = dict(re.findall(r"\|BT:(\w+)\| (.*?) *\|ET\|", text))
        words = kelp_words(trees["grct"])
        for shape in ("grct", "lct", "loct"):
            assert as_kelp(from_sentence(words, shape, lexical="form", pos="xpos")) == trees[shape]
