"""Raw text to trees to classes: who did it, the animal or the man?

    python examples/classify_text.py

"The dog chased the man." and "The man was chased by the dog." tell the same; "The man chased the dog." has
the same words as the first. Words alone cannot tell who did it, and trees can: a TextParser makes them of raw
text, and a TreeSVC compares them.
"""

from __future__ import annotations

import io
import random
from dataclasses import dataclass

from rich.console import Console
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from example_output import print_note, print_table, timed
from unkernel.data import Forest, Treebank, read_conllu
from unkernel.parsing import TextParser
from unkernel.tree import TreeSVC

_ANIMALS = ("dog", "cat", "horse", "fox", "goose")
_PEOPLE = ("man", "woman", "child", "teacher", "doctor")
_VERBS = {"chased": "chased", "saw": "seen", "bit": "bitten", "found": "found", "followed": "followed"}
_ACTIVE = """1 The DET 2 det
2 {actor} NOUN 3 nsubj
3 {verb} VERB 0 root
4 the DET 5 det
5 {other} NOUN 3 obj
6 . PUNCT 3 punct"""
_PASSIVE = """1 The DET 2 det
2 {other} NOUN 4 nsubj:pass
3 was AUX 4 aux:pass
4 {participle} VERB 0 root
5 by ADP 7 case
6 the DET 7 det
7 {actor} NOUN 4 obl:agent
8 . PUNCT 4 punct"""


def stories(count: int, seed: int) -> tuple[Treebank, list[str]]:
    """Sentences with their trees, drawn at random, and who acts in each."""
    choose = random.Random(seed).choice
    lines, actors = [], []
    for _ in range(count):
        animal, person, verb = choose(_ANIMALS), choose(_PEOPLE), choose(list(_VERBS))
        actor, other = choose([(animal, person), (person, animal)])
        words = {"actor": actor, "other": other, "verb": verb, "participle": _VERBS[verb]}
        lines.append(_conllu(choose([_ACTIVE, _PASSIVE]).format(**words)))
        actors.append("animal" if actor == animal else "person")
    return read_conllu(io.StringIO("".join(lines))), actors


def _conllu(words: str) -> str:
    lines = []
    for word in words.splitlines():
        number, form, tag, head, relation = word.split()
        glued = (
            "SpaceAfter=No" if tag == "NOUN" and words.splitlines()[int(number)].split()[1] == "." else "_"
        )
        lines.append("\t".join([number, form, form.lower(), tag, "_", "_", head, relation, "_", glued]))
    return "\n".join([*lines, "", ""])


@dataclass(frozen=True)
class TextFit:
    """A classifier of texts, and how it did."""

    name: str
    ours: bool
    training_seconds: float
    accuracy: float


def text_fits(treebank: int, train: int, test: int) -> tuple[list[TextFit], TextParser]:
    """Words and trees beside each other, and the parser that made the trees."""
    nlp = TextParser(folds=2).fit(stories(treebank, seed=0)[0])
    (learnt, labels), (asked, answers) = (stories(count, seed) for count, seed in ((train, 1), (test, 2)))
    texts, others = ([sentence.text for sentence in bank] for bank in (learnt, asked))
    words = make_pipeline(CountVectorizer(ngram_range=(1, 1)), LinearSVC())
    _, seconds = timed(words.fit, texts, labels)
    fits = [TextFit("single words, LinearSVC", False, seconds, words.score(others, answers))]
    trees, asked_trees = trees_of(nlp, texts), trees_of(nlp, others)
    svc, seconds = timed(TreeSVC("sst").fit, trees, labels)
    fits.append(TextFit("trees of raw text, TreeSVC", True, seconds, svc.score(asked_trees, answers)))
    return fits, nlp


def trees_of(nlp: TextParser, texts: list[str]) -> Forest:
    """The tree of each text, which is one sentence, with a node for each relation (GRCT)."""
    return Forest.from_sentences([document[0] for document in nlp.parse_many(texts)], "grct")


def show(console: Console, treebank: int = 300, train: int = 200, test: int = 400) -> None:
    """A table of both, and a tree."""
    fits, nlp = text_fits(treebank, train, test)
    print_table(
        console,
        f"who did it: {train:,} training and {test:,} test texts",
        ("", "training", "accuracy"),
        ((fit.ours, (fit.name, f"{fit.training_seconds:.3f} s", f"{fit.accuracy:.1%}")) for fit in fits),
    )
    console.print(nlp.parse("The man was chased by the dog.")[0].draw(), highlight=False, markup=False)
    print_note(
        console,
        "Words are the same whoever acts. A tree has the relation of each, and fragments of it are what the "
        "kernel compares.",
    )


if __name__ == "__main__":
    show(Console())
