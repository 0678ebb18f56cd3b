"""Write docs/pipelines.md from the table of what can be compiled, or check that it is current.

python tools/pipelines_page.py            # writes the page
python tools/pipelines_page.py --check    # fails if the page is not what would be written
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from unkernel.records.sklearn.estimators import ESTIMATORS
from unkernel.records.sklearn.supported_steps import TRANSFORMERS, Supported

PAGE = Path(__file__).resolve().parents[1] / "docs" / "pipelines.md"
# Paragraphs are written in one line each.
HEAD = """<!-- Written by tools/pipelines_page.py; change src/unkernel/records/sklearn/supported_steps.py. -->

# Pipelines that can be compiled

`unkernel.compile` converts fitted scikit-learn pipelines into classifiers of [raw records](records.md). This
page lists the steps and parameters that it supports. The compiled classifier gives the same labels as the
pipeline, and scores within 1e-9. Before `compile` returns, it compares its predictions with those of the
pipeline, on the records that you pass as `sample`, or on records that it generates from what the steps have
learned. A difference raises an error.

Everything that is not listed here raises an error that names the step: your own functions, classes of other
packages, subclasses, and parameters that a later version of scikit-learn has added, unless they have their
default values.
"""
EXAMPLE = """
```python
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
import unkernel

texts = ["book a flight", "play some music", "find me a flight", "turn up the music"] * 5
intents = ["travel", "sound", "travel", "sound"] * 5
pipeline = make_pipeline(TfidfVectorizer(), LinearSVC()).fit(texts, intents)
fast = unkernel.compile(pipeline)
assert fast.predict_one("a flight to Rome") == "travel"
```
"""
STEPS = """
## Steps

The first step may be a `RecordEncoder`; all other steps are scikit-learn's. Steps may be nested.
"""
LAST = """
## The last step

The last step may be an estimator of unkernel for rows, one of the scikit-learn estimators below, or a search
such as `GridSearchCV`, whose best pipeline is used. Parameters that are not listed matter only during `fit`.

If a `LabelEncoder` turned your labels into numbers, pass `compile(pipeline, classes=encoder.classes_)` to get
the original labels.
"""

MACHINES = """
## Explainable Boosting Machines

`unkernel.compile` also takes a fitted `ExplainableBoostingClassifier` or `ExplainableBoostingRegressor` of
[interpret](https://interpret.ml), alone or as the last step of a pipeline. Such a machine adds up tables of
bins of columns, and of bins of two or three columns together. A model of conjunctions holds the same numbers,
so scores and probabilities are equal up to rounding. The compiled machine is explained, saved and served like
other models of records, and a process that loads it needs neither interpret nor scikit-learn.
"""
MACHINE_EXAMPLE = """
<!-- not run: interpret is not installed where this page is built -->
```python
from interpret.glassbox import ExplainableBoostingClassifier

machine = ExplainableBoostingClassifier().fit(people, income)
fast = unkernel.compile(machine)
fast.predict_one({"age": 37, "job": "pilot", "hours": 50})
print(fast.explain_one({"age": 37, "job": "pilot", "hours": 50}))  # bins, such as "age 35–44"
fast.save("income.uk")
```
"""
MACHINE_LIMITS = """
| | |
|---|---|
| columns | continuous, nominal and ordinal; missing values and unknown categories have bins |
| a column of numbers | strings and infinite numbers are errors (interpret reads `"37"` as 37) |
| terms | of up to three columns, also with coarser bins for pairs; terms may be missing or edited |
| links | `logit`, `mlogit` (objective `log_loss`) and `identity` (`rmse`); others are refused |
| a column that is not in the record | an error, as for other pipelines |
"""


def sections(table: dict[str, Supported]) -> Iterator[str]:
    """Yield one section per class."""
    for name, entry in table.items():
        yield f"\n### {name}\n\n`{entry.module}.{name}`: {entry.does}.\n"
        if entry.parameters:
            yield "\n| parameter | supported | refused |\n|---|---|---|\n"
        for parameter, about in entry.parameters.items():
            refused = f"all others: {about.why}" if about.refused else ""
            yield f"| `{parameter}` | {escape_cell(about.takes)} | {escape_cell(refused)} |\n"


def escape_cell(text: str) -> str:
    """Return text escaped for a cell of a table."""
    return text.replace("|", "\\|")


def join_lines(text: str) -> str:
    """Return text with each paragraph on one line."""
    return re.sub(r"(?<!\n)\n(?!\n)", " ", text.strip()) + "\n"


def page() -> str:
    """Return the page."""
    head = [join_lines(HEAD), EXAMPLE, "\n", join_lines(STEPS), *sections(TRANSFORMERS)]
    machines = ["\n", join_lines(MACHINES), MACHINE_EXAMPLE, MACHINE_LIMITS]
    return "".join([*head, "\n", join_lines(LAST), *sections(ESTIMATORS), *machines])


def main(arguments: list[str]) -> int:
    """Write the page, or check it."""
    if arguments == ["--check"]:
        if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page():
            return 0
        print(f"{PAGE} is not current: run python tools/pipelines_page.py", file=sys.stderr)
        return 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
