"""Raw text to trees: all measures of the CoNLL 2018 shared task, training, size, loading and speed.

All contenders train on the same treebank, and choose the best epoch on its dev part: TextParser with its
defaults; for English, TextParser with clusters of an English text and a beam, as docs/text.md recommends for
accuracy; and UDPipe 1 (udpipe.py), which --quick leaves out. They are measured on the test part, from its
tokens and from its text. The text is taken from the comments `# text`, with an empty line before each
paragraph and one space between other sentences.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import unkernel
from harness import Report, timed
from harness.processes import LeftOutError, run_in_process
from harness.state import find_version
from parsing_tags import english_clusters
from parsing_tools import corpus
from udpipe import request_parse, trained
from unkernel.data import Treebank
from unkernel.parsing import ArcEagerParser, TextParser, TextResult, compare_text
from unkernel.parsing.text.gold_text import plain_text

STARTS = ("text", "tokens")
LONGEST = 4 * 3600.0  # seconds of training and measuring
FIGURES = {
    "training": ("training", "CPU s"),
    "file": ("file", "MB"),
    "loading": ("loading", "ms"),
    "first": ("loading, and a first sentence", "ms"),
    "peak": ("peak", "MB"),
}
ACCURATE = "unkernel, clusters and beam"
CONTENDERS = {"unkernel": ("ours", ""), ACCURATE: ("accurate", ""), "UDPipe": ("udpipe", "ufal.udpipe")}


def raw_text(
    report: Report, task: str, dataset: str, *, sentences: int | None = None, clusters: bool = False
) -> None:
    """Measure each contender in a separate process; clusters are learnt from an English text."""
    for contender, (call, package) in CONTENDERS.items():
        if (report.quick and package) or (contender == ACCURATE and not clusters):
            continue
        try:
            result = run_in_process("parsing_text", f"{call}({dataset!r}, {sentences})", seconds=LONGEST)
        except LeftOutError as reason:
            report.leave_out(f"{task}, {contender}", reason)
            continue
        add(report, task, contender, result, find_version(package) if package else "")


def add(report: Report, task: str, contender: str, results: dict[str, Any], version: str) -> None:
    for start in STARTS:
        for measure, f1 in results[start]["scores"].items():
            report.add(f"{task}, from {start}", contender, measure, "F1", f1, version=version)
        speed = results[start]["words_per_second"]
        report.add(f"{task}, from {start}", contender, "parsing", "words/s", speed, version=version)
    for figure, (name, unit) in FIGURES.items():
        if figure in results:
            report.add(task, contender, name, unit, results[figure], version=version)


# --- Contenders, which run in separate processes -----------------------------------------------------------


def ours(dataset: str, sentences: int | None) -> dict[str, Any]:
    train, dev = corpus(dataset, "train", sentences), corpus(dataset, "dev")
    nlp, training, _ = timed(lambda: TextParser().fit(train, dev=dev))
    return measured(nlp, training, corpus(dataset, "test"))


def accurate(dataset: str, sentences: int | None) -> dict[str, Any]:
    """Measure the parser with clusters and a beam; training includes clustering."""
    train, dev = corpus(dataset, "train", sentences), corpus(dataset, "dev")
    parser = ArcEagerParser(beam=8, epochs=5, runs=1)
    nlp, training, _ = timed(
        lambda: TextParser(clusters=english_clusters(train), parser=parser).fit(train, dev=dev)
    )
    return measured(nlp, training, corpus(dataset, "test"))


def measured(nlp: TextParser, training: float, test: Treebank) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "text.uk")
        nlp.save(path)
        loading = best_milliseconds(lambda: unkernel.load(path))
        first_parse = best_milliseconds(lambda: unkernel.load(path).parse("A sentence."), rounds=3)
        size = path.stat().st_size
    result = {start: best([nlp.evaluate(test, given=start) for _ in range(5)]) for start in STARTS}
    return result | figures(training, size, loading) | {"first": first_parse}


def udpipe(dataset: str, sentences: int | None) -> dict[str, Any]:
    import ufal.udpipe as peer

    training = trained(corpus(dataset, "train", sentences), corpus(dataset, "dev"))
    model = peer.Model.load(str(training.path))
    loading = best_milliseconds(lambda: peer.Model.load(str(training.path)))
    test = corpus(dataset, "test")
    result = {}
    for start, inputs in {"text": plain_text(test), "tokens": test}.items():
        runs = [request_parse(model, inputs) for _ in range(3)]
        result[start] = best([compare_text(test, answer, seconds=seconds) for answer, seconds in runs])
    return result | figures(training.seconds, training.path.stat().st_size, loading)


def figures(training: float, size: int, loading: float) -> dict[str, float]:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return {"training": training, "file": size / 1e6, "loading": loading, "peak": peak}


def best(results: list[TextResult]) -> dict[str, Any]:
    """Return the scores, which are the same in all rounds, and the speed of the best round."""
    scores = {name: score.f1 for name, score in results[0].scores().items()}
    return {"scores": scores, "words_per_second": max(result.words_per_second for result in results)}


def best_milliseconds(work: Callable[[], object], rounds: int = 10) -> float:
    spent = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        spent.append(1e3 * (time.perf_counter() - begin))
    return min(spent)
