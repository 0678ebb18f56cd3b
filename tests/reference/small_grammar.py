"""Sentences with trees, drawn at random from a grammar in which verb and tool together decide."""

from __future__ import annotations

import random

from unkernel.data import Treebank

SUBJECTS = ("she", "he", "they", "we", "Mary", "John")
VERBS = ("saw", "cut", "found", "painted", "wanted", "opened")
NOUNS = ("bread", "man", "door", "picture", "box", "letter")
TOOLS = ("knife", "telescope", "key", "brush", "beard", "ribbon")
# The phrase "with a ..." belongs to the verb in these cases, otherwise to the noun.
WITH_THE_VERB = {("saw", "telescope"), ("cut", "knife"), ("opened", "key"), ("painted", "brush")}


def grammar(count: int, seed: int) -> Treebank:
    """Return sentences such as "she saw the man with a telescope"."""
    choose = random.Random(seed).choice
    words, heads = [], []
    for _ in range(count):
        verb, tool = choose(VERBS), choose(TOOLS)
        words.append([choose(SUBJECTS), verb, "the", choose(NOUNS), "with", "a", tool])
        heads.append([2, 0, 4, 2, 7, 7, 2 if (verb, tool) in WITH_THE_VERB else 4])
    tags = [["PRON", "VERB", "DET", "NOUN", "ADP", "DET", "NOUN"]] * count
    names = ["nsubj", "root", "det", "obj", "case", "det"]
    labels = [[*names, "obl" if head[-1] == 2 else "nmod"] for head in heads]
    return Treebank.from_words(words, tags, heads=heads, deprels=labels)
