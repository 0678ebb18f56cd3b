"""Quality and costs at other thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unkernel.measures.number_format import format_percent, number
from unkernel.measures.predictions import Answered
from unkernel.report.markup import Html, join_parts, paragraph, table
from unkernel.report.options import Costs
from unkernel.report.page import Section

_RECALLS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
OWN, BEST_F1, CHEAPEST = "the model's own", "largest F1", "lowest cost"


def thresholds(answers: Sequence[Answered], costs: Costs) -> Section:
    """Show a table for each model."""
    positive = answers[0].classes[answers[0].positive or 0]
    words = paragraph(
        f"{positive} is predicted where the score is at least the threshold. A false positive costs "
        f"{costs.false_alarm:g}, a false negative {costs.miss:g}. Choose a threshold on other examples: "
        "on the examples used for the choice, it looks better than it is."
    )
    return Section("Thresholds", join_parts([words, *(_list_thresholds(one, costs) for one in answers)]))


def places(answers: Answered, costs: Costs) -> dict[int, list[str]]:
    """Return the thresholds to list, with reasons; -1 is above all scores."""
    curve = answers.detection.curve()
    found = curve.hits + curve.alarms
    said = float(np.count_nonzero(answers.chosen == answers.positive))
    price = costs.false_alarm * curve.alarms + costs.miss * (curve.positives - curve.hits)
    nothing = costs.miss * curve.positives  # the cost of finding none
    listed: dict[int, list[str]] = {}
    listed.setdefault(int(np.searchsorted(found, said, side="right")) - 1, []).append(OWN)
    if curve.positives:
        listed.setdefault(int(np.argmax(curve.f1)), []).append(BEST_F1)
        for share in _RECALLS:
            place = int(np.searchsorted(curve.hits, share * curve.positives - 1e-9))
            listed.setdefault(place, []).append(f"recall {share:.0%}".replace("%", " %"))
    listed.setdefault(-1 if nothing <= price.min() else int(np.argmin(price)), []).append(CHEAPEST)
    return dict(sorted(listed.items()))


def _list_thresholds(answers: Answered, costs: Costs) -> Html:
    curve, detection = answers.detection.curve(), answers.detection
    probabilities = answers.probabilities
    rows: list[list[Any]] = []
    marked = []
    for place, reasons in places(answers, costs).items():
        hits, alarms = (curve.hits[place], curve.alarms[place]) if place >= 0 else (0.0, 0.0)
        score = number(detection.thresholds[place]) if place >= 0 else "above all"
        row = [", ".join(reasons), score]
        if probabilities is not None:
            example = detection.examples[place]
            row.append(
                format_percent(float(probabilities[example, answers.positive]), 1) if place >= 0 else ""
            )
        misses = curve.positives - hits
        price = (costs.false_alarm * alarms + costs.miss * misses) / len(answers.examples)
        precision, f1 = _divide(hits, hits + alarms), _divide(2 * hits, hits + alarms + curve.positives)
        row += [f"{int(hits):,}", f"{int(alarms):,}", f"{int(misses):,}"]
        row += [
            format_percent(precision, 1),
            format_percent(_divide(hits, curve.positives), 1),
            format_percent(f1, 1),
        ]
        rows.append([*row, number(1000 * price)])
        if OWN in reasons:
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
    caption = f"{answers.name}: thresholds for {answers.classes[answers.positive or 0]}"
    return table(head, rows, caption=caption, marked=marked)


def _divide(part: float, whole: float) -> float:
    return float(part / whole) if whole else float("nan")
