"""Small treebanks made by hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from reference.dependencies import any_heads, projective_heads
from unkernel.data import Treebank

FORMS = ("a", "the", "The", "saw", "dogs", "Dogs42", "1,000", "x-Ray", "é", "Éa9猫", "猫", "_", "#", "on e")
TAGS = ("NOUN", "VERB", "DET", "PUNCT")
XPOS = ("NN", "VB", "DT", "_")
LABELS = ("root", "nsubj", "obj", "det", "a↑b")
# Forms, tags, heads and relations of a sentence with a word that must be lifted.
CROSSING = (
    [*"abcd"],
    ["NOUN", "VERB", "DET", "DET"],
    [*"nvdd"],
    [2, 0, 2, 1],
    ["nsubj", "root", "obj", "acl"],
)


@st.composite
def sentences(draw, max_words=8, heads=any_heads):
    """Draw forms, tags, heads and relations of one sentence."""
    n_words = draw(st.integers(1, max_words))

    def column(values):
        return draw(st.lists(st.sampled_from(values), min_size=n_words, max_size=n_words))

    return column(FORMS), column(TAGS), column(XPOS), draw(heads(n_words)), column(LABELS)


def bank_of(sentences_):
    forms, tags, xpos, heads, labels = map(list, zip(*sentences_, strict=True))
    return Treebank.from_words(forms, tags, xpos=xpos, lemmas=forms, heads=heads, deprels=labels)


def treebanks(max_sentences=6, max_words=8, projective=False):
    heads = projective_heads if projective else any_heads
    return st.lists(sentences(max_words, heads), min_size=1, max_size=max_sentences).map(bank_of)


TEMPLATE_LINES = {
    "moves": (
        "stack.word",
        "stack.xpos",
        "stack.upos + input.upos",
        "stack[1].form",
        "stack.label",
        "stack.left-valency",
        "stack.right-valency + input.left-valency",
        "stack.head.word",
        "stack.head.head.label",
        "stack.left.prefix2",
        "stack.left2.suffix1 + distance",
        "stack.right.label + stack.right2.label",
        "stack[2].right.shape",
        "input.shape",
        "input[1].suffix4",
        "input[3].lemma",
        "input.left.label + input.left2.xpos + stack.xpos",
        "input.before.word",
        "input.after.feats",
        "stack.before.before.prefix1",
        "distance",
        "distance + stack.upos + input.upos + input[1].upos",
    ),
    "labels": (
        "direction",
        "direction + distance",
        "head.word + dependent.word",
        "head.label",
        "head.head.xpos",
        "head[-1].prefix3",
        "head[2].suffix2",
        "dependent.upos",
        "dependent[1].form",
        "dependent[-2].suffix3",
        "dependent.left.label",
        "dependent.right.label + dependent.right2.word",
        "dependent.left-valency",
        "head.right-valency + direction",
        "dependent.after.after.prefix4",
    ),
}


@st.composite
def template_texts(draw):
    """Draw template files with some of the lines above, some of them in [beside] sections."""
    text = ""
    for section, lines in TEMPLATE_LINES.items():
        drawn_lines = draw(st.lists(st.sampled_from(lines), min_size=1, max_size=6, unique=True))
        core = draw(st.integers(1, len(drawn_lines)))
        text += "\n".join([f"[{section}]", *drawn_lines[:core], ""])
        if core < len(drawn_lines):
            text += "\n".join([f"[beside {section}]", *drawn_lines[core:], ""])
    return text
