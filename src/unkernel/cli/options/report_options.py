"""Options of ``unkernel report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ModelFiles = Annotated[
    list[Path],
    typer.Argument(
        metavar="MODEL...",
        readable=False,
        show_default=False,
        help="A .uk file, or a text model of LIBSVM, LIBLINEAR, SVMlight, SVM-light-TK or TinySVM; several "
        "are compared side by side.",
    ),
]
TestFile = Annotated[
    str | None,
    typer.Option(
        "--test",
        metavar="FILE",
        show_default="required",
        help="Examples with the correct labels, as the models take them; plain or .gz, .xz, .bz2, .zst; "
        "- reads stdin.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        readable=False,
        show_default="required",
        help="HTML file to write, such as report.html. Replaces no file without --force.",
    ),
]
CostsOption = Annotated[
    str | None,
    typer.Option(
        "--costs",
        metavar="FP,FN",
        help="For two classes: the costs of a false positive and of a false negative, such as 1,5, or "
        "false_positive=1,false_negative=5.",
        show_default="1,1",
    ),
]
TopOption = Annotated[
    int, typer.Option("--top", metavar="N", min=0, help="List the N heaviest conjunctions or fragments.")
]
MistakesOption = Annotated[
    int, typer.Option("--mistakes", metavar="N", min=0, help="Show and explain N mistakes.")
]
NoRecords = Annotated[
    bool,
    typer.Option("--no-records", help="Show no test examples: no mistakes, and no names of queries."),
]
TrainFile = Annotated[
    str | None,
    typer.Option(
        "--train",
        metavar="FILE",
        show_default="no linear baseline",
        help="Training examples of rows or records: compare the first model with a linear model of them.",
    ),
]
Title = Annotated[
    str | None, typer.Option("--title", help="Title of the report.", show_default="models and data")
]


def parse_costs(text: str) -> tuple[float, float]:
    """Parse the costs of a false positive and of a false negative: two numbers, or two names with numbers."""
    if "=" in text:
        return _parse_named_costs(text)
    try:
        false_positive, false_negative = (float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"--costs must be two numbers, such as 1,5, got {text!r}") from None
    return false_positive, false_negative


def _parse_named_costs(text: str) -> tuple[float, float]:
    pairs = [part.partition("=") for part in text.split(",")]
    costs = {name.strip(): value for name, _, value in pairs}
    try:
        if len(pairs) != 2:
            raise ValueError
        return float(costs["false_positive"]), float(costs["false_negative"])
    except (KeyError, ValueError):
        raise ValueError(
            f"--costs must name both costs once, such as false_positive=1,false_negative=5, got {text!r}"
        ) from None
