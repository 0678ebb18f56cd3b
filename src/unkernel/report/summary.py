"""Write the first lines of a report: quality of a model, comparison with baselines, and weaknesses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.data.rows.csr import CsrRows
from unkernel.engines import RecordClassifier
from unkernel.measures.base import PredictionMeasures
from unkernel.measures.class_measures import ACCURACY, ROC_AREA, ClassMeasures
from unkernel.measures.intervals import (
    Measure,
    compute_central_interval,
    compute_wilson_interval,
    draw_resamples,
)
from unkernel.measures.number_format import format_interval, format_measure, format_number, format_percent
from unkernel.measures.predictions import ModelPredictions
from unkernel.measures.value_measures import R_SQUARED, ROOT_SQUARED, ValueMeasures
from unkernel.report.linear_baseline import LinearBaseline

_MIN_GROUP_SIZE = 20  # smaller groups may have many mistakes by chance
_N_INTERVALS = 4  # number of intervals of the true values of a regression


def summarize_classes(measures: ClassMeasures, baseline: LinearBaseline | None) -> list[str]:
    """Return three sentences about a classifier."""
    predictions = measures.predictions
    assert isinstance(predictions, ModelPredictions)
    is_correct = predictions.predicted == predictions.gold
    counts = np.bincount(predictions.gold, minlength=len(predictions.classes))
    majority = int(counts.argmax())
    comparison = compare_accuracy(
        f"Always predicting {predictions.classes[majority]}, the most frequent class of these examples,",
        is_correct,
        predictions.gold == majority,
    )
    if baseline is not None:
        comparison += " " + compare_accuracy(
            "A linear model of the same features", is_correct, baseline.find_correct(predictions)
        )
    return [
        summarize_quality(measures, [ACCURACY, ROC_AREA]),
        comparison,
        _find_weakness(predictions, ~is_correct),
    ]


def summarize_values(measures: ValueMeasures) -> list[str]:
    """Return three sentences about a regression."""
    gold, errors = measures.gold, np.abs(measures.errors)
    model_error, baseline_error = float(np.sqrt((errors**2).mean())), float(gold.std())
    comparison = (
        f"Always predicting the mean of these values has a {ROOT_SQUARED} of {format_number(baseline_error)}"
    )
    if baseline_error > 0:
        change = "smaller" if model_error <= baseline_error else "larger"
        comparison += f": the model's is {format_percent(abs(1 - model_error / baseline_error), 1)} {change}"
    edges = np.unique(np.quantile(gold, np.linspace(0, 1, _N_INTERVALS + 1)))
    group = np.clip(np.searchsorted(edges, gold, side="right") - 1, 0, max(len(edges) - 2, 0))
    sizes = np.bincount(group)
    means = np.bincount(group, weights=errors) / np.maximum(sizes, 1)
    worst = int(means.argmax())
    ends = f"{format_number(edges[worst])} to {format_number(edges[min(worst + 1, len(edges) - 1)])}"
    weakness = (
        f"The model fails most for true values from {ends}: the mean absolute error is "
        f"{format_number(means[worst])} there, and {format_number(float(errors.mean()))} overall."
    )
    return [summarize_quality(measures, [ROOT_SQUARED, R_SQUARED]), comparison + ".", weakness]


def summarize_ranks(measures: Any, baseline: LinearBaseline | None, *, records: bool) -> list[str]:
    """Return three sentences about a ranking; without `records`, no query is named."""
    from unkernel.measures.rank_measures import ORDERED

    comparison = "A random order has 50 % of the pairs in order."
    if baseline is not None:
        baseline_measures = baseline.measure_ranks(measures.predictions)
        values = [ranking.values()[ORDERED] for ranking in (measures, baseline_measures)]
        low, high = compute_central_interval(measures.samples[ORDERED] - baseline_measures.samples[ORDERED])
        comparison += (
            f" A linear model of the same features has {format_percent(values[1])}: "
            f"{_describe_difference(values[0] - values[1], low, high)}."
        )
    lines = [summarize_quality(measures, [ORDERED, "NDCG@10"]), comparison]
    pairs, ordered = measures.pairs.T
    if len(pairs) > 1 and (pairs > 0).any():
        is_large = pairs >= min(_MIN_GROUP_SIZE, pairs.max())
        worst = int(np.where(is_large, ordered / np.maximum(pairs, 1), np.inf).argmin())
        name = f"query {measures.queries[worst]}" if records else "one query"
        lines.append(
            f"Fails most in {name}: {format_percent(ordered[worst] / pairs[worst], 1)} of its "
            f"{pairs[worst]:,.0f} pairs are in order."
        )
    return lines


def summarize_quality(measures: PredictionMeasures, names: Sequence[str]) -> str:
    """Return a sentence with the measures in `names`; if none of them exists, with the first two measures."""
    by_name = {measure.name: measure for measure in measures.measures}
    selected = [by_name[name] for name in names if name in by_name] or measures.measures[:2]
    text = "; ".join(map(_describe_measure, selected))
    return f"{text[0].upper()}{text[1:]}."


def find_weakest_group(groups: NDArray[Any], wrong: NDArray[Any]) -> int | None:
    """Return the group with the largest share of mistakes, or None if there is no mistake.

    Groups are compared by the lower ends of Wilson's intervals of the shares. This rule favours large groups,
    whose shares are certain.
    """
    sizes, mistakes = np.bincount(groups), np.bincount(groups, weights=wrong)
    return _find_largest_share(sizes, mistakes)


def describe_group(subject: str, mistakes: float, size: float, unit: str) -> str:
    """Return a text that states how many examples of a group are wrong."""
    share = format_percent(mistakes / size, 1)
    return f"{subject}: {mistakes:,.0f} of {size:,.0f} {unit} are wrong ({share})"


def _find_largest_share(sizes: NDArray[Any], mistakes: NDArray[Any]) -> int | None:
    """Return the group whose share of mistakes has the largest lower end of Wilson's interval."""
    if not mistakes.any():
        return None
    is_large = sizes >= min(_MIN_GROUP_SIZE, sizes.max())
    low_ends = np.full(len(sizes), -1.0)
    for group in np.flatnonzero(is_large).tolist():
        low_ends[group] = compute_wilson_interval(mistakes[group], sizes[group])[0]
    return int(np.argmax(low_ends))


def _find_weakness(predictions: ModelPredictions, wrong: NDArray[np.bool_]) -> str:
    """Return a sentence about the class and, for records, the feature with the most mistakes."""
    weakest = find_weakest_group(predictions.gold, wrong)
    unit = f"{predictions.examples.unit}s"
    if weakest is None:
        return f"No mistake on these {len(wrong):,} {unit}."
    is_member = predictions.gold == weakest
    predicted_counts = np.bincount(
        predictions.predicted[is_member & wrong], minlength=len(predictions.classes)
    )
    description = describe_group(
        f"Fails most on class {predictions.classes[weakest]}",
        int(wrong[is_member].sum()),
        int(is_member.sum()),
        unit,
    )
    if predicted_counts.any():
        description += f", most often predicted as {predictions.classes[int(predicted_counts.argmax())]}"
    return f"{description}.{_find_weak_segment(predictions, wrong, unit)}"


def _find_weak_segment(predictions: ModelPredictions, wrong: NDArray[np.bool_], unit: str) -> str:
    """Describe the feature whose records are wrong most often, if that is clearly more often than overall."""
    classifier, rows = predictions.classifier, predictions.inputs
    if not isinstance(classifier, RecordClassifier) or classifier.plan.whole or not isinstance(rows, CsrRows):
        return ""
    names = classifier.plan.feature_names
    # For each feature: the number of its records, of the wrong ones among them, and of values other than 1.
    weights = wrong[rows.row_of_entry()].astype(np.float64)
    sizes, mistakes, other_values = (
        np.bincount(rows.indices, weights=entry_weights, minlength=len(names))
        for entry_weights in (np.ones(rows.nnz), weights, rows.data != 1.0)
    )
    sizes[other_values > 0] = 0.0  # features with values other than 1 are not segments
    weakest = _find_largest_share(sizes, np.where(sizes > 0, mistakes, 0.0))
    if weakest is None or compute_wilson_interval(mistakes[weakest], sizes[weakest])[0] <= wrong.mean():
        return ""
    segment = f"{unit} with {names[weakest]}"
    return f" Weakest segment: {describe_group(segment, mistakes[weakest], sizes[weakest], unit)}."


def compare_accuracy(
    baseline: str, is_correct: NDArray[np.bool_], baseline_is_correct: NDArray[np.bool_]
) -> str:
    """Return a sentence that compares the correct predictions of the model with a baseline's."""
    gains = is_correct.astype(np.float64) - baseline_is_correct  # 1, 0 or -1 for each example
    means = np.array([counts @ gains / len(gains) for counts in draw_resamples(len(gains))])
    comparison = _describe_difference(float(gains.mean()), *compute_central_interval(means))
    return f"{baseline} has an accuracy of {format_percent(float(baseline_is_correct.mean()))}: {comparison}."


def _describe_difference(value: float, low: float, high: float) -> str:
    interval = f"{100 * low:+.2f} to {100 * high:+.2f}"
    if low > 0:
        return f"the model is better by {100 * value:.2f} points ({interval})"
    if high < 0:
        return f"the model is worse by {-100 * value:.2f} points ({interval})"
    return f"the model is not clearly better ({100 * value:+.2f} points, {interval})"


def _describe_measure(measure: Measure) -> str:
    value = format_measure(measure)
    if np.isnan(measure.low):
        return f"{measure.name} {value}"
    return f"{measure.name} {value} (95 % interval: {format_interval(measure)})"
