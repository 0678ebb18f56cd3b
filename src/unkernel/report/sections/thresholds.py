"""Quality and costs at several thresholds for the score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unkernel.measures.number_format import format_number, format_percent
from unkernel.measures.predictions import ModelPredictions
from unkernel.report.markup import Html, join_parts, paragraph, table
from unkernel.report.options import Costs
from unkernel.report.page import Section

_RECALLS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
MODEL_THRESHOLD, BEST_F1, CHEAPEST = "the model's own", "largest F1", "lowest cost"


def make_thresholds_section(predictions: Sequence[ModelPredictions], costs: Costs) -> Section:
    """Show a table of thresholds for each model."""
    positive = predictions[0].classes[predictions[0].positive or 0]
    explanation = paragraph(
        f"{positive} is predicted where the score is at least the threshold. A false positive costs "
        f"{costs.false_positive:g}, a false negative {costs.false_negative:g}. Choose a threshold on other "
        "examples: on the examples used for the choice, it looks better than it is."
    )
    return Section(
        "Thresholds", join_parts([explanation, *(_list_thresholds(model, costs) for model in predictions)])
    )


def choose_thresholds(predictions: ModelPredictions, costs: Costs) -> dict[int, list[str]]:
    """Return the indices of the thresholds to list, with reasons; -1 means above all scores."""
    curve = predictions.detection.curve()
    n_found = curve.true_positives + curve.false_positives
    n_predicted = float(np.count_nonzero(predictions.predicted == predictions.positive))
    cost_at_threshold = costs.false_positive * curve.false_positives + costs.false_negative * (
        curve.positives - curve.true_positives
    )
    cost_without_positives = costs.false_negative * curve.positives
    # The model's own threshold: the last one that finds at most as many examples as the model predicts.
    reasons_by_index: dict[int, list[str]] = {}
    reasons_by_index.setdefault(int(np.searchsorted(n_found, n_predicted, side="right")) - 1, []).append(
        MODEL_THRESHOLD
    )
    if curve.positives:
        reasons_by_index.setdefault(int(np.argmax(curve.f1)), []).append(BEST_F1)
        for share in _RECALLS:
            # 1e-9 allows for the rounding of the product.
            index = int(np.searchsorted(curve.true_positives, share * curve.positives - 1e-9))
            reasons_by_index.setdefault(index, []).append(f"recall {share:.0%}".replace("%", " %"))
    reasons_by_index.setdefault(
        -1 if cost_without_positives <= cost_at_threshold.min() else int(np.argmin(cost_at_threshold)), []
    ).append(CHEAPEST)
    return dict(sorted(reasons_by_index.items()))


def _list_thresholds(predictions: ModelPredictions, costs: Costs) -> Html:
    """Return a table of the chosen thresholds of a model, with the quality and the cost of each."""
    curve, detection = predictions.detection.curve(), predictions.detection
    probabilities = predictions.probabilities
    rows: list[list[Any]] = []
    marked = []
    for index, reasons in choose_thresholds(predictions, costs).items():
        true_positives, false_positives = (
            (curve.true_positives[index], curve.false_positives[index]) if index >= 0 else (0.0, 0.0)
        )
        score = format_number(detection.thresholds[index]) if index >= 0 else "above all"
        row = [", ".join(reasons), score]
        if probabilities is not None:
            example = detection.examples[index]
            row.append(
                format_percent(float(probabilities[example, predictions.positive]), 1) if index >= 0 else ""
            )
        false_negatives = curve.positives - true_positives
        cost = (costs.false_positive * false_positives + costs.false_negative * false_negatives) / len(
            predictions.examples
        )
        precision, f1 = (
            _divide(true_positives, true_positives + false_positives),
            _divide(2 * true_positives, true_positives + false_positives + curve.positives),
        )
        row += [f"{int(true_positives):,}", f"{int(false_positives):,}", f"{int(false_negatives):,}"]
        row += [
            format_percent(precision, 1),
            format_percent(_divide(true_positives, curve.positives), 1),
            format_percent(f1, 1),
        ]
        rows.append([*row, format_number(1000 * cost)])
        if MODEL_THRESHOLD in reasons:
            marked.append(len(rows) - 1)
    head = ["threshold", "score", *(["probability"] if probabilities is not None else [])]
    head += [
        "true positives",
        "false positives",
        "false negatives",
        "precision",
        "recall",
        "F1",
        "cost per 1,000",
    ]
    caption = f"{predictions.name}: thresholds for {predictions.classes[predictions.positive or 0]}"
    return table(head, rows, caption=caption, marked=marked)


def _divide(part: float, whole: float) -> float:
    return float(part / whole) if whole else float("nan")
