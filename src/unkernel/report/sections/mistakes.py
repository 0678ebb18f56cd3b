"""The most confident mistakes of models, with explanations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unkernel.measures.number_format import format_count, format_percent, format_signed
from unkernel.measures.predictions import ModelPredictions
from unkernel.report.explanation_tables import make_explanation_table
from unkernel.report.markup import Html, element, join_parts, paragraph, side_by_side, table
from unkernel.report.page import Section
from unkernel.report.tree_drawing import draw_tree

_TOP = 6  # number of conjunctions to show per mistake


def make_mistakes_section(predictions: Sequence[ModelPredictions], n_shown: int) -> Section:
    """Show the `n_shown` most confident mistakes of each model."""
    return Section(
        "Mistakes", join_parts(_list_mistakes(model, n_shown, len(predictions) > 1) for model in predictions)
    )


def find_worst_mistakes(predictions: ModelPredictions, n_shown: int) -> list[int]:
    """Return the indices of the wrong predictions with the largest margins, the largest first."""
    wrong = np.flatnonzero(predictions.predicted != predictions.gold)
    order = np.argsort(-predictions.margins[wrong], kind="stable")[:n_shown]
    examples: list[int] = wrong[order].tolist()
    return examples


def _list_mistakes(predictions: ModelPredictions, n_shown: int, has_title: bool) -> Html:
    wrong = int(np.count_nonzero(predictions.predicted != predictions.gold))
    worst_examples = find_worst_mistakes(predictions, n_shown)
    unit = predictions.examples.unit
    summary = f"{format_count(wrong, 'wrong answer')} of {format_count(len(predictions.examples), unit)}"
    if worst_examples:
        summary += f"; the {len(worst_examples)} most confident are below. {unit.capitalize()}s count from 0."
    parts = [element("h3", predictions.name)] if has_title else []
    return join_parts(
        [*parts, paragraph(summary), *(_describe_mistake(predictions, example) for example in worst_examples)]
    )


def _describe_mistake(predictions: ModelPredictions, example: int) -> Html:
    predicted_class, gold_class = (
        predictions.classes[int(codes[example])] for codes in (predictions.predicted, predictions.gold)
    )
    example_name = f"{predictions.examples.unit.capitalize()} {example:,}"
    confidence = _describe_confidence(predictions, example)
    title = f"{example_name}: predicted {predicted_class}, true class {gold_class}{confidence}"
    parts = [
        part
        for part in (_show_mistake(predictions, example), _explain(predictions, example))
        if part is not None
    ]
    return element("article", element("h4", title), side_by_side(parts))


def _describe_confidence(predictions: ModelPredictions, example: int) -> str:
    if predictions.probabilities is None:
        return f" (ahead by {format_signed(predictions.margins[example])})"
    return f" (with {format_percent(predictions.probabilities[example, predictions.predicted[example]], 1)})"


def _explain(predictions: ModelPredictions, example: int) -> Html:
    try:
        return make_explanation_table(predictions.explain(example, _TOP))
    except ValueError as reason:
        return paragraph(f"This answer cannot be explained: {reason}.", note=True)


def _show_mistake(predictions: ModelPredictions, example: int) -> Html | None:
    if predictions.examples.show is None:
        return None
    example_values = predictions.examples.show(example)
    if isinstance(example_values, Mapping):
        rows = [
            [name, "(missing)" if _is_missing(value) else value] for name, value in example_values.items()
        ]
        return table(
            ["column", "value"],
            rows,
            caption=f"{predictions.examples.unit.capitalize()} {example:,}",
            texts=[1],
        )
    picture = draw_tree(example_values)
    return (
        paragraph(element("code", example_values))
        if picture is None
        else element("div", picture, class_="drawn")
    )


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
