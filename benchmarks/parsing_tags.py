"""Taggers: accuracy of each column, training and speed."""

from __future__ import annotations

from typing import Any

from harness import Report, Times, timed
from parsing_english import tagged_words
from parsing_tools import corpus
from unkernel.parsing import Tagger, WordClusters


def tags(
    report: Report, task: str, dataset: str, *, sentences: int | None = None, clusters: bool = False
) -> None:
    """Measure the default tagger on gold words of the dev part, also with clusters of an English text."""
    train, dev = corpus(dataset, "train", sentences), corpus(dataset, "dev")
    add_tagger(report, task, "unkernel", Tagger(), train, dev)
    if clusters:
        word_clusters, cpu, _ = timed(lambda: english_clusters(train))
        report.add(task, "unkernel, clusters", "clustering", "CPU s", cpu)
        add_tagger(report, task, "unkernel, clusters", Tagger(clusters=word_clusters), train, dev)


def english_clusters(train: Any) -> WordClusters:
    """Return word clusters of an English text and a treebank."""
    return WordClusters.learn([[form for form, _ in words] for words in tagged_words()], train)


def add_tagger(report: Report, task: str, contender: str, tagger: Tagger, train: Any, dev: Any) -> None:
    """Train a tagger, and measure it."""
    _, cpu, _ = timed(lambda: tagger.fit(train))
    results = [tagger.evaluate(dev, n_jobs=1) for _ in range(3)]
    for column, share in results[0].accuracy.items():
        report.add(task, contender, column, "%", share)
    report.add(task, contender, "all columns", "%", results[0].all)
    times = Times([1e6 / result.words_per_second for result in results])
    report.add(task, contender, "tagging", "CPU µs per word", times)
    report.add(task, contender, "training", "CPU s", cpu)
    report.add(task, contender, "tables", "MB", tagger.nbytes / 1e6)
