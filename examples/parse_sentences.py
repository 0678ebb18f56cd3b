"""Parsing: a small grammar in which two words together decide where a phrase belongs.

    python examples/parse_sentences.py

"she saw the man with a telescope": does "with a telescope" belong to "saw" or to "man"? Verb and tool tell it
together, neither does alone. A parser of degree 2 sees such conjunctions of its features.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from rich.console import Console

from example_output import print_note, print_table, timed
from unkernel.data import Treebank
from unkernel.parsing import ArcEagerParser

_SUBJECTS = ("she", "he", "they", "we", "Mary", "John")
_VERBS = ("saw", "cut", "found", "painted", "wanted", "opened")
_NOUNS = ("bread", "man", "door", "picture", "box", "letter")
_TOOLS = ("knife", "telescope", "key", "brush", "beard", "ribbon")
# The phrase "with a ..." belongs to the verb in these cases, else to the noun.
_BELONGS_TO_VERB = {("saw", "telescope"), ("cut", "knife"), ("opened", "key"), ("painted", "brush")}


def grammar(count: int, seed: int) -> Treebank:
    """Sentences such as "she saw the man with a telescope", drawn at random, with their trees."""
    choose = random.Random(seed).choice
    words, heads = [], []
    for _ in range(count):
        verb, tool = choose(_VERBS), choose(_TOOLS)
        words.append([choose(_SUBJECTS), verb, "the", choose(_NOUNS), "with", "a", tool])
        heads.append([2, 0, 4, 2, 7, 7, 2 if (verb, tool) in _BELONGS_TO_VERB else 4])
    tags = [["PRON", "VERB", "DET", "NOUN", "ADP", "DET", "NOUN"]] * count
    names = ["nsubj", "root", "det", "obj", "case", "det"]
    labels = [[*names, "obl" if own[-1] == 2 else "nmod"] for own in heads]
    return Treebank.from_words(words, tags, heads=heads, deprels=labels)


@dataclass(frozen=True)
class ParserFit:
    """A parser of one degree, and how it did."""

    degree: int
    training_seconds: float
    uas: float
    words_per_second: float


def parser_fits(train: Treebank, test: Treebank) -> tuple[list[ParserFit], ArcEagerParser]:
    """Parsers of degree 1 and 2, and the latter itself."""
    fits = []
    for degree in (1, 2):
        parser, training_seconds = timed(ArcEagerParser(degree).fit, train)
        _, parsing_seconds = timed(parser.parse, test)
        fits.append(
            ParserFit(degree, training_seconds, parser.evaluate(test).uas, test.n_words / parsing_seconds)
        )
    return fits, parser


def show(console: Console, train: int = 1500, test: int = 400) -> ArcEagerParser:
    """A table of both, and a tree; returns the better parser."""
    sentences = grammar(test, seed=1)
    fits, parser = parser_fits(grammar(train, seed=0), sentences)
    print_table(
        console,
        f"a small grammar: {train:,} training and {test:,} test sentences",
        ("", "training", "right heads", "words per second"),
        (
            (
                True,
                (
                    f"ArcEagerParser, degree {fit.degree}",
                    f"{fit.training_seconds:.2f} s",
                    f"{fit.uas:.2f} %",
                    f"{fit.words_per_second:,.0f}",
                ),
            )
            for fit in fits
        ),
    )
    console.print(parser.parse(sentences)[0].draw(), highlight=False, markup=False)
    print_note(
        console,
        "Verb and tool together tell whether the phrase belongs to the verb or to the noun: a conjunction. "
        "On English web text the same kind of parser reads about a hundred thousand words per second.",
    )
    return parser


if __name__ == "__main__":
    show(Console())
