"""The first lines of a report: the quality of a model, its lead over baselines, and its worst failures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.data.rows.csr import CsrRows
from unkernel.engines import RecordClassifier
from unkernel.measures.base import Studied
from unkernel.measures.class_measures import ACCURACY, ROC_AREA, ClassMeasures
from unkernel.measures.intervals import Measure, middle, resamples, wilson
from unkernel.measures.number_format import format_interval, format_measure, format_percent, number
from unkernel.measures.predictions import Answered
from unkernel.measures.value_measures import R_SQUARED, ROOT_SQUARED, ValueMeasures
from unkernel.report.linear_baseline import LinearBaseline

_MIN_GROUP_SIZE = 20  # smaller groups fail by chance
_PARTS = 4  # of the values of a regression


def summarize_classes(measures: ClassMeasures, baseline: LinearBaseline | None) -> list[str]:
    """Return three sentences about a classifier."""
    answers = measures.answers
    assert isinstance(answers, Answered)
    is_right = answers.chosen == answers.right
    counts = np.bincount(answers.right, minlength=len(answers.classes))
    majority = int(counts.argmax())
    against = compare_accuracy(
        f"Always predicting {answers.classes[majority]}, the most frequent class of these examples,",
        is_right,
        answers.right == majority,
    )
    if baseline is not None:
        against += " " + compare_accuracy(
            "A linear model of the same features", is_right, baseline.find_correct(answers)
        )
    return [summarize_quality(measures, [ACCURACY, ROC_AREA]), against, _find_weakness(answers, ~is_right)]


def summarize_values(measures: ValueMeasures) -> list[str]:
    """Return three sentences about a regression."""
    right, errors = measures.right, np.abs(measures.errors)
    model, mean = float(np.sqrt((errors**2).mean())), float(right.std())
    against = f"Always predicting the mean of these values has a {ROOT_SQUARED} of {number(mean)}"
    if mean > 0:
        change = "smaller" if model <= mean else "larger"
        against += f": the model's is {format_percent(abs(1 - model / mean), 1)} {change}"
    edges = np.unique(np.quantile(right, np.linspace(0, 1, _PARTS + 1)))
    part = np.clip(np.searchsorted(edges, right, side="right") - 1, 0, max(len(edges) - 2, 0))
    sizes = np.bincount(part)
    means = np.bincount(part, weights=errors) / np.maximum(sizes, 1)
    worst = int(means.argmax())
    ends = f"{number(edges[worst])} to {number(edges[min(worst + 1, len(edges) - 1)])}"
    fails = (
        f"The model fails most for true values from {ends}: the mean absolute error is "
        f"{number(means[worst])} there, and {number(float(errors.mean()))} overall."
    )
    return [summarize_quality(measures, [ROOT_SQUARED, R_SQUARED]), against + ".", fails]


def summarize_ranks(measures: Any, baseline: LinearBaseline | None, *, records: bool) -> list[str]:
    """Return three sentences about a ranking; without `records`, no query is named."""
    from unkernel.measures.rank_measures import ORDERED

    against = "A random order has 50 % of the pairs in order."
    if baseline is not None:
        other = baseline.measure_ranks(measures.answers)
        values = [one.values()[ORDERED] for one in (measures, other)]
        low, high = middle(measures.samples[ORDERED] - other.samples[ORDERED])
        against += (
            f" A linear model of the same features has {format_percent(values[1])}: "
            f"{_describe_difference(values[0] - values[1], low, high)}."
        )
    lines = [summarize_quality(measures, [ORDERED, "NDCG@10"]), against]
    pairs, ordered = measures.pairs.T
    if len(pairs) > 1 and (pairs > 0).any():
        large = pairs >= min(_MIN_GROUP_SIZE, pairs.max())
        worst = int(np.where(large, ordered / np.maximum(pairs, 1), np.inf).argmin())
        name = f"query {measures.queries[worst]}" if records else "one query"
        lines.append(
            f"Fails most in {name}: {format_percent(ordered[worst] / pairs[worst], 1)} of its "
            f"{pairs[worst]:,.0f} pairs are in order."
        )
    return lines


def summarize_quality(measures: Studied, names: Sequence[str]) -> str:
    """Return a sentence with the values and intervals of some measures, those that the model has."""
    known = {one.name: one for one in measures.measures}
    words = [_describe_measure(known[name]) for name in names if name in known] or [
        _describe_measure(one) for one in measures.measures[:2]
    ]
    text = "; ".join(words)
    return f"{text[0].upper()}{text[1:]}."


def find_weakest_group(groups: NDArray[Any], wrong: NDArray[Any]) -> int | None:
    """Return the group with the largest share of mistakes, allowing for chance; None if there is no mistake.

    Groups are compared by the lower end of Wilson's interval, so that small groups do not win by chance.
    """
    sizes, mistakes = np.bincount(groups), np.bincount(groups, weights=wrong)
    return _find_largest_share(sizes, mistakes)


def describe_group(words: str, mistakes: float, size: float, unit: str) -> str:
    """Return how many examples of a group are wrong."""
    share = format_percent(mistakes / size, 1)
    return f"{words}: {mistakes:,.0f} of {size:,.0f} {unit} are wrong ({share})"


def _find_largest_share(sizes: NDArray[Any], mistakes: NDArray[Any]) -> int | None:
    if not mistakes.any():
        return None
    large = sizes >= min(_MIN_GROUP_SIZE, sizes.max())
    lows = [wilson(*pair)[0] if use else -1.0 for *pair, use in zip(mistakes, sizes, large, strict=True)]
    return int(np.argmax(lows))


def _find_weakness(answers: Answered, wrong: NDArray[np.bool_]) -> str:
    """Return a sentence about the class and, for records, the feature with the most mistakes."""
    place = find_weakest_group(answers.right, wrong)
    unit = f"{answers.examples.unit}s"
    if place is None:
        return f"No mistake on these {len(wrong):,} {unit}."
    own = answers.right == place
    taken = np.bincount(answers.chosen[own & wrong], minlength=len(answers.classes))
    words = describe_group(
        f"Fails most on class {answers.classes[place]}", int(wrong[own].sum()), int(own.sum()), unit
    )
    if taken.any():
        words += f", most often predicted as {answers.classes[int(taken.argmax())]}"
    return f"{words}.{_find_weak_segment(answers, wrong, unit)}"


def _find_weak_segment(answers: Answered, wrong: NDArray[np.bool_], unit: str) -> str:
    classifier, rows = answers.classifier, answers.asked
    if not isinstance(classifier, RecordClassifier) or classifier.plan.whole or not isinstance(rows, CsrRows):
        return ""
    names = classifier.plan.feature_names
    weights = wrong[rows.row_of_entry()].astype(np.float64)
    sizes, mistakes, others = (
        np.bincount(rows.indices, weights=one, minlength=len(names))
        for one in (np.ones(rows.nnz), weights, rows.data != 1.0)
    )
    sizes[others > 0] = 0.0  # a number is not a segment
    place = _find_largest_share(sizes, np.where(sizes > 0, mistakes, 0.0))
    if place is None or wilson(mistakes[place], sizes[place])[0] <= wrong.mean():
        return ""
    words = describe_group(f"among {unit} with {names[place]}", mistakes[place], sizes[place], unit)
    return f" Weakest segment: {words.removeprefix('among ')}."


def compare_accuracy(baseline: str, model: NDArray[np.bool_], other: NDArray[np.bool_]) -> str:
    """Return a sentence that compares the correct predictions of the model with a baseline's."""
    difference = model.astype(np.float64) - other
    draws = np.array([counts @ difference / len(difference) for counts in resamples(len(difference))])
    words = _describe_difference(float(difference.mean()), *middle(draws))
    return f"{baseline} has an accuracy of {format_percent(float(other.mean()))}: {words}."


def _describe_difference(value: float, low: float, high: float) -> str:
    interval = f"{100 * low:+.2f} to {100 * high:+.2f}"
    if low > 0:
        return f"the model is better by {100 * value:.2f} points ({interval})"
    if high < 0:
        return f"the model is worse by {-100 * value:.2f} points ({interval})"
    return f"the model is not clearly better ({100 * value:+.2f} points, {interval})"


def _describe_measure(one: Measure) -> str:
    value = format_measure(one)
    if np.isnan(one.low):
        return f"{one.name} {value}"
    return f"{one.name} {value} (95 % interval: {format_interval(one)})"
