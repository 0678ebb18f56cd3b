"""Measures with their intervals; of several models also how they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unkernel.report.intervals import REPETITIONS, Measure, Numbers, middle
from unkernel.report.markup import Html, joined, paragraph, table
from unkernel.report.page import Section
from unkernel.report.wording import number, percent

Measures = Mapping[str, Sequence[Measure]]
Samples = Mapping[str, Mapping[str, Numbers]]


def quality(
    measures: Measures,
    words: Mapping[str, str],
    drawn: str,
    samples: Samples | None = None,
    of_class: Any = None,
) -> Section:
    """How good the answers are.

    Parameters
    ----------
    measures : mapping
        Of each model.
    words : mapping
        What a measure means.
    drawn : str
        What the bootstrap draws: ``"records"``, say.
    samples : mapping, default=None
        The measures of the same draws for each model, to compare them.
    of_class : object, default=None
        The class that measures of one class are about.
    """
    parts = [_one(measures, words) if len(measures) == 1 else _several(measures)]
    if of_class is not None:
        parts.append(paragraph(f"Precision, recall, F1 and the areas are those of class {of_class}."))
    parts.append(
        paragraph(
            "Intervals have a confidence of 95 %: Wilson's score interval where a measure is a share of "
            f"{drawn}, else the percentiles of {REPETITIONS} bootstrap samples of the {drawn}.",
            note=True,
        )
    )
    if samples is not None and len(measures) > 1:
        parts.append(_differences(measures, samples))
    return Section("Quality", joined(parts))


def _one(measures: Measures, words: Mapping[str, str]) -> Html:
    (found,) = measures.values()
    rows = [[one.name, _value(one), _interval(one), one.method, words.get(one.name, "")] for one in found]
    return table(["measure", "value", "95 % interval", "by", ""], rows, caption="Measures", texts=[3, 4])


def _several(measures: Measures) -> Html:
    names = dict.fromkeys(one.name for found in measures.values() for one in found)
    by_name = [{one.name: one for one in found} for found in measures.values()]
    rows = [
        [
            name,
            *(
                f"{_value(known[name])} ({_interval(known[name])})" if name in known else ""
                for known in by_name
            ),
        ]
        for name in names
    ]
    return table(["measure", *measures], rows, caption="Measures, with their 95 % intervals")


def _differences(measures: Measures, samples: Samples) -> Html:
    """Of each model to the first one, on the same draws."""
    first, *others = measures
    rows: list[list[Any]] = []
    for other in others:
        known = {one.name: one for one in measures[first]}
        for one in measures[other]:
            if one.name in known:
                low, high = middle(samples[other][one.name] - samples[first][one.name])
                sure = "yes" if low > 0 or high < 0 else "no"
                difference = Measure(one.name, one.value - known[one.name].value, low, high, "", one.is_share)
                rows.append([other, one.name, _signed(difference), _interval(difference), sure])
    return table(
        ["model", "measure", f"less that of {first}", "95 % interval", "surely not 0"],
        rows,
        caption=f"Differences to {first}, by bootstrap samples of the same examples",
        texts=[1, 4],
    )


def _value(one: Measure) -> str:
    return percent(one.value) if one.is_share else number(one.value)


def _signed(one: Measure) -> str:
    return f"{100 * one.value:+.2f} %" if one.is_share else f"{one.value:+.4g}"


def _interval(one: Measure) -> str:
    if one.is_share:
        return f"{100 * one.low:.2f} to {100 * one.high:.2f}"
    return f"{number(one.low)} to {number(one.high)}"
