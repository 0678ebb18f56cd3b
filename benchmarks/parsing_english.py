"""English: the parser as it comes, and its speed on text that nobody annotated."""

from __future__ import annotations

import argparse
import io
import itertools
import lzma
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import unkernel
from harness.processes import peak_megabytes, result_of
from parsing_tools import (
    ROUNDS,
    Table,
    best_result,
    corpus,
    cpu_timed,
    megabytes,
    wall_seconds,
)
from unkernel import datasets
from unkernel.data import Treebank, read_conllu
from unkernel.parsing import ArcEagerParser

TREEBANK, TEXT = "en_ewt", "amalgum"
TRIE_NODES = (10_000, 100_000, 1_000_000)
TRIE_SENTENCES = 5_000


def english(arguments: argparse.Namespace) -> None:
    """Accuracy, training, size and speed of the parser as it comes, and with other templates."""
    table = Table(
        "English: UD EWT",
        arguments,
        *(
            "templates",
            "scored on",
            "UAS",
            "LAS",
            "UAS, no punctuation",
            "LAS, no punctuation",
            "training CPU s",
        ),
        *("file MB", "words/s", "sentences/s", "peak MB: training", "parsing"),
    )
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder, "english.uk"))
        scored = ["dev", "test"] if arguments.test else ["dev"]
        for templates, part in itertools.product(arguments.templates, scored):
            if part == "dev":
                trained = result_of(
                    "parsing_english", f"train({file!r}, {templates!r}, {arguments.sentences})"
                )
            found = result_of("parsing_english", f"parse({file!r}, {part!r})")
            table.add(
                templates,
                part,
                *(f"{found[name]:.2f}" for name in ("uas", "las", "uas_no_punct", "las_no_punct")),
                f"{trained['cpu']:.1f}",
                megabytes(Path(file).stat().st_size),
                f"{found['words_per_second']:,.0f}",
                f"{found['sentences_per_second']:,.0f}",
                f"{trained['peak']:.0f}",
                f"{found['peak']:.0f}",
            )


def train(file: str, templates: str, sentences: int | None) -> dict[str, float]:
    """Fit and save; dev chooses among the epochs, and the time has that in it."""
    bank, dev = corpus(TREEBANK, "train", sentences), corpus(TREEBANK, "dev")
    parser, cpu = cpu_timed(lambda: ArcEagerParser(templates=templates).fit(bank, dev=dev))
    parser.save(file)
    return {"cpu": cpu, "peak": peak_megabytes()}


def parse(file: str, part: str) -> dict[str, float]:
    result = best_result(unkernel.load(file), corpus(TREEBANK, part))
    names = ("uas", "las", "uas_no_punct", "las_no_punct", "words_per_second", "sentences_per_second")
    return {name: getattr(result, name) for name in names} | {"peak": peak_megabytes()}


# --- Text without trees --------------------------------------------------------------------------------


def text(arguments: argparse.Namespace) -> None:
    """Throughput on text, and what a prefix trie grown from it is worth."""
    bank = corpus(TREEBANK, "train", arguments.sentences)
    words = tagged_text(arguments.lines, usual_upos(bank))
    parser = ArcEagerParser().fit(bank)
    throughput(arguments, parser, words)
    tries(arguments, parser, bank, parser.parse(words[:TRIE_SENTENCES]))


def usual_upos(bank: Treebank) -> dict[str, str]:
    """For each XPOS the UPOS that it has most often."""
    (xpos, xpos_names), (upos, upos_names) = bank.symbols("xpos"), bank.symbols("upos")
    pairs = Counter(zip(xpos.tolist(), upos.tolist(), strict=True))
    return {xpos_names[x]: upos_names[u] for (x, u), _ in reversed(pairs.most_common())}


def tagged_text(lines: int, upos: dict[str, str]) -> Treebank:
    """The first sentences of the text; a tag that the treebank does not have is an X."""
    forms, tags = [], []
    for words in itertools.islice(tagged_words(), lines):
        forms.append([form for form, _ in words])
        tags.append([tag for _, tag in words])
    universal = [[upos.get(tag, "X") for tag in sentence] for sentence in tags]
    return Treebank.from_words(forms, universal, xpos=tags)


def tagged_words() -> Iterator[list[tuple[str, str]]]:
    with lzma.open(datasets.path(TEXT), "rt", encoding="utf-8") as file:
        for line in file:
            pairs = (token.rpartition("|") for token in line.split(" "))
            words = [(form.strip(), tag.strip()) for form, _, tag in pairs if form.strip() and tag.strip()]
            if words:
                yield words


def throughput(arguments: argparse.Namespace, parser: ArcEagerParser, words: Treebank) -> None:
    table = Table(
        f"Throughput: {len(words):,} sentences, {words.n_words:,} words of text, best of {ROUNDS}",
        arguments,
        *("threads", "words/s, wall", "sentences/s, wall", "words/s of CPU time", "times one thread, wall"),
    )
    parser.parse(words[:100])
    alone = None
    for jobs in (1, 2):
        work = partial(parser.parse, words, n_jobs=jobs)
        wall, cpu = wall_seconds(work), min(cpu_timed(work)[1] for _ in range(ROUNDS))
        alone = alone or wall
        speeds = words.n_words / wall, len(words) / wall, words.n_words / cpu
        table.add(jobs, *(f"{speed:,.0f}" for speed in speeds), f"{alone / wall:.2f}")


def tries(arguments: argparse.Namespace, first: ArcEagerParser, bank: Treebank, parsed: Treebank) -> None:
    """Of the classifier of moves: its own engine, and tables with tries grown from decisions of parsed text.

    Decisions are to be had of sentences that a parser learnt from alone: so another one learns from the
    treebank and from what the first one made of the text.
    """
    both = read_conllu(io.BytesIO(bank.to_bytes().rstrip(b"\n") + b"\n\n" + parsed.to_bytes()))
    parser, dev = ArcEagerParser().fit(both), corpus(TREEBANK, "dev")
    rows = move_rows(parser, both)[move_rows(first, bank).shape[0] :]
    held_out = np.arange(rows.shape[0]) % 10 == 0
    grown, asked = rows[~held_out], rows[held_out]
    table = Table(
        f"A prefix trie of moves, grown from {grown.shape[0]:,} decisions of parsed text",
        arguments,
        *("trie nodes", "MB", "µs a decision on other decisions of that text", "words/s on EWT dev"),
    )
    own = parser.move_classifiers_[0]
    for nodes in (None, *TRIE_NODES):
        options = {"trie": grown, "trie_nodes": nodes, "sample": asked}
        fast = unkernel.compile(own.model, memory="4G", n_jobs=1, **options) if nodes else own
        parser.move_classifiers_ = [fast]
        spent = min(cpu_timed(lambda fast=fast: fast.score_csr(asked, 1))[1] for _ in range(ROUNDS))
        table.add(
            f"{fast.trie.nodes:,}" if fast.trie else "none",
            megabytes(fast.nbytes),
            f"{1e6 * spent / asked.shape[0]:.2f}",
            f"{best_result(parser, dev).words_per_second:,.0f}",
        )


def move_rows(parser: ArcEagerParser, bank: Treebank) -> Any:
    """The decisions that lead to the trees which the parser learnt from."""
    moves, _ = parser._frame.rows(bank._text)
    offsets, columns = np.asarray(moves["offsets"]), np.asarray(moves["columns"])
    shape = (len(offsets) - 1, parser._frame.move_columns)
    return sparse.csr_matrix((np.ones(len(columns)), columns, offsets), shape=shape)
