"""Measures with their intervals, and the differences between models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from unkernel.measures.base import Studied
from unkernel.measures.intervals import REPETITIONS, Measure, middle
from unkernel.measures.number_format import format_interval, format_measure
from unkernel.report.markup import Html, join_parts, paragraph, table
from unkernel.report.page import Section


def quality(studied: Sequence[Studied], of_class: Any = None) -> Section:
    """Show the quality of the models; `of_class` is the class that measures of a single class refer to."""
    parts = [_list_measures(studied[0]) if len(studied) == 1 else _compare_measures(studied)]
    if of_class is not None:
        parts.append(paragraph(f"Precision, recall, F1 and the areas are those of class {of_class}."))
    drawn = studied[0].drawn
    parts.append(
        paragraph(
            "Intervals have a confidence of 95 %: Wilson's score interval where a measure is a share of "
            f"{drawn}, else the percentiles of {REPETITIONS} bootstrap samples of the {drawn}.",
            note=True,
        )
    )
    if len(studied) > 1:
        parts.append(_list_differences(studied))
    return Section("Quality", join_parts(parts))


def _list_measures(studied: Studied) -> Html:
    rows = [
        [one.name, format_measure(one), format_interval(one), one.method, studied.words.get(one.name, "")]
        for one in studied.measures
    ]
    return table(["measure", "value", "95 % interval", "by", ""], rows, caption="Measures", texts=[3, 4])


def _compare_measures(studied: Sequence[Studied]) -> Html:
    names = dict.fromkeys(one.name for model in studied for one in model.measures)
    by_name = [{one.name: one for one in model.measures} for model in studied]
    rows = [[name, *(_format_with_interval(known.get(name)) for known in by_name)] for name in names]
    return table(
        ["measure", *(model.name for model in studied)], rows, caption="Measures, with their 95 % intervals"
    )


def _format_with_interval(one: Measure | None) -> str:
    return "" if one is None else f"{format_measure(one)} ({format_interval(one)})"


def _list_differences(studied: Sequence[Studied]) -> Html:
    """Return the differences of each model to the first, on the same resamples."""
    first, *others = studied
    known = {one.name: one for one in first.measures}
    rows: list[list[Any]] = []
    for other in others:
        for one in other.measures:
            if one.name in known:
                low, high = middle(other.samples[one.name] - first.samples[one.name])
                outside = "yes" if low > 0 or high < 0 else "no"
                difference = Measure(one.name, one.value - known[one.name].value, low, high, "", one.is_share)
                rows.append(
                    [
                        other.name,
                        one.name,
                        _format_difference(difference),
                        format_interval(difference),
                        outside,
                    ]
                )
    return table(
        ["model", "measure", f"less that of {first.name}", "95 % interval", "0 is outside"],
        rows,
        caption=f"Differences to {first.name}, by bootstrap samples of the same {first.drawn}",
        texts=[1, 4],
    )


def _format_difference(one: Measure) -> str:
    if math.isnan(one.value):
        return "–"
    return f"{100 * one.value:+.2f} %" if one.is_share else f"{one.value:+.4g}"
