"""Explanations of rows and records, for JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from unkernel.cli.inputs.models import name_scores
from unkernel.engines.explain.explanation import Contribution, Explanation
from unkernel.measures.number_format import labels as label_words
from unkernel.models import Decision


def find_class(classes: NDArray[Any], label: str | None) -> Any:
    """Return the class that --of names; None if it names none."""
    if label is None:
        return None
    for known in classes.tolist():
        if label == str(known):
            return known
    raise ValueError(f"--of must be one of {label_words(classes.tolist())}, got {label!r}")


def describe_explanation(
    found: Explanation, decision: Decision, features_of: Callable[[Contribution], dict[str, Any]]
) -> dict[str, Any]:
    """Describe the parts of a score; `features_of` describes the features of a contribution."""
    return {
        "for_class": found.for_class,
        "against": found.against,
        "scores": name_scores(decision),
        "score": found.score,
        "intercept": found.intercept,
        "contributions": [
            features_of(part) | {"value": part.value, "shown": found.comparison.numbers(part.value)}
            for part in found.contributions
        ],
        "rest": found.rest,
        "shown": {
            name: found.comparison.numbers(getattr(found, name)) for name in ("intercept", "rest", "score")
        },
        "conjunctions": found.n_conjunctions,
    }
