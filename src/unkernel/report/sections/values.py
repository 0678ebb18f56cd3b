"""Predicted against correct numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unkernel.measures.number_format import format_signed, number
from unkernel.measures.predictions import Answered
from unkernel.measures.value_measures import ValueMeasures
from unkernel.report.explanation_tables import explanation_table
from unkernel.report.figures import COLOURS, GREY, SQUARE, drawing, name_of_line, picture
from unkernel.report.markup import Html, element, figure, join_parts, side_by_side
from unkernel.report.page import Section

_MOST_POINTS = 1500
_TOP = 6


def values(studied: Sequence[ValueMeasures]) -> Section:
    """Show two figures for each model."""
    parts = [part for one in studied for part in (_draw_scatter(one), _draw_errors(one))]
    return Section("Values", side_by_side(parts))


def _draw_scatter(one: ValueMeasures) -> Html:
    right, said = one.right, one.answers.raw[:, 0]
    if len(right) > _MOST_POINTS:
        few = np.random.default_rng(0).choice(len(right), _MOST_POINTS, replace=False)
        right, said = right[few], said[few]
    ends = [float(min(right.min(), said.min())), float(max(right.max(), said.max()))]
    with drawing(SQUARE) as axes:
        axes.plot(ends, ends, linestyle=":", color=GREY)
        axes.scatter(right, said, s=8, alpha=0.5, linewidths=0, color=COLOURS[0])
        axes.set(xlabel="right value", ylabel="predicted value")
        words = f"{one.answers.name}: predicted against right values, {len(right):,} examples"
        return figure(picture(axes, words), f"{words}. On the dotted line, they are equal.")


def _draw_errors(one: ValueMeasures) -> Html:
    low, high = np.percentile(one.errors, [0.5, 99.5])
    with drawing() as axes:
        axes.hist(np.clip(one.errors, low, high), bins=40, color=COLOURS[0], alpha=0.7)
        axes.set(xlabel="predicted minus right value", ylabel=f"{one.answers.examples.unit}s")
        words = f"Number of examples by error: {name_of_line(one.answers.name)}."
        return figure(picture(axes, words), words)


def largest_errors(studied: Sequence[ValueMeasures], most: int) -> Section:
    """Show the predictions with the largest errors, with explanations."""
    parts = []
    for one in studied:
        assert isinstance(one.answers, Answered)
        unit = one.answers.examples.unit.capitalize()
        for example in np.argsort(-np.abs(one.errors), kind="stable")[:most].tolist():
            said, right = one.answers.raw[example, 0], one.right[example]
            title = (
                f"{one.answers.name}, {unit} {example:,}: {number(said)} predicted, {number(right)} is right"
            )
            parts.append(element("h4", f"{title} ({format_signed(said - right)})"))
            parts.append(explanation_table(one.answers.explain(example, _TOP)))
    return Section("Mistakes", join_parts(parts))
