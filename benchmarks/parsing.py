"""Parsers and chunkers: accuracy, training, speed; tables of two papers redone, beside LIBSVM.

CPU seconds of one thread unless a unit says otherwise; speeds are those of the best round with the text read
and the model loaded. Scores are those of the dev parts, unless a task says test.

- "English": the arc-eager parser on UD EWT with gold tags.
- "Chang": Table 10 of Chang et al. (2010): the templates of their Table 8, labels predicted apart from moves,
  and a classifier for each tag of the next word. LIBSVM (scikit-learn's copy) learns from the very rows that
  ours learns from, with the same kernel (x'z + 1)^2. In the paper (Penn Treebank): linear 89.11 / 88.07,
  degree 2 91.71 / 90.71, parsing with degree 2 takes 16 times as long as linear, and LIBSVM 103 times that.
- "kyoto-reading", "wac": Tables 2 to 4 of Yoshinaga & Kitsuregawa (2009): Japanese dependencies. Their SVM-KE
  is our engine "expanded", SVM-HKE "pruned", PKI "inverted", and fstrie a prefix trie.
- "chunking": CoNLL-2000, which has no dev part: the last 1,000 sentences of training stand for it.
- "text": throughput on text that nobody annotated, and prefix tries grown from it.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/parsing.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from harness import Report, main, timed
from harness.processes import LeftOutError
from parsing_chang import beside_libsvm, chang, online
from parsing_english import english, text
from parsing_japanese import japanese, log_linear
from parsing_tools import add_speed, corpus, evaluated
from unkernel.parsing import Chunker

HELD_OUT = 1_000


def chunking(
    report: Report, task: str, degrees: Sequence[int], *, part: str = "dev", sentences: int | None = None
) -> None:
    whole = corpus("conll2000")
    train = (whole if part == "test" else whole[:-HELD_OUT])[:sentences]
    answered = corpus("conll2000", "test") if part == "test" else whole[-HELD_OUT:]
    fitted = {
        f"unkernel, degree {degree}": timed(lambda degree=degree: Chunker(degree).fit(train))
        for degree in degrees
    }
    parsers = {name: made.result for name, made in fitted.items()}
    for name, results in evaluated(parsers, answered, 3 if report.quick else 5).items():
        found = results[0]
        for figure, value in (("F1", found.f1), ("precision", found.precision), ("recall", found.recall)):
            report.add(task, name, figure, "%", value)
        report.add(task, name, "tags right", "%", found.accuracy)
        add_speed(report, task, name, results)
        report.add(task, name, "training", "CPU s", fitted[name].cpu)
        report.add(task, name, "tables", "MB", parsers[name].classifier_.nbytes / 1e6)


both = ("dev", "test")
TASKS: dict[str, Callable[[Report, str], None]] = {
    "English, 500 sentences": partial(english, templates="default", sentences=500),
    "English, default templates": partial(english, templates="default", parts=both),
    "English, rich templates": partial(english, templates="rich", parts=both),
    "Chang, 2,000 sentences": partial(chang, degrees=(1, 2), sentences=2000),
    "Chang, all sentences": partial(chang, degrees=(1, 2)),
    "Chang, 1,000 sentences, beside LIBSVM": partial(beside_libsvm, sentences=1000),
    "Chang, online learner": partial(online, degrees=(1, 2)),
    "kyoto-reading, 3,000 sentences": partial(
        japanese, dataset="kyoto-reading", degrees=(1, 2), sentences=3000
    ),
    "kyoto-reading, test": partial(japanese, dataset="kyoto-reading", degrees=(1, 2, 3), part="test"),
    "kyoto-reading, l1-LLM": partial(log_linear, dataset="kyoto-reading"),
    "wac, test": partial(japanese, dataset="wac", degrees=(1, 2, 3), part="test"),
    "chunking, 3,000 sentences": partial(chunking, degrees=(1, 2), sentences=3000),
    "chunking, dev": partial(chunking, degrees=(1, 2)),
    "chunking, test": partial(chunking, degrees=(1, 2), part="test"),
    "text, 500 sentences learnt": partial(text, lines=5000, sentences=500),
    "text": partial(text, lines=20_000),
}
QUICK = [
    "English, 500 sentences",
    "Chang, 2,000 sentences",
    "kyoto-reading, 3,000 sentences",
]


def measure(report: Report, tasks: Sequence[str]) -> None:
    for task in tasks:
        try:
            TASKS[task](report, task)
        except (FileNotFoundError, LeftOutError) as reason:
            report.leave_out(task, reason)


if __name__ == "__main__":
    main(measure, list(TASKS), quick=QUICK)
