"""Measures with their confidence intervals, and the differences between models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from unkernel.measures.base import PredictionMeasures
from unkernel.measures.intervals import REPETITIONS, Measure, compute_central_interval
from unkernel.measures.number_format import format_interval, format_measure
from unkernel.report.markup import Html, join_parts, paragraph, table
from unkernel.report.page import Section


def make_quality_section(measured_models: Sequence[PredictionMeasures], of_class: Any = None) -> Section:
    """Show the quality of the models. Measures of a single class, such as recall, refer to `of_class`."""
    parts = [
        _list_measures(measured_models[0])
        if len(measured_models) == 1
        else _compare_measures(measured_models)
    ]
    if of_class is not None:
        parts.append(paragraph(f"Precision, recall, F1 and the areas are for class {of_class}."))
    unit = measured_models[0].resampled_unit
    parts.append(
        paragraph(
            "Intervals have a confidence of 95 %: Wilson's score interval where a measure is a share of "
            f"{unit}, else the percentiles of {REPETITIONS} bootstrap samples of the {unit}.",
            note=True,
        )
    )
    if len(measured_models) > 1:
        parts.append(_list_differences(measured_models))
    return Section("Quality", join_parts(parts))


def _list_measures(model: PredictionMeasures) -> Html:
    rows = [
        [
            measure.name,
            format_measure(measure),
            format_interval(measure),
            measure.method,
            model.meanings.get(measure.name, ""),
        ]
        for measure in model.measures
    ]
    return table(["measure", "value", "95 % interval", "by", ""], rows, caption="Measures", texts=[3, 4])


def _compare_measures(measured_models: Sequence[PredictionMeasures]) -> Html:
    names = dict.fromkeys(measure.name for model in measured_models for measure in model.measures)
    measures_of_models = [{measure.name: measure for measure in model.measures} for model in measured_models]
    rows = [
        [name, *(_format_with_interval(measures.get(name)) for measures in measures_of_models)]
        for name in names
    ]
    return table(
        ["measure", *(model.name for model in measured_models)],
        rows,
        caption="Measures, with their 95 % intervals",
    )


def _format_with_interval(measure: Measure | None) -> str:
    return "" if measure is None else f"{format_measure(measure)} ({format_interval(measure)})"


def _list_differences(measured_models: Sequence[PredictionMeasures]) -> Html:
    """Return a table of the differences from the first model, on the same bootstrap samples."""
    first, *other_models = measured_models
    first_measures = {measure.name: measure for measure in first.measures}
    rows: list[list[Any]] = []
    for other in other_models:
        for measure in other.measures:
            if measure.name in first_measures:
                low, high = compute_central_interval(
                    other.samples[measure.name] - first.samples[measure.name]
                )
                excludes_zero = "yes" if low > 0 or high < 0 else "no"
                difference = Measure(
                    measure.name,
                    measure.value - first_measures[measure.name].value,
                    low,
                    high,
                    "",
                    measure.is_share,
                )
                rows.append(
                    [
                        other.name,
                        measure.name,
                        _format_difference(difference),
                        format_interval(difference),
                        excludes_zero,
                    ]
                )
    return table(
        ["model", "measure", f"less that of {first.name}", "95 % interval", "0 is outside"],
        rows,
        caption=f"Differences to {first.name}, by bootstrap samples of the same {first.resampled_unit}",
        texts=[1, 4],
    )


def _format_difference(measure: Measure) -> str:
    if math.isnan(measure.value):
        return "–"
    return f"{100 * measure.value:+.2f} %" if measure.is_share else f"{measure.value:+.4g}"
