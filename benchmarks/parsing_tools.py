"""What the parsing benchmarks share: data, tables, clocks."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

from unkernel import datasets
from unkernel.data import read_bunsetsu, read_chunks, read_conllu

ROUNDS = 5
READERS = {
    "conllu": read_conllu,
    "bunsetsu": read_bunsetsu,
    "chunks": lambda path: read_chunks(path, tagged=True),
}


def corpus(dataset: str, part: str = "train", sentences: int | None = None) -> Any:
    """A part of a data set, or its first sentences."""
    read = READERS[datasets.describe(dataset).format]
    return read(datasets.path(dataset, part))[:sentences]


def answered_part(arguments: argparse.Namespace) -> str:
    return "test" if arguments.test else "dev"


class Table:
    """A markdown table with the command that makes it; rows are printed as they come."""

    def __init__(self, title: str, arguments: argparse.Namespace, *headings: str) -> None:
        print(f"\n### {title}\n\n`{arguments.command}`\n")
        print("| " + " | ".join(headings) + " |\n|" + "---|" * len(headings), flush=True)
        self.width = len(headings)

    def add(self, *cells: Any) -> None:
        assert len(cells) <= self.width, "a cell without a heading"
        words = [*map(str, cells), *[""] * (self.width - len(cells))]
        print("| " + " | ".join(words) + " |", flush=True)


def cpu_timed(work: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.process_time()
    made = work()
    return made, time.process_time() - begin


def wall_seconds(work: Callable[[], Any], rounds: int = ROUNDS) -> float:
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def best_results(parsers: Sequence[Any], bank: Any, rounds: int = ROUNDS) -> list[Any]:
    """What ``evaluate`` says, one thread, of the round that took the least CPU time.

    The parsers take turns, so that what else runs disturbs all alike.
    """
    results = [[parser.evaluate(bank, n_jobs=1) for parser in parsers] for _ in range(rounds)]
    return [max(own, key=lambda result: result.sentences_per_second) for own in zip(*results, strict=True)]


def best_result(parser: Any, bank: Any, rounds: int = ROUNDS) -> Any:
    return best_results([parser], bank, rounds)[0]


def megabytes(size: float) -> str:
    return f"{size / 1e6:,.0f}" if size >= 10e6 else f"{size / 1e6:.1f}"
