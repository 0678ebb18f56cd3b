"""Regressions: predicted values against gold values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unkernel.measures.number_format import format_signed, number
from unkernel.measures.predictions import ModelPredictions
from unkernel.measures.value_measures import ValueMeasures
from unkernel.report.explanation_tables import explanation_table
from unkernel.report.figures import COLOURS, GREY, SQUARE, drawing, name_of_line, picture
from unkernel.report.markup import Html, element, figure, join_parts, side_by_side
from unkernel.report.page import Section

_MOST_POINTS = 1500
_TOP = 6


def values(studied: Sequence[ValueMeasures]) -> Section:
    """Show the predicted values and the distribution of the errors of each model."""
    parts = [part for one in studied for part in (_draw_scatter(one), _draw_errors(one))]
    return Section("Values", side_by_side(parts))


def _draw_scatter(one: ValueMeasures) -> Html:
    gold, predicted = one.gold, one.predictions.raw[:, 0]
    if len(gold) > _MOST_POINTS:
        chosen = np.random.default_rng(0).choice(len(gold), _MOST_POINTS, replace=False)
        gold, predicted = gold[chosen], predicted[chosen]
    ends = [float(min(gold.min(), predicted.min())), float(max(gold.max(), predicted.max()))]
    with drawing(SQUARE) as axes:
        axes.plot(ends, ends, linestyle=":", color=GREY)
        axes.scatter(gold, predicted, s=8, alpha=0.5, linewidths=0, color=COLOURS[0])
        axes.set(xlabel="right value", ylabel="predicted value")
        words = f"{one.predictions.name}: predicted against right values, {len(gold):,} examples"
        return figure(picture(axes, words), f"{words}. On the dotted line, they are equal.")


def _draw_errors(one: ValueMeasures) -> Html:
    low, high = np.percentile(one.errors, [0.5, 99.5])
    with drawing() as axes:
        axes.hist(np.clip(one.errors, low, high), bins=40, color=COLOURS[0], alpha=0.7)
        axes.set(xlabel="predicted minus right value", ylabel=f"{one.predictions.examples.unit}s")
        words = f"Number of examples by error: {name_of_line(one.predictions.name)}."
        return figure(picture(axes, words), words)


def largest_errors(studied: Sequence[ValueMeasures], most: int) -> Section:
    """Show the predictions with the largest errors, with explanations."""
    parts = []
    for one in studied:
        assert isinstance(one.predictions, ModelPredictions)
        unit = one.predictions.examples.unit.capitalize()
        for example in np.argsort(-np.abs(one.errors), kind="stable")[:most].tolist():
            predicted, gold = one.predictions.raw[example, 0], one.gold[example]
            which = f"{one.predictions.name}, {unit} {example:,}"
            title = f"{which}: {number(predicted)} predicted, {number(gold)} is right"
            parts.append(element("h4", f"{title} ({format_signed(predicted - gold)})"))
            parts.append(explanation_table(one.predictions.explain(example, _TOP)))
    return Section("Mistakes", join_parts(parts))
