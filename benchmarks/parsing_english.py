"""English: the default parser, and its speed on unannotated text."""

from __future__ import annotations

import io
import itertools
import lzma
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import unkernel
from harness import Report, Times, take_turns, timed, wall_seconds
from harness.processes import peak_megabytes, run_in_process
from parsing_tools import corpus, evaluate_in_turns, words_per_second
from unkernel import datasets
from unkernel.data import Treebank, read_conllu
from unkernel.parsing import ArcEagerParser

TREEBANK, TEXT = "en_ewt", "amalgum"
TRIE_NODES = (10_000, 100_000, 1_000_000)
TRIE_SENTENCES = 5_000
SCORES = {
    "uas": "UAS",
    "las": "LAS",
    "uas_no_punct": "UAS, no punctuation",
    "las_no_punct": "LAS, no punctuation",
}


def english(
    report: Report,
    task: str,
    templates: str,
    *,
    beam: int = 1,
    sentences: int | None = None,
    parts: Sequence[str] = ("dev",),
) -> None:
    """Measure accuracy, training, size and speed of the parser; each step runs in a separate process."""
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder, "english.uk"))
        trained = run_in_process("parsing_english", f"train({file!r}, {templates!r}, {beam}, {sentences})")
        for part in parts:
            result = run_in_process(
                "parsing_english", f"parse({file!r}, {part!r}, {3 if report.quick else 5})"
            )
            row = f"{task}, {part}"
            for key, figure in SCORES.items():
                report.add(row, "unkernel", figure, "%", result[key])
            report.add(row, "unkernel", "parsing", "CPU µs per sentence", Times(result["microseconds"]))
            report.add(row, "unkernel", "words", "1/s", result["words"])
            report.add(row, "unkernel", "training", "CPU s", trained["cpu"])
            report.add(row, "unkernel", "file", "MB", Path(file).stat().st_size / 1e6)
            report.add(row, "unkernel", "peak of training", "MB", trained["peak"])
            report.add(row, "unkernel", "peak of parsing", "MB", result["peak"])


def train(file: str, templates: str, beam: int, sentences: int | None) -> dict[str, float]:
    """Fit a parser and save it. The time includes choosing the best epoch on dev."""
    bank, dev = corpus(TREEBANK, "train", sentences), corpus(TREEBANK, "dev")
    parser, cpu, _ = timed(lambda: ArcEagerParser(templates=templates, beam=beam).fit(bank, dev=dev))
    parser.save(file)
    return {"cpu": cpu, "peak": peak_megabytes()}


def parse(file: str, part: str, rounds: int) -> dict[str, Any]:
    results = evaluate_in_turns({"": unkernel.load(file)}, corpus(TREEBANK, part), rounds)[""]
    return {name: getattr(results[0], name) for name in SCORES} | {
        "microseconds": [1e6 / result.sentences_per_second for result in results],
        "words": max(words_per_second(result) or 0.0 for result in results),
        "peak": peak_megabytes(),
    }


# --- Text without trees --------------------------------------------------------------------------------


def text(report: Report, task: str, *, lines: int, sentences: int | None = None) -> None:
    """Measure the throughput on text, and the effect of a prefix trie that is grown from this text."""
    bank = corpus(TREEBANK, "train", sentences)
    words = tagged_text(lines, usual_upos(bank))
    parser = ArcEagerParser().fit(bank)
    throughput(report, task, parser, words)
    if not report.quick:
        tries(report, f"{task}, prefix trie of moves", parser, bank, parser.parse(words[:TRIE_SENTENCES]))


def usual_upos(bank: Treebank) -> dict[str, str]:
    """Return the most frequent UPOS of each XPOS."""
    (xpos, xpos_names), (upos, upos_names) = bank.symbols("xpos"), bank.symbols("upos")
    pairs = Counter(zip(xpos.tolist(), upos.tolist(), strict=True))
    return {xpos_names[x]: upos_names[u] for (x, u), _ in reversed(pairs.most_common())}


def tagged_text(lines: int, upos: dict[str, str]) -> Treebank:
    """Return the first sentences of the text; tags that do not occur in the treebank become X."""
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


def throughput(report: Report, task: str, parser: ArcEagerParser, words: Treebank) -> None:
    parser.parse(words[:100])
    works = {f"{jobs}": partial(parser.parse, words, n_jobs=jobs) for jobs in (1, 2)}
    for jobs, times in take_turns(works, 2 if report.quick else 5, wall_seconds).items():
        contender = f"unkernel, {jobs} thread{'s' * (jobs != '1')}"
        report.add(task, contender, "a sentence", "wall µs", times.scaled(1e6 / len(words)))
        report.add(task, contender, "words", "1/s", words.n_words / times.best)


def tries(report: Report, task: str, first: ArcEagerParser, bank: Treebank, parsed: Treebank) -> None:
    """Measure the classifier of moves with its own engine, and with tries from decisions on parsed text.

    A parser lists only the decisions of its training sentences. A second parser therefore learns from the
    treebank and from the sentences that the first one has parsed.
    """
    combined = read_conllu(io.BytesIO(bank.to_bytes().rstrip(b"\n") + b"\n\n" + parsed.to_bytes()))
    parser, dev = ArcEagerParser().fit(combined), corpus(TREEBANK, "dev")
    rows = move_rows(parser, combined)[move_rows(first, bank).shape[0] :]
    held_out = np.arange(rows.shape[0]) % 10 == 0
    growing_rows, test_rows = rows[~held_out], rows[held_out]
    own_engine = parser.move_classifiers_[0]
    engines = {"unkernel, no trie": own_engine}
    for nodes in TRIE_NODES:
        options = {"trie": growing_rows, "trie_nodes": nodes, "sample": test_rows}
        engines[f"unkernel, {nodes:,} nodes"] = unkernel.compile(
            own_engine.model, memory="4G", n_jobs=1, **options
        )
    works = {name: partial(fast.score_csr, test_rows, 1) for name, fast in engines.items()}
    for name, times in take_turns(works, 5).items():
        fast = engines[name]
        report.add(task, name, "a decision", "CPU µs", times.scaled(1e6 / test_rows.shape[0]))
        report.add(task, name, "tables", "MB", fast.nbytes / 1e6)
        results = evaluate_in_turns({"": replace(parser.model_, move_classifiers_=[fast])}, dev, 3)[""]
        speed = max(words_per_second(result) or 0.0 for result in results)
        report.add(task, name, "words of EWT dev", "1/s", speed)


def move_rows(parser: ArcEagerParser, bank: Treebank) -> Any:
    """Return the decisions that lead to the trees from which the parser learnt."""
    spec = parser.model_.spec
    moves, _ = spec.rows(bank._text)
    offsets, columns = np.asarray(moves["offsets"]), np.asarray(moves["columns"])
    shape = (len(offsets) - 1, spec.move_columns)
    return sparse.csr_matrix((np.ones(len(columns)), columns, offsets), shape=shape)
