"""Parsers and chunkers: accuracy, training, speed; tables of the papers redone, beside LIBSVM.

CPU seconds of one thread unless said otherwise; speeds are those of the best of five rounds with the text
read and the model loaded. Scores are those of the dev parts; ``--test`` is for the very end.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/parsing.py english [--test]
    python benchmarks/parsing.py chang [--libsvm N]        # Table 10 of Chang et al. (2010)
    python benchmarks/parsing.py japanese [--corpus wac]   # Tables 2 to 4 of Yoshinaga & Kitsuregawa (2009)
    python benchmarks/parsing.py chunking                  # CoNLL-2000
    python benchmarks/parsing.py text [--lines N]          # throughput, and prefix tries grown from text

``--sentences N`` learns from the first N sentences only; without arguments, all of them run so.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable

from parsing_chang import chang
from parsing_english import english, text
from parsing_japanese import japanese
from parsing_tools import Table, best_result, corpus, cpu_timed, megabytes
from unkernel import datasets
from unkernel.parsing import Chunker

Section = Callable[[argparse.Namespace], None]
HELD_OUT = 1_000  # sentences of CoNLL-2000, which has no dev part
MODERATE = (
    ("english", "--sentences", "2000"),
    ("chang", "--sentences", "2000", "--libsvm", "300", "--degrees", "1", "2"),
    ("japanese", "--sentences", "3000"),
    ("chunking", "--sentences", "3000"),
    ("text", "--sentences", "2000", "--lines", "5000"),
)


def chunking(arguments: argparse.Namespace) -> None:
    whole = corpus("conll2000")
    train = (whole if arguments.test else whole[:-HELD_OUT])[: arguments.sentences]
    answered = corpus("conll2000", "test") if arguments.test else whole[-HELD_OUT:]
    table = Table(
        f"Chunking: CoNLL-2000, {len(train):,} sentences to learn from, scored on "
        + ("test" if arguments.test else f"the last {HELD_OUT:,} of training, which are left out of it"),
        arguments,
        *("degree", "F1", "precision", "recall", "tags right", "training CPU s", "tables MB", "tokens/s"),
    )
    for degree in arguments.degrees:
        chunker, cpu = cpu_timed(lambda degree=degree: Chunker(degree).fit(train))
        found = best_result(chunker, answered)
        table.add(
            degree,
            *(f"{score:.2f}" for score in (found.f1, found.precision, found.recall, found.accuracy)),
            f"{cpu:.1f}",
            megabytes(chunker.classifier_.nbytes),
            f"{found.tokens_per_second:,.0f}",
        )


SECTIONS: dict[str, Section] = {
    "english": english,
    "chang": chang,
    "japanese": japanese,
    "chunking": chunking,
    "text": text,
}


def parse_arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sections = parser.add_subparsers(dest="section", required=True)
    for name in SECTIONS:
        section = sections.add_parser(name)
        section.add_argument("--sentences", type=int, help="learn from so many sentences only")
        section.add_argument("--test", action="store_true", help="score on the test part")
    add_own_options(sections.choices)
    arguments = parser.parse_args(words)
    arguments.command = f"python benchmarks/parsing.py {shlex.join(words)}"
    return arguments


def add_own_options(sections: dict[str, argparse.ArgumentParser]) -> None:
    for name, degrees in (("chang", [1, 2, 3]), ("japanese", [1, 2, 3]), ("chunking", [1, 2])):
        sections[name].add_argument("--degrees", type=int, nargs="+", default=degrees, choices=[1, 2, 3])
    sections["chang"].add_argument("--libsvm", type=int, default=1_000, help="sentences that LIBSVM gets")
    tables = ["paper", "libsvm", "online"]
    sections["chang"].add_argument("--tables", nargs="+", default=tables, choices=tables)
    sections["japanese"].add_argument("--corpus", choices=["kyoto-reading", "wac"], default="kyoto-reading")
    sections["japanese"].add_argument("--no-logistic", action="store_true", help="without the l1-LLM")
    sections["english"].add_argument("--templates", nargs="+", default=["default", "rich"])
    sections["text"].add_argument("--lines", type=int, default=20_000, help="sentences of text to parse")


def needed(arguments: argparse.Namespace) -> list[tuple[str, str]]:
    """The parts of data sets that a section reads."""
    scored = "test" if arguments.test else "dev"
    if arguments.section == "japanese":
        return [(arguments.corpus, "train"), (arguments.corpus, scored)]
    if arguments.section == "chunking":
        return [("conll2000", "train")] + [("conll2000", "test")] * arguments.test
    text_file = [("amalgum", "train")] if arguments.section == "text" else []
    return [("en_ewt", "train"), ("en_ewt", "dev"), ("en_ewt", scored), *text_file]


def run(arguments: argparse.Namespace) -> None:
    try:
        for dataset, part in needed(arguments):
            datasets.path(dataset, part)
    except FileNotFoundError as error:
        print(f"{arguments.section}: skipped: {error}")
        return
    SECTIONS[arguments.section](arguments)


def main() -> None:
    for words in [sys.argv[1:]] if sys.argv[1:] else MODERATE:
        run(parse_arguments(list(words)))


if __name__ == "__main__":
    main()
