"""Compare a compiled pipeline of several labels or outputs with the pipeline itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.models import Decision
from unkernel.models.several_outputs import split_scores

_Numbers = NDArray[np.float64]


def find_wrong_numbers(
    decision: Decision, raw: _Numbers, pipeline: Any, pipeline_input: Any, tolerance: float
) -> bool:
    """Return whether scores, probabilities or values differ from the pipeline's, given raw scores."""
    compared = _find_comparable(decision, raw, pipeline, pipeline_input)
    if compared is None:
        return False
    numbers, expected = compared
    limit = tolerance * max(1.0, float(np.abs(expected).max(initial=0.0)))
    is_clear = np.ones(len(raw), dtype=bool)
    for output, scores in split_scores(decision.outputs, raw):
        if not output.decides_by_scores and output.scheme == "one_vs_one":  # votes may change by rounding
            is_clear &= (np.abs(scores) > limit).all(axis=1)
    return numbers.shape != expected.shape or not np.allclose(
        numbers[is_clear], expected[is_clear], rtol=tolerance, atol=limit
    )


def find_certain_labels(decision: Decision, raw: _Numbers, tolerance: float) -> NDArray[np.bool_]:
    """Return, for each row and output, whether rounding errors cannot change the label."""
    limit = tolerance * max(1.0, float(np.abs(raw).max(initial=0.0)))
    return np.column_stack(
        [_compute_margins(output, scores) > limit for output, scores in split_scores(decision.outputs, raw)]
    )


def _compute_margins(output: Decision, scores: _Numbers) -> _Numbers:
    """Return the distance of each row's scores, or probabilities, from those with another label."""
    if output.threshold is not None:
        return np.asarray(np.abs(output.evidence(scores, output.threshold) - output.threshold.value))
    if output.scheme in ("binary", "one_vs_one"):
        return np.asarray(np.abs(scores).min(axis=1))
    two_largest = np.sort(output.merits(scores), axis=1)[:, -2:]
    return np.asarray(two_largest[:, 1] - two_largest[:, 0])


def _find_comparable(
    decision: Decision, raw: _Numbers, pipeline: Any, pipeline_input: Any
) -> tuple[_Numbers, _Numbers] | None:
    """Return values, scores or probabilities of both; None if the pipeline has only labels."""
    if decision.predicts_numbers:
        return decision.choose(raw), np.asarray(pipeline.predict(pipeline_input))
    # OneVsRestClassifier has both methods, also if the classifiers inside do not have them.
    try:
        return decision.decide(raw), np.asarray(pipeline.decision_function(pipeline_input))
    except AttributeError:
        pass
    try:
        probabilities = pipeline.predict_proba(pipeline_input)
    except AttributeError:
        return None
    if isinstance(probabilities, list):
        probabilities = np.concatenate(probabilities, axis=1)
    return decision.probabilities(raw), np.asarray(probabilities)
