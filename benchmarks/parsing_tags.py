"""Taggers: accuracy of each column, training and speed."""

from __future__ import annotations

from harness import Report, Times, timed
from parsing_tools import corpus
from unkernel.parsing import Tagger


def tags(report: Report, task: str, dataset: str, *, sentences: int | None = None) -> None:
    """As it comes, from gold words; measured on the dev part."""
    tagger, cpu, _ = timed(lambda: Tagger().fit(corpus(dataset, "train", sentences)))
    results = [tagger.evaluate(corpus(dataset, "dev"), n_jobs=1) for _ in range(3)]
    for column, share in results[0].accuracy.items():
        report.add(task, "unkernel", column, "%", share)
    report.add(task, "unkernel", "all columns", "%", results[0].all)
    times = Times([1e6 / result.words_per_second for result in results])
    report.add(task, "unkernel", "tagging", "CPU µs per word", times)
    report.add(task, "unkernel", "training", "CPU s", cpu)
    report.add(task, "unkernel", "tables", "MB", tagger.nbytes / 1e6)
