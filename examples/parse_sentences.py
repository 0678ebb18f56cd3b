"""The part of the demo on parsing: a small grammar, in which pairs of words decide where a phrase belongs."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

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


def parser_fits(train: Treebank, test: Treebank) -> tuple[list[ParserFit], Treebank]:
    """Parsers of degree 1 and 2, and the trees that the last one found."""
    fits = []
    for degree in (1, 2):
        began = time.process_time()
        parser = ArcEagerParser(degree).fit(train)
        seconds = time.process_time() - began
        result = parser.evaluate(test)
        fits.append(ParserFit(degree, seconds, result.uas, result.words_per_second))
    return fits, parser.parse(test)


def show(console: Console) -> None:
    """A table of both, and a tree."""
    fits, parsed = parser_fits(grammar(1500, seed=0), grammar(400, seed=1))
    table = Table(
        title="parsing a small grammar", title_justify="left", title_style="bold",
        box=SIMPLE_HEAD, show_edge=False,
    )  # fmt: skip
    table.padding = (0, 1, 0, 0)
    for heading in ("", "training", "right heads", "words a second"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for fit in fits:
        table.add_row(
            f"ArcEagerParser, degree {fit.degree}",
            f"{fit.training_seconds:.2f} s",
            f"{fit.uas:.2f} %",
            f"{fit.words_per_second:,.0f}",
        )
    console.print(table)
    console.print(parsed[0].draw(), highlight=False, markup=False)
    console.print(
        "Whether a phrase belongs to the verb or to the noun, verb and tool tell together: a conjunction.",
        style="dim",
        highlight=False,
    )
