"""Describe explanations of rows and records for JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unkernel.cli.inputs.models import name_scores
from unkernel.engines.explain.explanation import Contribution, Explanation
from unkernel.measures.number_format import format_labels
from unkernel.models import Decision
from unkernel.models.several_outputs import MULTI_LABEL, list_explained, list_predictions


def find_class(decision: Decision, label: str | None) -> Any:
    """Return the class, or the output, whose name is `label`; None if `label` is None."""
    if label is None:
        return None
    candidates = list_explained(decision)
    for candidate in candidates:
        if label == str(candidate):
            return candidate
    raise ValueError(f"--of must be one of {format_labels(candidates)}, got {label!r}")


def list_prediction(decision: Decision, prediction: Any) -> Any:
    """Return the prediction for a row as commands show it: several labels are a list of the labels."""
    if decision.scheme != MULTI_LABEL:
        return prediction
    return list_predictions(decision, np.array([prediction]))[0]


def describe_explanation(
    explanation: Explanation, decision: Decision, describe_features: Callable[[Contribution], dict[str, Any]]
) -> dict[str, Any]:
    """Return a description of an explanation for JSON.

    `describe_features` returns the description of a contribution's features. "shown" has the numbers to
    print: only the scores of the compared classes; a single score is positive if it supports `for_class`.
    """
    output = {} if explanation.output is None else {"for_output": explanation.output}
    return output | {
        "for_class": explanation.for_class,
        "against": explanation.against,
        "scores": name_scores(decision),
        "score": explanation.score,
        "intercept": explanation.intercept,
        "contributions": [
            describe_features(contribution)
            | {"value": contribution.value, "shown": explanation.comparison.numbers(contribution.value)}
            for contribution in explanation.contributions
        ],
        "rest": explanation.rest,
        "shown": {
            name: explanation.comparison.numbers(getattr(explanation, name))
            for name in ("intercept", "rest", "score")
        },
        "conjunctions": explanation.n_conjunctions,
    }
