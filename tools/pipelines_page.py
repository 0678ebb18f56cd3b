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
from unkernel.records.sklearn.supported import TRANSFORMERS, Supported

PAGE = Path(__file__).resolve().parents[1] / "docs" / "pipelines.md"
# Paragraphs are written in one line each.
HEAD = """<!-- Written by tools/pipelines_page.py; change src/unkernel/records/sklearn/supported.py. -->

# Pipelines that can be compiled

`unkernel.compile` takes fitted pipelines of these steps, and the classifier that it returns answers
[raw records](records.md) as the pipeline does: the same labels, and scores within 1e-9. Before it returns,
the answers are compared with the pipeline's own, on `sample` or else on records that are generated from what
the steps have learned; a difference is an error.

Anything that is not listed here is refused by an error that names the step: functions of your own, classes of
other packages or derived ones, parameters that a later scikit-learn has added, unless they have their default
values.
"""
STEPS = """
## Steps

`RecordEncoder` may be the first step; the others are those of scikit-learn. Steps may be nested as you like.
"""
LAST = """
## The last step

The estimators of unkernel that learn from rows, and of scikit-learn those below, and searches such as
`GridSearchCV`, of which the best pipeline is taken. Parameters that are not listed have done their work in
`fit`.

Labels may be anything: where a `LabelEncoder` made numbers of them,
`compile(pipeline, classes=encoder.classes_)` answers with what the numbers stand for.
"""


def sections(table: dict[str, Supported]) -> Iterator[str]:
    """One section per class."""
    for name, entry in table.items():
        yield f"\n### {name}\n\n`{entry.module}.{name}`: {entry.does}.\n"
        if entry.parameters:
            yield "\n| parameter | supported | refused |\n|---|---|---|\n"
        for parameter, about in entry.parameters.items():
            refused = f"all others: {about.why}" if about.refused else ""
            yield f"| `{parameter}` | {escaped(about.takes)} | {escaped(refused)} |\n"


def escaped(text: str) -> str:
    """Text that may stand in a cell of a table."""
    return text.replace("|", "\\|")


def joined(text: str) -> str:
    """Text with its paragraphs in one line each."""
    return re.sub(r"(?<!\n)\n(?!\n)", " ", text.strip()) + "\n"


def page() -> str:
    """The page."""
    first = [joined(HEAD), "\n", joined(STEPS), *sections(TRANSFORMERS)]
    return "".join([*first, "\n", joined(LAST), *sections(ESTIMATORS)])


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
