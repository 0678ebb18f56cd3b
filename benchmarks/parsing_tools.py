"""Common parts of the parsing benchmarks: corpora, and evaluations in turns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness import Report, Times
from unkernel import datasets
from unkernel.data import read_bunsetsu, read_conllu

READERS = {
    "conllu": read_conllu,
    "bunsetsu": read_bunsetsu,
}


def corpus(dataset: str, part: str = "train", sentences: int | None = None) -> Any:
    """Return a part of a data set, or its first sentences."""
    read_bank = READERS[datasets.describe(dataset).format]
    return read_bank(datasets.path(dataset, part))[:sentences]


def evaluate_in_turns(parsers: Mapping[str, Any], bank: Any, rounds: int) -> dict[str, list[Any]]:
    """Return the results of ``evaluate`` on one thread for each round; parsers take turns."""
    results = [
        {name: parser.evaluate(bank, n_jobs=1) for name, parser in parsers.items()} for _ in range(rounds)
    ]
    return {name: [result[name] for result in results] for name in parsers}


def add_speed(report: Report, task: str, contender: str, results: list[Any]) -> None:
    """Report the time of a sentence, and the words per second of the best round."""
    times = Times([1e6 / result.sentences_per_second for result in results])
    report.add(task, contender, "parsing", "CPU µs per sentence", times)
    words = [speed for result in results if (speed := words_per_second(result)) is not None]
    if words:
        report.add(task, contender, "words", "1/s", max(words))


def words_per_second(result: Any) -> float | None:
    return getattr(result, "words_per_second", None) or getattr(result, "tokens_per_second", None)
