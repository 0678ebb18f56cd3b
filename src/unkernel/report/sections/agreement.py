"""The agreement of models, and tests whether one model is better than another."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb, erfc, sqrt

import numpy as np

from unkernel.measures.number_format import format_number, format_percent
from unkernel.measures.predictions import ModelPredictions
from unkernel.report.markup import join_parts, paragraph, table
from unkernel.report.page import Section

_MAX_EXACT = 1000  # with more disagreements, the normal approximation is accurate


def make_agreement_section(predictions: Sequence[ModelPredictions]) -> Section:
    """Show, for each pair of models, how often both, only one, or neither is correct."""
    rows = []
    for model, other_model in combinations(predictions, 2):
        is_first_correct = model.predicted == model.gold
        is_second_correct = other_model.predicted == other_model.gold
        n_both = int(np.count_nonzero(is_first_correct & is_second_correct))
        n_only_first = int(np.count_nonzero(is_first_correct & ~is_second_correct))
        n_only_second = int(np.count_nonzero(is_second_correct & ~is_first_correct))
        n_neither = len(is_first_correct) - n_both - n_only_first - n_only_second
        rows.append(
            [
                f"{model.name} and {other_model.name}",
                format_percent(float(np.mean(model.predicted == other_model.predicted))),
                f"{n_both:,}",
                f"{n_only_first:,}",
                f"{n_only_second:,}",
                f"{n_neither:,}",
                format_number(compute_mcnemar_p(n_only_first, n_only_second), 3),
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
    """Return the two-sided p-value of McNemar's test: exact for few disagreements, else approximate.

    >>> compute_mcnemar_p(0, 5)
    0.0625
    """
    total, smaller = first + second, min(first, second)
    if total > _MAX_EXACT:
        return erfc(max(abs(first - second) - 1, 0) / sqrt(2 * total))
    return min(1.0, 2 * sum(comb(total, k) for k in range(smaller + 1)) / float(2**total))
