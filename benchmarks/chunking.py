"""Chunks, with and without parts of speech, against CRFsuite.

    python benchmarks/chunking.py [--quick] [--save] [TASK ...]

"conll2000" has a column of parts of speech; "conll2000, words" is the same text without this column. The
tasks "names" find the runs of proper nouns of UD English EWT from the words alone. In "names by role", the
type of a run is its relation to the rest of the sentence; most types are rare. Both train on every eighth
training sentence, and are measured on dev.

The contenders are Chunker with its defaults, Chunker with a beam of 1, and CRFsuite (python-crfsuite, L-BFGS
with at most 200 iterations, all transitions). CRFsuite gets the features of its own tutorial (for words
without parts of speech, also prefixes, suffixes and shapes) or the features of our templates. It is measured
with its default penalties, and with others that give a good F1 on these tests. The times of CRFsuite count
only training and tagging, because its features are made before; our times include making the features.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby, product
from pathlib import Path
from typing import Any

from harness import Report, main
from harness.processes import LeftOutError, run_in_process
from harness.state import find_version
from unkernel import datasets
from unkernel.data import ChunkCorpus, read_chunks, read_conllu
from unkernel.parsing import Chunker, compare_chunks
from unkernel.parsing.chunks.estimator import _TEMPLATES
from unkernel.parsing.template_files import read_templates

ONE_IN = 8
PENALTIES = [(0.0, 1.0), (0.1, 0.1), (0.1, 0.01)]  # c1 and c2; the first are the defaults
TASKS = ["conll2000", "conll2000, words", "names", "names by role"]
QUICK = ["names"]

Features = Callable[[list[list[str]], int], list[str]]


# --- Texts ----------------------------------------------------------------------------------------------


def corpora(task: str) -> tuple[ChunkCorpus, ChunkCorpus]:
    """Return the corpora for training and for measuring."""
    if task.startswith("names"):
        typed = task == "names by role"
        return load_noun_phrases("train", typed, ONE_IN), load_noun_phrases("dev", typed)
    train, test = (read_chunks(datasets.path("conll2000", part)) for part in ("train", "test"))
    return (train, test) if task == "conll2000" else (drop_parts_of_speech(train), drop_parts_of_speech(test))


def drop_parts_of_speech(corpus: ChunkCorpus) -> ChunkCorpus:
    return ChunkCorpus.from_words([s.words for s in corpus], tags=[s.tags for s in corpus])


def load_noun_phrases(part: str, typed: bool, step: int = 1) -> ChunkCorpus:
    sentences = read_conllu(datasets.path("en_ewt", part))[::step]
    tags = [make_chunk_tags(s.upos, s.heads, s.deprels, typed) for s in sentences]
    return ChunkCorpus.from_words([[w.replace(" ", "_") for w in s.forms] for s in sentences], tags=tags)


def make_chunk_tags(upos: list[str], heads: list[int], relations: list[str], typed: bool) -> list[str]:
    """Return tags in IOB2. The type of a run is the relation of its first word with a head outside."""
    tags: list[str] = []
    for is_name, run in groupby(range(len(upos)), lambda word: upos[word] == "PROPN"):
        words = list(run)
        role = next((relations[w] for w in words if not words[0] <= heads[w] - 1 <= words[-1]), "dep")
        kind = role.partition(":")[0] if typed else "NAME"
        tags += [f"{'I' if k else 'B'}-{kind}" if is_name else "O" for k in range(len(words))]
    return tags


# --- CRFsuite's features ------------------------------------------------------------------------------------


def shape(word: str) -> str:
    """Return a word with X, x and d for capital letters, small letters and digits, each run as one sign."""
    letters = re.sub("[0-9]", "d", re.sub("[a-z]", "x", re.sub("[A-Z]", "X", word)))
    return re.sub(r"(.)\1+", r"\1", letters)


def extract_tutorial_features(columns: list[list[str]], i: int) -> list[str]:
    """Return the features of CRFsuite's tutorial, and affixes and shapes if there are only words."""

    def value_at(column: int, offset: int) -> str:
        place = i + offset
        return columns[column][place] if 0 <= place < len(columns[0]) else "_"

    features = [f"w[{k}]={value_at(0, k)}" for k in range(-2, 3)]
    features += [f"w[{k}]|w[{k + 1}]={value_at(0, k)}|{value_at(0, k + 1)}" for k in (-1, 0)]
    if len(columns) > 1:
        features += [f"p[{k}]={value_at(1, k)}" for k in range(-2, 3)]
        features += [f"p[{k}]|p[{k + 1}]={value_at(1, k)}|{value_at(1, k + 1)}" for k in range(-2, 2)]
        features += [
            f"p[{k}..]={value_at(1, k)}|{value_at(1, k + 1)}|{value_at(1, k + 2)}" for k in range(-2, 1)
        ]
    else:
        lower = value_at(0, 0).lower()
        features += [f"lower={lower}", *(f"prefix{n}={lower[:n]}" for n in (2, 3))]
        features += [f"suffix{n}[{k}]={value_at(0, k).lower()[-n:]}" for n in (2, 3) for k in (-1, 0, 1)]
        features += [f"shape[{k}]={shape(value_at(0, k))}" for k in (-1, 0, 1)]
    return features + ["first"] * (i == 0) + ["last"] * (i + 1 == len(columns[0]))


def extract_template_features(columns: list[list[str]], i: int) -> list[str]:
    """Return the features of unkernel's templates except those of tags, which CRFsuite adds itself."""
    values: dict[str, Callable[[str], str]] = {"word": str, "lower": str.lower, "shape": shape}
    values |= {f"prefix{n}": lambda word, n=n: word.lower()[:n] for n in range(1, 5)}  # type: ignore[misc]
    values |= {f"suffix{n}": lambda word, n=n: word.lower()[-n:] for n in range(1, 5)}  # type: ignore[misc]
    result = []
    for name, offset in templates("default" if len(columns) > 1 else "words"):
        place = i + offset
        if not 0 <= place < len(columns[0]):
            result.append(f"{name}[{offset}]" + ("<" if place < 0 else ">"))
        else:
            value = columns[1][place] if name == "pos" else values[name](columns[0][place])
            result.append(f"{name}[{offset}]={value}")
    return result


@cache
def templates(name: str) -> list[tuple[str, int]]:
    """Return the attributes and positions of the templates that have no tags."""
    text = re.sub("#.*", "", read_templates(name, _TEMPLATES)[0])
    return [(name, int(place)) for name, place in re.findall(r"(\w+)\[(-?\d+)\]", text) if name != "tag"]


# --- Contenders, which run in separate processes ------------------------------------------------------------


def chunker_of_ours(task: str) -> dict[str, dict[str, float]]:
    """Measure the default chunker, and the same chunker with another beam."""
    train, test = corpora(task)
    begin = time.process_time()
    model = Chunker().fit(train).model_
    spent = time.process_time() - begin
    result = {}
    for name, beam in (("unkernel", model.beam), ("unkernel, beam 1", 1)):
        runs = [replace(model, beam=beam).evaluate(test) for _ in range(3)]
        speed = max(run.tokens_per_second for run in runs)
        result[name] = {"f1": runs[0].f1, "training": spent, "tokens_per_second": speed}
    return result


def crfsuite(task: str, made_by: str, c1: float, c2: float) -> dict[str, dict[str, float]]:
    import pycrfsuite

    features: Features = {
        "its features": extract_tutorial_features,
        "our templates": extract_template_features,
    }[made_by]
    train, test = corpora(task)

    def items(sentence: Any) -> Any:
        columns = sentence.columns[:-1]
        return pycrfsuite.ItemSequence([features(columns, i) for i in range(len(sentence))])

    trainer = pycrfsuite.Trainer(verbose=False)
    for sentence in train:
        trainer.append(items(sentence), sentence.tags)
    trainer.set_params({"c1": c1, "c2": c2, "max_iterations": 200, "feature.possible_transitions": True})
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder, "model"))
        begin = time.process_time()
        trainer.train(file)
        spent = time.process_time() - begin
        tagger = pycrfsuite.Tagger()
        tagger.open(file)
        ready = [items(sentence) for sentence in test]
        begin = time.process_time()
        tags = [tagger.tag(sentence) for sentence in ready]
        speed = test.n_words / (time.process_time() - begin)
    result = ChunkCorpus.from_words([s.words for s in test], tags=tags)
    f1 = compare_chunks(test, result).f1
    name = f"CRFsuite, {made_by}, c1 {c1:g}, c2 {c2:g}"
    return {name: {"f1": f1, "training": spent, "tokens_per_second": speed}}


def measure(report: Report, tasks: Sequence[str]) -> None:
    penalties = PENALTIES[: 1 if report.quick else None]
    for task in tasks:
        calls = [f"chunker_of_ours({task!r})"]
        for made_by, (c1, c2) in product(("its features", "our templates"), penalties):
            calls.append(f"crfsuite({task!r}, {made_by!r}, {c1}, {c2})")
        for call in calls:
            try:
                add(report, task, run_in_process("chunking", call))
            except LeftOutError as error:
                report.leave_out(f"{task}, {call}", error)


def add(report: Report, task: str, actual: dict[str, dict[str, float]]) -> None:
    for name, result in actual.items():
        version = "" if name.startswith("unkernel") else find_version("python-crfsuite")
        report.add(task, name, "F1", "F1", result["f1"], version=version)
        report.add(task, name, "training", "CPU s", result["training"], version=version)
        report.add(task, name, "tagging", "words/s", result["tokens_per_second"], version=version)


if __name__ == "__main__":
    main(measure, TASKS, quick=QUICK)
