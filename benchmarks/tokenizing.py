"""Plain text into sentences, tokens and words, against UDPipe.

    python benchmarks/tokenizing.py [--quick] [--save] [TASK ...]

"en_ewt_full" and "fr_sequoia" are treebanks of Universal Dependencies. Tokenizer with its defaults, and the
tokenizer of UDPipe 1 (udpipe.py) with its default options, without tagger and parser, train on the same
treebank, and choose their best epoch on its dev part. Then they split the text of the test part: that of the
comments `# text`, with an empty line before each paragraph and one space between other sentences. F1 of
tokens, sentences and words are computed as in the CoNLL 2018 shared task. UDPipe trains for tens of minutes,
once for each treebank, and is left out by --quick.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from harness import Report, main
from harness.processes import LeftOutError, run_in_process
from harness.state import find_version
from parsing_tools import corpus
from udpipe import request_parse, trained
from unkernel.data import Treebank
from unkernel.parsing import TextResult, Tokenizer, compare_text
from unkernel.parsing.text.gold_text import plain_text

TASKS = ["en_ewt_full", "fr_sequoia"]
QUICK = ["fr_sequoia"]
LONGEST = 3600.0  # seconds of training


def parts(task: str) -> list[Treebank]:
    """Return the treebanks for training, for choosing the epoch, and for measuring."""
    return [corpus(task, part) for part in ("train", "dev", "test")]


def figures(result: TextResult, training: float) -> dict[str, float]:
    scores = {name: getattr(result, name).f1 for name in ("tokens", "sentences", "words")}
    return scores | {"training": training, "words_per_second": result.words_per_second}


def tokenizer_of_ours(task: str) -> dict[str, float]:
    train, dev, test = parts(task)
    begin = time.process_time()
    tokenizer = Tokenizer().fit(train, dev=dev)
    spent = time.process_time() - begin
    runs = [tokenizer.evaluate(test) for _ in range(5)]
    return figures(max(runs, key=lambda run: run.words_per_second), spent)


def udpipe(task: str) -> dict[str, float]:
    import ufal.udpipe as peer

    train, dev, test = parts(task)
    training = trained(train, dev, until="tokenizer")
    answer, seconds = request_parse(peer.Model.load(str(training.path)), plain_text(test), stages=1)
    return figures(compare_text(test, answer, seconds=seconds), training.seconds)


def measure(report: Report, tasks: Sequence[str]) -> None:
    contenders = {"unkernel": "tokenizer_of_ours"} | ({} if report.quick else {"UDPipe": "udpipe"})
    for task in tasks:
        for contender, call in contenders.items():
            try:
                add(
                    report,
                    task,
                    contender,
                    run_in_process("tokenizing", f"{call}({task!r})", seconds=LONGEST),
                )
            except (LeftOutError, FileNotFoundError) as error:
                report.leave_out(f"{task}, {contender}", error)


def add(report: Report, task: str, contender: str, actual: dict[str, float]) -> None:
    version = "" if contender == "unkernel" else find_version("ufal.udpipe")
    for name in ("tokens", "sentences", "words"):
        report.add(task, contender, name, "F1", actual[name], version=version)
    report.add(task, contender, "training", "CPU s", actual["training"], version=version)
    report.add(task, contender, "splitting", "words/s", actual["words_per_second"], version=version)


if __name__ == "__main__":
    main(measure, TASKS, quick=QUICK)
