"""Confusion matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.measures.class_measures import ClassMeasures
from unkernel.measures.number_format import format_percent, share
from unkernel.report.markup import Html, element, join_parts, side_by_side, table
from unkernel.report.page import Section

_LARGEST_MATRIX = 20
_MOST_PAIRS = 20
_MOST_CLASSES = 60


def confusion(studied: Sequence[ClassMeasures]) -> Section:
    """Show the confusion matrix; for many classes, the most frequent mistakes instead."""
    many = len(studied[0].answers.classes) > _LARGEST_MATRIX
    parts = [_list_confused_pairs(one) if many else _draw_matrix(one) for one in studied]
    if studied[0].answers.positive is None:
        parts += [_list_classes(one) for one in studied]
    few = len(studied[0].answers.classes) == 2
    return Section("Confusion", side_by_side(parts) if few else join_parts(parts))


def _draw_matrix(one: ClassMeasures) -> Html:
    """Return a table with a row for each correct class and a column for each predicted class."""
    counts, names = one.confusion, one.answers.classes
    totals = counts.sum(axis=1)
    head = element(
        "tr",
        element("th", "true \\ predicted", scope="col"),
        *(element("th", name, scope="col") for name in names),
    )
    body = []
    for row, name in enumerate(names):
        cells = [_shade_cell(counts[row, column], totals[row], row == column) for column in range(len(names))]
        body.append(element("tr", element("th", name, scope="row"), *cells))
    caption = (
        f"{one.answers.name}: {one.answers.examples.unit}s by true class (rows) and predicted class (columns)"
    )
    content = element("table", element("caption", caption), element("thead", head), element("tbody", *body))
    return element("div", content, class_="wide confusion", tabindex=0, role="region", aria_label=caption)


def _shade_cell(count: Any, total: Any, is_right: bool) -> Html:
    part = float(count / total) if total else 0.0
    words = f"{int(count):,}"
    detail = element("small", f" {format_percent(part, 1)}")
    return element(
        "td", words, detail, class_=None if is_right else "wrong", style=f"--share: {0.55 * part:.3f}"
    )


def _list_confused_pairs(one: ClassMeasures) -> Html:
    wrong: NDArray[Any] = one.confusion.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:_MOST_PAIRS]
    names, totals = one.answers.classes, one.confusion.sum(axis=1)
    rows = [
        [
            names[right],
            names[said],
            f"{int(wrong[right, said]):,}",
            format_percent(wrong[right, said] / totals[right]),
        ]
        for right, said in zip(*np.unravel_index(order, wrong.shape), strict=True)
        if wrong[right, said]
    ]
    caption = f"{one.answers.name}: the most frequent mistakes"
    return table(["true", "predicted", "examples", "of the class"], rows, caption=caption, texts=[1])


def _list_classes(one: ClassMeasures) -> Html:
    counts = one.confusion
    hits, right, given = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
    order = np.argsort(-right, kind="stable")[:_MOST_CLASSES].tolist()
    rows = [
        [
            one.answers.classes[k],
            f"{int(right[k]):,}",
            share(float(hits[k]), float(given[k])),
            share(float(hits[k]), float(right[k])),
            format_percent(2 * hits[k] / (right[k] + given[k]) if right[k] + given[k] else np.nan),
        ]
        for k in order
    ]
    left = len(right) - len(rows)
    more = f"; {left:,} with fewer examples are not listed" if left else ""
    return table(
        ["class", "examples", "precision", "recall", "F1"],
        rows,
        caption=f"{one.answers.name}: each class, with Wilson's 95 % intervals{more}",
    )
