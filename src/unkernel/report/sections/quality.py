"""Measures with their intervals, and the differences between models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from unkernel.measures.base import PredictionMeasures
from unkernel.measures.intervals import REPETITIONS, Measure, middle
from unkernel.measures.number_format import format_interval, format_measure
from unkernel.report.markup import Html, join_parts, paragraph, table
from unkernel.report.page import Section


def quality(studied: Sequence[PredictionMeasures], of_class: Any = None) -> Section:
    """Show the quality of the models; `of_class` is the class that measures of a single class refer to."""
    parts = [_list_measures(studied[0]) if len(studied) == 1 else _compare_measures(studied)]
    if of_class is not None:
        parts.append(paragraph(f"Precision, recall, F1 and the areas are those of class {of_class}."))
    unit = studied[0].resampled_unit
    parts.append(
        paragraph(
            "Intervals have a confidence of 95 %: Wilson's score interval where a measure is a share of "
            f"{unit}, else the percentiles of {REPETITIONS} bootstrap samples of the {unit}.",
            note=True,
        )
    )
    if len(studied) > 1:
        parts.append(_list_differences(studied))
    return Section("Quality", join_parts(parts))


def _list_measures(studied: PredictionMeasures) -> Html:
    rows = [
        [one.name, format_measure(one), format_interval(one), one.method, studied.words.get(one.name, "")]
        for one in studied.measures
    ]
    return table(["measure", "value", "95 % interval", "by", ""], rows, caption="Measures", texts=[3, 4])


def _compare_measures(studied: Sequence[PredictionMeasures]) -> Html:
    names = dict.fromkeys(one.name for model in studied for one in model.measures)
    by_name = [{one.name: one for one in model.measures} for model in studied]
    rows = [[name, *(_format_with_interval(known.get(name)) for known in by_name)] for name in names]
    return table(
        ["measure", *(model.name for model in studied)], rows, caption="Measures, with their 95 % intervals"
    )


def _format_with_interval(one: Measure | None) -> str:
    return "" if one is None else f"{format_measure(one)} ({format_interval(one)})"


def _list_differences(studied: Sequence[PredictionMeasures]) -> Html:
    """Return a table of the differences between each model and the first one, on the same resamples."""
    first, *others = studied
    first_measures = {measure.name: measure for measure in first.measures}
    rows: list[list[Any]] = []
    for other in others:
        for measure in other.measures:
            if measure.name in first_measures:
                low, high = middle(other.samples[measure.name] - first.samples[measure.name])
                excludes_0 = "yes" if low > 0 or high < 0 else "no"
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
                        excludes_0,
                    ]
                )
    return table(
        ["model", "measure", f"less that of {first.name}", "95 % interval", "0 is outside"],
        rows,
        caption=f"Differences to {first.name}, by bootstrap samples of the same {first.resampled_unit}",
        texts=[1, 4],
    )


def _format_difference(one: Measure) -> str:
    if math.isnan(one.value):
        return "–"
    return f"{100 * one.value:+.2f} %" if one.is_share else f"{one.value:+.4g}"
