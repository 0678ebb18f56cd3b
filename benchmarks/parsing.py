"""Parsers: accuracy, training, speed.

CPU seconds are for one thread unless a unit says otherwise. Speeds are from the best round, with the
text read and the model loaded. Scores are for the dev parts, unless a task says test.

- "English": the arc-eager parser on UD EWT with gold tags.
- "kyoto-reading", "wac": Japanese dependencies, as Yoshinaga & Kitsuregawa (2009) parse them. Its engines and
  tries are compared by paper_yoshinaga2009.py.
- "raw text": text to trees on the test parts, beside UDPipe: parsing_text.py.
- "tags": parts of speech, features and lemmas of gold words, by the default tagger and by a tagger with
  clusters.
- "text": throughput on unannotated text, and prefix tries grown from it.

    UNKERNEL_DATA=/where/the/data/is python benchmarks/parsing.py [--quick] [--save] [task ...]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from harness import Report, main
from harness.processes import LeftOutError
from parsing_english import english, text
from parsing_japanese import japanese
from parsing_tags import tags
from parsing_text import raw_text

both = ("dev", "test")
TASKS: dict[str, Callable[[Report, str], None]] = {
    "English, 500 sentences": partial(english, templates="default", sentences=500),
    "English, default templates": partial(english, templates="default", parts=both),
    "English, rich templates": partial(english, templates="rich", parts=both),
    "English, beam of 8": partial(english, templates="default", beam=8, parts=both),
    "English, rich templates, beam of 8": partial(english, templates="rich", beam=8, parts=both),
    "kyoto-reading, 3,000 sentences": partial(
        japanese, dataset="kyoto-reading", degrees=(1, 2), sentences=3000
    ),
    "kyoto-reading, test": partial(japanese, dataset="kyoto-reading", degrees=(1, 2, 3), part="test"),
    "kyoto-reading, l1-LLM": partial(japanese, dataset="kyoto-reading", degrees=(2,), learner="logistic"),
    "wac, test": partial(japanese, dataset="wac", degrees=(1, 2, 3), part="test"),
    "raw text, fr_sequoia, 500 sentences": partial(raw_text, dataset="fr_sequoia", sentences=500),
    "raw text, en_ewt_full": partial(raw_text, dataset="en_ewt_full", clusters=True),
    "raw text, fr_sequoia": partial(raw_text, dataset="fr_sequoia"),
    "tags, en_ewt_full, 2,000 sentences": partial(tags, dataset="en_ewt_full", sentences=2000),
    "tags, en_ewt_full": partial(tags, dataset="en_ewt_full", clusters=True),
    "tags, fr_sequoia": partial(tags, dataset="fr_sequoia"),
    "text, 500 sentences learnt": partial(text, lines=5000, sentences=500),
    "text": partial(text, lines=20_000),
}
QUICK = [
    "English, 500 sentences",
    "kyoto-reading, 3,000 sentences",
    "raw text, fr_sequoia, 500 sentences",
    "tags, en_ewt_full, 2,000 sentences",
]


def measure(report: Report, tasks: Sequence[str]) -> None:
    for task in tasks:
        try:
            TASKS[task](report, task)
        except (FileNotFoundError, LeftOutError) as reason:
            report.leave_out(task, reason)


if __name__ == "__main__":
    main(measure, list(TASKS), quick=QUICK)
