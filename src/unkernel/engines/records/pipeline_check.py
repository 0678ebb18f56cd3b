"""Compare a compiled pipeline with the pipeline itself."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from unkernel.engines.records.classifier import RecordClassifier
from unkernel.engines.records.outputs_check import find_certain_labels, find_wrong_numbers
from unkernel.models import Threshold
from unkernel.records.plan import Plan
from unkernel.records.record_generator import generate_records
from unkernel.records.sklearn import is_boosting_machine

_TOLERANCE = 1e-9  # largest difference of scores, relative to the largest score
_GENERATED_RECORDS = 24  # of each kind: with known values only, and with unseen and missing values
_MIN_COMPARED_RECORDS = 4
_MAX_CPU_SECONDS = 1.0  # after this time, only _MIN_COMPARED_RECORDS of each kind are compared
_REFUSALS = (ValueError, TypeError, KeyError, AttributeError)


def check_answers(
    compiled: RecordClassifier, pipeline: Any, sample: Any, what: str = "of the sample"
) -> None:
    """Raise a ``ValueError`` if a compiled classifier and its pipeline predict differently.

    Parameters
    ----------
    compiled : RecordClassifier
    pipeline : sklearn.pipeline.Pipeline
        The source of the compiled classifier.
    sample : records
        Input of the pipeline.
    what : str
        Description of the records for messages.
    """
    if not compiled.classifier.exact:
        return
    if compiled.decision.outputs:
        _check_outputs(compiled, pipeline, sample, what)
        return
    scores, pipeline_scores = _compute_scores(compiled, pipeline, sample)
    limit = _TOLERANCE * max(1.0, float(np.abs(pipeline_scores).max(initial=0.0)))
    is_certain = _have_clear_votes(compiled, sample, limit)
    if scores.shape != pipeline_scores.shape or not np.allclose(
        scores[is_certain], pipeline_scores[is_certain], rtol=_TOLERANCE, atol=limit
    ):
        raise _make_error_about_scores(what)
    if compiled.decision.scheme == "regression":
        return
    predicted, expected = compiled.predict(sample), np.asarray(pipeline.predict(_copy(sample)))
    if hasattr(pipeline, "classes_"):
        expected = compiled.classes_[np.searchsorted(pipeline.classes_, expected)]
    by_pairs = compiled.decision.scheme == "one_vs_one" and compiled.decision.decides_by_scores
    wrong = np.asarray(predicted != expected) & is_certain
    if compiled.decision.threshold is None:
        wrong &= _have_certain_label(pipeline_scores, limit, by_pairs=by_pairs)
    else:
        wrong &= _are_off_threshold(compiled, sample, compiled.decision.threshold, limit)
    _raise_error_about_labels(predicted, expected, wrong, what)


def _check_outputs(compiled: RecordClassifier, pipeline: Any, sample: Any, what: str) -> None:
    """Raise a ``ValueError`` if a classifier of several outputs and its pipeline predict differently."""
    decision = compiled.decision
    raw = compiled.classifier._raw_scores(compiled._encode(sample, None), None)
    if find_wrong_numbers(decision, raw, pipeline, _copy(sample), _TOLERANCE):
        raise _make_error_about_scores(what)
    if decision.predicts_numbers:
        return
    predicted, expected = decision.choose(raw), np.asarray(pipeline.predict(_copy(sample)))
    wrong = (predicted != expected) & find_certain_labels(decision, raw, _TOLERANCE)
    _raise_error_about_labels(predicted, expected, wrong.any(axis=1), what)


def _make_error_about_scores(what: str) -> ValueError:
    return ValueError(
        f"the scores of the compiled pipeline differ from the pipeline's own on records {what}: this is "
        "a bug in unkernel, please report it"
    )


def _raise_error_about_labels(predicted: Any, expected: Any, wrong: Any, what: str) -> None:
    """Raise a ``ValueError`` for the first wrong label, if there is one."""
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"the compiled pipeline answers {predicted[row]!r} and the pipeline {expected[row]!r} for "
            f"record {row} {what}: this is a bug in unkernel, please report it"
        )


def _compute_scores(compiled: RecordClassifier, pipeline: Any, sample: Any) -> tuple[Any, Any]:
    """Return the scores of both or, if the pipeline has no scores, the probabilities or predictions."""
    pipeline_input = _copy(sample)
    if hasattr(pipeline, "decision_function"):
        return compiled.decision_function(sample), np.asarray(pipeline.decision_function(pipeline_input))
    if hasattr(pipeline, "predict_proba"):
        return compiled.predict_proba(sample), np.asarray(pipeline.predict_proba(pipeline_input))
    return compiled.predict(sample), np.asarray(pipeline.predict(pipeline_input))


def _have_clear_votes(compiled: RecordClassifier, sample: Any, limit: float) -> Any:
    """Return, for each record, whether the votes of all pairs of classes are safe from rounding errors."""
    rows = compiled._encode(sample, None)
    decision = compiled.decision
    if decision.scheme != "one_vs_one" or decision.decides_by_scores:
        return np.ones(rows.shape[0], dtype=bool)
    return (np.abs(compiled.classifier._raw_scores(rows, None)) > limit).all(axis=1)


def _are_off_threshold(compiled: RecordClassifier, sample: Any, threshold: Threshold, limit: float) -> Any:
    """Return, for each record, whether rounding cannot move its probability or score across the threshold."""
    raw = compiled.classifier._raw_scores(compiled._encode(sample, None), None)
    return np.abs(compiled.decision.evidence(raw, threshold) - threshold.value) > limit


def _copy(sample: Any) -> Any:
    """Return a copy of the sample, because steps with ``copy=False`` change their input."""
    return sample.copy() if hasattr(sample, "copy") else sample


def _have_certain_label(scores: Any, limit: float, *, by_pairs: bool) -> Any:
    """Return, for each record, whether the label is certain: rounding errors cannot change it.

    If `by_pairs`, the sign of each score is a vote for one of two classes.
    """
    if scores.ndim == 1:
        return np.abs(scores) > limit
    if by_pairs:
        return (np.abs(scores) > limit).all(axis=1)
    two_largest = np.sort(scores, axis=1)[:, -2:]
    return two_largest[:, 1] - two_largest[:, 0] > limit


# --- Generated records ----------------------------------------------------------------------------------


def check_generated(compiled: RecordClassifier, pipeline: Any) -> int:
    """Compare predictions for records that are generated from the values in the plan.

    The records include unseen and missing values if the pipeline accepts such values. For slow pipelines,
    fewer records are compared.

    Returns
    -------
    int
        Number of records that were compared.
    """
    if not compiled.classifier.exact:
        return 0
    compared = 0
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kinds in ({}, {"unseen": True, "missing": True}):
            records = _generate_accepted(compiled.plan, pipeline, kinds)
            compared += _compare_records(compiled, pipeline, records[:_MIN_COMPARED_RECORDS])
            if time.process_time() - begin < _MAX_CPU_SECONDS:
                compared += _compare_records(compiled, pipeline, records[_MIN_COMPARED_RECORDS:])
    if not compared:
        warnings.warn(
            "the pipeline accepts none of the generated records, so answers were not compared: give compile "
            "a sample",
            stacklevel=4,
        )
    return compared


def _compare_records(compiled: RecordClassifier, pipeline: Any, records: list[list[Any]]) -> int:
    """Compare the predictions for generated records; return the number of records."""
    if records:
        check_answers(compiled, pipeline, _make_table(compiled.plan, pipeline, records), "made for it")
        _check_single_records(compiled, pipeline, records)
    return len(records)


def _generate_accepted(plan: Plan, pipeline: Any, kinds: dict[str, bool]) -> list[list[Any]]:
    """Return generated records that the pipeline accepts, if possible with all `kinds` of values together."""
    for chosen in [kinds, *({name: True} for name in kinds)]:
        records = generate_records(plan, _GENERATED_RECORDS, **chosen)
        if _accepts(pipeline, plan, records[:_MIN_COMPARED_RECORDS]) and _accepts(pipeline, plan, records):
            return records
    if kinds:
        return []
    return [
        record
        for record in generate_records(plan, _MIN_COMPARED_RECORDS)
        if _accepts(pipeline, plan, [record])
    ]


def _accepts(pipeline: Any, plan: Plan, records: list[list[Any]]) -> bool:
    """Return whether the transformers accept the records.

    The last step is not run, because it may be slow. Boosting machines accept all records that reach them.
    """
    try:
        rows = _make_table(plan, pipeline, records)
        for _, step in pipeline.steps[:-1]:
            rows = rows if step in (None, "passthrough") else step.transform(rows)
        if is_boosting_machine(pipeline.steps[-1][1]):
            return True
        values = rows.data if hasattr(rows, "tocsr") else np.asarray(rows, dtype=float)
        return bool(np.isfinite(values).all())
    except _REFUSALS:
        return False


def _check_single_records(compiled: RecordClassifier, pipeline: Any, records: list[list[Any]]) -> None:
    """Compare the score of each single record with its score in a batch."""
    if compiled.decision.scheme == "calibrated":
        return
    scores = np.asarray(compiled.decision_function(_make_table(compiled.plan, pipeline, records)))
    limit = _TOLERANCE * max(1.0, float(np.abs(scores).max(initial=0.0)))
    for record, batch_score in zip(records, scores, strict=True):
        single_score = compiled.score_one(record[0] if compiled.plan.whole else record)
        if not np.allclose(single_score, batch_score, rtol=_TOLERANCE, atol=limit):
            raise ValueError(
                "score_one differs from decision_function on a record made for it: this is a bug in "
                "unkernel, please report it"
            )


def _make_table(plan: Plan, pipeline: Any, records: list[list[Any]]) -> Any:
    """Return records in the form that the pipeline takes: texts, dicts, a frame or an array."""
    if plan.whole:
        return [record[0] for record in records]
    if not plan.required:
        return [dict(zip(plan.columns, record, strict=True)) for record in records]
    first = next(step for _, step in pipeline.steps if step not in (None, "passthrough"))
    if hasattr(first, "feature_names_in_"):
        return _make_frame({name: [record[k] for record in records] for k, name in enumerate(plan.columns)})
    is_text = any(not isinstance(value, (int, float)) for record in records for value in record)
    return np.array(records, dtype=object if is_text else np.float64)


def _make_frame(columns: dict[str, list[Any]]) -> Any:
    try:
        import pandas as pd
    except ImportError:
        import polars as pl

        return pl.DataFrame(columns, strict=False)
    series = {}
    for name, values in columns.items():
        is_number = all(isinstance(value, (int, float)) for value in values)
        series[name] = pd.Series(values, dtype=np.float64 if is_number else object)
    return pd.DataFrame(series)
