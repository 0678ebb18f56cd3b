"""Regressions: predicted values against correct values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unkernel.measures.number_format import format_number, format_signed
from unkernel.measures.predictions import ModelPredictions
from unkernel.measures.value_measures import ValueMeasures
from unkernel.report.explanation_tables import make_explanation_table
from unkernel.report.figures import COLOURS, GREY, SQUARE, make_line_label, open_axes, render_svg
from unkernel.report.markup import Html, element, figure, join_parts, side_by_side
from unkernel.report.page import Section

_MAX_POINTS = 1500
_TOP = 6  # number of contributions to show per mistake


def make_values_section(measured_models: Sequence[ValueMeasures]) -> Section:
    """Show the predicted values and the distribution of the errors of each model."""
    parts = [part for model in measured_models for part in (_draw_scatter(model), _draw_errors(model))]
    return Section("Values", side_by_side(parts))


def _draw_scatter(model: ValueMeasures) -> Html:
    gold, predicted = model.gold, model.predicted
    if len(gold) > _MAX_POINTS:
        indices = np.random.default_rng(0).choice(len(gold), _MAX_POINTS, replace=False)
        gold, predicted = gold[indices], predicted[indices]
    ends = [float(min(gold.min(), predicted.min())), float(max(gold.max(), predicted.max()))]
    with open_axes(SQUARE) as axes:
        axes.plot(ends, ends, linestyle=":", color=GREY)
        axes.scatter(gold, predicted, s=8, alpha=0.5, linewidths=0, color=COLOURS[0])
        axes.set(xlabel="right value", ylabel="predicted value")
        description = f"{model.predictions.name}: predicted against right values, {len(gold):,} examples"
        return figure(render_svg(axes, description), f"{description}. On the dotted line, they are equal.")


def _draw_errors(model: ValueMeasures) -> Html:
    low, high = np.percentile(model.errors, [0.5, 99.5])
    with open_axes() as axes:
        axes.hist(np.clip(model.errors, low, high), bins=40, color=COLOURS[0], alpha=0.7)
        axes.set(xlabel="predicted minus right value", ylabel=f"{model.predictions.examples.unit}s")
        description = f"Number of examples by error: {make_line_label(model.predictions.name)}."
        return figure(render_svg(axes, description), description)


def make_errors_section(measured_models: Sequence[ValueMeasures], n_shown: int) -> Section:
    """Show the predictions with the largest errors, with explanations."""
    parts = []
    for model in measured_models:
        assert isinstance(model.predictions, ModelPredictions)
        unit = model.predictions.examples.unit.capitalize()
        for example in np.argsort(-np.abs(model.errors), kind="stable")[:n_shown].tolist():
            predicted, gold = model.predicted[example], model.gold[example]
            example_name = f"{model.predictions.name}, {unit} {example:,}"
            title = f"{example_name}: {format_number(predicted)} predicted, {format_number(gold)} is right"
            parts.append(element("h4", f"{title} ({format_signed(predicted - gold)})"))
            parts.append(make_explanation_table(model.predictions.explain(example, _TOP)))
    return Section("Mistakes", join_parts(parts))
