"""Agreement of models, and tests whether one is better than another."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb, erfc, sqrt

import numpy as np

from unkernel.measures.number_format import format_number, format_percent
from unkernel.measures.predictions import ModelPredictions
from unkernel.report.markup import join_parts, paragraph, table
from unkernel.report.page import Section

_MOST_EXACT = 1000  # disagreements; with more, the normal approximation is as good


def make_agreement_section(predictions: Sequence[ModelPredictions]) -> Section:
    """Show, for each pair of models, how often both models are correct, only one of them, or neither."""
    rows = []
    for model, other_model in combinations(predictions, 2):
        first_is_right, second_is_right = (
            model.predicted == model.gold,
            other_model.predicted == other_model.gold,
        )
        only = (
            int(np.count_nonzero(first_is_right & ~second_is_right)),
            int(np.count_nonzero(second_is_right & ~first_is_right)),
        )
        both_right, same = (
            int(np.count_nonzero(first_is_right & second_is_right)),
            np.mean(model.predicted == other_model.predicted),
        )
        rows.append(
            [
                f"{model.name} and {other_model.name}",
                format_percent(float(same)),
                f"{both_right:,}",
                f"{only[0]:,}",
                f"{only[1]:,}",
                f"{len(first_is_right) - both_right - sum(only):,}",
                format_number(compute_mcnemar_p(*only), 3),
            ]
        )
    head = ["models", "same answer", "both right", "only the first", "only the second", "neither", "p"]
    note = paragraph(
        "p is from McNemar's test: if both models were equally good, the probability that the numbers of "
        "examples that only one of them has right differ at least as much.",
        note=True,
    )
    return Section("Agreement", join_parts([table(head, rows, caption="Pairs of models"), note]))


def compute_mcnemar_p(first: int, second: int) -> float:
    """Return the two-sided p of McNemar's test; exact for few disagreements, with a correction for many.

    >>> compute_mcnemar_p(0, 5)
    0.0625
    """
    total, less = first + second, min(first, second)
    if total > _MOST_EXACT:
        return erfc(max(abs(first - second) - 1, 0) / sqrt(2 * total))
    return min(1.0, 2 * sum(comb(total, k) for k in range(less + 1)) / float(2**total))
