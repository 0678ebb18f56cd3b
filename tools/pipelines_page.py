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
from unkernel.records.sklearn.supported_parameters import Supported
from unkernel.records.sklearn.supported_steps import TRANSFORMERS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "pipelines.md"
# Paragraphs are written in one line each.
HEAD = """<!-- Written by tools/pipelines_page.py; change src/unkernel/records/sklearn/supported_steps.py. -->

# Pipelines that can be compiled

`unkernel.compile` converts fitted scikit-learn pipelines into classifiers of [raw records](records.md). This
page lists the steps and parameters that it supports. The compiled classifier gives the same labels as the
pipeline, and scores within 1e-9. Before `compile` returns, it compares its predictions with the predictions
of the pipeline, on the records that you pass as `sample`, or on records that it generates from what the steps
have learned. A difference raises an error.

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
FUNCTIONS = """
## Functions of numbers

Functions are computed in double precision, as NumPy computes columns of float64 or int64. For columns of
narrower types, NumPy rounds more, or integers overflow. The results of exp, log and others are within 0.75
units in the last place and have the same bits on every machine; those of NumPy and SciPy depend on the
machine and may differ in the last digits.

So that these digits do not decide on which side of a jump a number lies, intervals, thresholds, repeated
quantiles and the bounds of splines behind such functions take a number for equal to an edge if the difference
can be a rounding error.

Between two `FunctionTransformer`s, numbers may be infinite, as in scikit-learn. All other steps refuse
infinite numbers.
"""
LAST = """
## The last step

The last step may be an estimator of unkernel for rows, one of the scikit-learn estimators below, or a search
such as `GridSearchCV`, whose best pipeline is used. Parameters that are not listed matter only during `fit`.

If a `LabelEncoder` turned your labels into numbers, pass `compile(pipeline, classes=encoder.classes_)` to get
the original labels.
"""

OUTPUTS = """
## Several labels or outputs

A `OneVsRestClassifier` that was fitted to an indicator matrix, a `MultiOutputClassifier`, a
`MultiOutputRegressor` and linear regressions of several columns compile into one model. Its outputs share the
encoding of a record, and support vectors that occur in several of them are stored once. `predict` returns one
column per label or output, with scikit-learn's answers; `predict_one` returns a row of it. Pass the
`MultiLabelBinarizer`, or a list of the labels, as `classes` to name the labels: commands and the server then
answer with a list of labels, explanations are asked for by label, and the names are stored in the file.

Chains (`ClassifierChain`, `RegressorChain`) are refused, because each of their estimators needs the
predictions of the ones before it. `unkernel report`, updates and losses of shuffled columns are for one
target, and `unkernel evaluate` is for one target or [labels from a file](tables.md#several-labels);
`fast.score(X, Y)` is scikit-learn's.
"""
OUTPUTS_EXAMPLE = """
```python
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.preprocessing import MultiLabelBinarizer

from unkernel import RecordEncoder

records = [{"word": word, "length": length} for word in ("goal", "vote", "tax") for length in range(9)]
topics = [
    [*(["sport"] if one["word"] == "goal" else ["politics"]), *(["long"] if one["length"] > 4 else [])]
    for one in records
]
binarizer = MultiLabelBinarizer()
indicator = binarizer.fit_transform(topics)
several = make_pipeline(RecordEncoder(min_count=1), OneVsRestClassifier(LogisticRegression(C=10)))
fast = unkernel.compile(several.fit(records, indicator), classes=binarizer)
assert (fast.predict(records) == several.predict(records)).all()

article = {"word": "vote", "length": 8}
print(fast.classes_, fast.predict_one(article))
print(binarizer.inverse_transform(fast.predict([article])))
print([round(share, 3) for share in fast.predict_proba_one(article)])
print(fast.explain_one(article, top=2, of="long"))

targets = [[one["word"], "long" if one["length"] > 4 else "short"] for one in records]
outputs = make_pipeline(RecordEncoder(min_count=1), MultiOutputClassifier(LogisticRegression()))
answers = unkernel.compile(outputs.fit(records, targets))
print(answers.predict_one(article))
print(answers.explain_one(article, top=1, of=1))
```

```output
['long' 'politics' 'sport'] [1, 1, 0]
[('long', 'politics')]
[0.965, 0.975, 0.025]
score +3.33036 for long
     -0.808261  (intercept)
      +3.10309  length >= 6
      +1.03436  length >= 8
   +0.00116592  (1 other)
['vote', 'long']
output 1: score -1.58013 for short against long; negative values speak for long
     +0.469055  (intercept)
      -1.53685  length >= 6
     -0.512338  (2 others)
```
"""
OUTPUTS_SHELL = """
In a shell, JSON lines have the list of labels, and CSV has a column for each label:
"""
OUTPUTS_COMMANDS = """
```python
import json
from pathlib import Path

fast.save("topics.uk")
Path("articles.jsonl").write_text(json.dumps(article) + "\\n")
```

```console
$ unkernel predict topics.uk articles.jsonl -o -
{"prediction": ["long", "politics"]}
articles.jsonl
  records       1
  accuracy      not known: the records have no column that is known as the target
  scoring       2,099 records/s (0.00 s)
  with reading  65 records/s (0.01 s to read)
$ unkernel predict topics.uk articles.jsonl -o answers.csv --probability --quiet
$ unkernel explain topics.uk '{"word": "vote", "length": 8}' --of long --top 1
{"word": "vote", "length": 8}
  prediction    ['long', 'politics']
  conjunctions  3 contribute to the score
contributions
   for long  conjunction
  -0.808261  (intercept)
   +3.10309  length >= 6
   +1.03553  (2 others)
   +3.33036  (score)
$ unkernel inspect topics.uk
columns
  column  kind      features
  word    category         5
  length  binned          14
topics.uk
  kind           linear
  labels         3: long, politics, sport
  decision       each label on its own: several labels, or none
  probabilities  yes
  features       19, of which 16 contribute to scores
  engine         expanded, exact
  zones          16 features in the dense table (0 fused), 0 hashed, 0 rare
  conjunctions   16: 16 of 1 feature
  bytes          10.4 kB in the file, 780 bytes compiled
training
  format     scikit-learn
  estimator  OneVsRestClassifier
candidates
  engine     details       size  µs/row     result  note
  ...
```
"""
OUTPUTS_SERVER = """
The server answers in the same way: `{"prediction": ["long", "politics"], "score": [...], "probabilities":
{"long": ..., ...}}`. For several outputs, `prediction` has the answer of each output, and `probabilities` an
object for each output.
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
    outputs = ["\n", join_lines(OUTPUTS), OUTPUTS_EXAMPLE, "\n", join_lines(OUTPUTS_SHELL), OUTPUTS_COMMANDS]
    outputs += ["\n", join_lines(OUTPUTS_SERVER)]
    machines = ["\n", join_lines(MACHINES), MACHINE_EXAMPLE, MACHINE_LIMITS]
    middle = ["\n", join_lines(FUNCTIONS), "\n", join_lines(LAST), *sections(ESTIMATORS)]
    return "".join([*head, *middle, *outputs, *machines])


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
