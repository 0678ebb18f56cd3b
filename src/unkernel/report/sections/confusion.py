"""Confusion matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.measures.class_measures import ClassMeasures
from unkernel.measures.number_format import format_percent, format_share
from unkernel.report.markup import Html, element, join_parts, side_by_side, table
from unkernel.report.page import Section

_MAX_MATRIX_CLASSES = 20
_MAX_PAIRS = 20
_MAX_CLASSES = 60
_MAX_SHADE = 0.55  # opacity of the colour if a cell has all examples of its class


def make_confusion_section(measured_models: Sequence[ClassMeasures]) -> Section:
    """Show the confusion matrix or, for many classes, the most frequent mistakes."""
    has_many_classes = len(measured_models[0].predictions.classes) > _MAX_MATRIX_CLASSES
    parts = [
        _list_confused_pairs(model) if has_many_classes else _draw_matrix(model) for model in measured_models
    ]
    if measured_models[0].predictions.positive is None:
        parts += [_list_classes(model) for model in measured_models]
    is_binary = len(measured_models[0].predictions.classes) == 2
    return Section("Confusion", side_by_side(parts) if is_binary else join_parts(parts))


def _draw_matrix(model: ClassMeasures) -> Html:
    """Return a table with a row for each true class and a column for each predicted class."""
    counts, names = model.confusion, model.predictions.classes
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
    unit = model.predictions.examples.unit
    caption = f"{model.predictions.name}: {unit}s by true class (rows) and predicted class (columns)"
    content = element("table", element("caption", caption), element("thead", head), element("tbody", *body))
    return element("div", content, class_="wide confusion", tabindex=0, role="region", aria_label=caption)


def _shade_cell(count: Any, total: Any, is_correct: bool) -> Html:
    share = float(count / total) if total else 0.0
    detail = element("small", f" {format_percent(share, 1)}")
    return element(
        "td",
        f"{int(count):,}",
        detail,
        class_=None if is_correct else "wrong",
        style=f"--share: {_MAX_SHADE * share:.3f}",
    )


def _list_confused_pairs(model: ClassMeasures) -> Html:
    """Return a table of the most frequent pairs of a true class and a wrong prediction."""
    wrong: NDArray[Any] = model.confusion.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:_MAX_PAIRS]
    names, totals = model.predictions.classes, model.confusion.sum(axis=1)
    rows = [
        [
            names[gold],
            names[predicted],
            f"{int(wrong[gold, predicted]):,}",
            format_percent(wrong[gold, predicted] / totals[gold]),
        ]
        for gold, predicted in zip(*np.unravel_index(order, wrong.shape), strict=True)
        if wrong[gold, predicted]
    ]
    caption = f"{model.predictions.name}: the most frequent mistakes"
    return table(["true", "predicted", "examples", "of the class"], rows, caption=caption, texts=[1])


def _list_classes(model: ClassMeasures) -> Html:
    counts = model.confusion
    hits, gold, predicted = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
    order = np.argsort(-gold, kind="stable")[:_MAX_CLASSES].tolist()
    rows = [
        [
            model.predictions.classes[code],
            f"{int(gold[code]):,}",
            format_share(float(hits[code]), float(predicted[code])),
            format_share(float(hits[code]), float(gold[code])),
            format_percent(
                2 * hits[code] / (gold[code] + predicted[code]) if gold[code] + predicted[code] else np.nan
            ),
        ]
        for code in order
    ]
    n_omitted = len(gold) - len(rows)
    more = f"; {n_omitted:,} with fewer examples are not listed" if n_omitted else ""
    return table(
        ["class", "examples", "precision", "recall", "F1"],
        rows,
        caption=f"{model.predictions.name}: each class, with Wilson's 95 % intervals{more}",
    )
