"""Compare a compiled pipeline with the pipeline itself."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from unkernel.engines.records.classifier import RecordClassifier
from unkernel.records.plan import Plan
from unkernel.records.record_generator import generate_records

_TOLERANCE = 1e-9  # of scores, relative to their size
_GENERATED_RECORDS = 24  # with known values, and as many with other values
_MIN_COMPARED_RECORDS = 4
_MAX_CPU_SECONDS = 1.0  # after this, only a minimum of records is compared
_REFUSALS = (ValueError, TypeError, KeyError, AttributeError)


def check_answers(found: RecordClassifier, pipeline: Any, sample: Any, what: str = "of the sample") -> None:
    """Compare with the answers of the pipeline; raise a ``ValueError`` if they differ.

    Parameters
    ----------
    found : RecordClassifier
    pipeline : sklearn.pipeline.Pipeline
        The source of the compiled classifier.
    sample : records
        Input of the pipeline.
    what : str
        Describes the records in messages.
    """
    if not found.classifier.exact:
        return
    scores, own_scores = _compute_scores(found, pipeline, sample)
    limit = _TOLERANCE * max(1.0, float(np.abs(own_scores).max(initial=0.0)))
    sure = _have_no_tied_pair(found, sample, limit)
    if scores.shape != own_scores.shape or not np.allclose(
        scores[sure], own_scores[sure], rtol=_TOLERANCE, atol=limit
    ):
        raise ValueError(
            f"the scores of the compiled pipeline differ from the pipeline's own on records {what}: this is "
            "a bug in unkernel, please report it"
        )
    if found.decision.scheme == "regression":
        return
    ours, own = found.predict(sample), np.asarray(pipeline.predict(_copy(sample)))
    own = found.classes_[np.searchsorted(pipeline.classes_, own)] if hasattr(pipeline, "classes_") else own
    by_pairs = found.decision.scheme == "one_vs_one" and found.decision.decides_by_scores
    wrong = np.asarray(ours != own) & sure & _is_sure(own_scores, limit, by_pairs=by_pairs)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"the compiled pipeline answers {ours[row]!r} and the pipeline {own[row]!r} for record {row} "
            f"{what}: this is a bug in unkernel, please report it"
        )


def _compute_scores(found: RecordClassifier, pipeline: Any, sample: Any) -> tuple[Any, Any]:
    """Return our scores and the pipeline's: probabilities or regression values if it has no others."""
    own = _copy(sample)
    if hasattr(pipeline, "decision_function"):
        return found.decision_function(sample), np.asarray(pipeline.decision_function(own))
    if hasattr(pipeline, "predict_proba"):
        return found.predict_proba(sample), np.asarray(pipeline.predict_proba(own))
    return found.predict(sample), np.asarray(pipeline.predict(own))


def _have_no_tied_pair(found: RecordClassifier, sample: Any, limit: float) -> Any:
    """Return whether rounding cannot change the vote of any pair of classes, and thus sums of votes."""
    rows = found._rows(sample, None)
    decision = found.decision
    if decision.scheme != "one_vs_one" or decision.decides_by_scores:
        return np.ones(rows.shape[0], dtype=bool)
    return (np.abs(found.classifier._raw_scores(rows, None)) > limit).all(axis=1)


def _copy(sample: Any) -> Any:
    """Copy the sample, because steps with ``copy=False`` change their input."""
    return sample.copy() if hasattr(sample, "copy") else sample


def _is_sure(scores: Any, limit: float, *, by_pairs: bool) -> Any:
    """Return whether rounding cannot change the label, because the scores are not nearly tied.

    `by_pairs`: each score is a vote for one of two classes, by its sign.
    """
    if scores.ndim == 1:
        return np.abs(scores) > limit
    if by_pairs:
        return (np.abs(scores) > limit).all(axis=1)
    two = np.sort(scores, axis=1)[:, -2:]
    return two[:, 1] - two[:, 0] > limit


# --- Generated records ----------------------------------------------------------------------------------


def check_generated(found: RecordClassifier, pipeline: Any) -> int:
    """Compare on records that are generated from the values in the plan.

    They include unseen and missing values if the pipeline accepts these. Slow pipelines get fewer records.

    Returns
    -------
    int
        Number of records that were compared.
    """
    if not found.classifier.exact:
        return 0
    compared = 0
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kinds in ({}, {"unseen": True, "missing": True}):
            records = _generate_accepted(found.plan, pipeline, kinds)
            for first, last in ((0, _MIN_COMPARED_RECORDS), (_MIN_COMPARED_RECORDS, len(records))):
                if records[first:last] and (first == 0 or time.process_time() - began < _MAX_CPU_SECONDS):
                    check_answers(
                        found, pipeline, _make_table(found.plan, pipeline, records[first:last]), "made for it"
                    )
                    _check_single_records(found, pipeline, records[first:last])
                    compared += len(records[first:last])
    if not compared:
        warnings.warn(
            "the pipeline accepts none of the generated records, so answers were not compared: give compile "
            "a sample",
            stacklevel=4,
        )
    return compared


def _generate_accepted(plan: Plan, pipeline: Any, kinds: dict[str, bool]) -> list[list[Any]]:
    """Generate records that the pipeline accepts: with all kinds of values, else with a single kind."""
    for chosen in [kinds, *({name: True} for name in kinds)]:
        records = generate_records(plan, _GENERATED_RECORDS, **chosen)
        if _can_read(pipeline, plan, records[:_MIN_COMPARED_RECORDS]) and _can_read(pipeline, plan, records):
            return records
    if kinds:
        return []
    return [
        record
        for record in generate_records(plan, _MIN_COMPARED_RECORDS)
        if _can_read(pipeline, plan, [record])
    ]


def _can_read(pipeline: Any, plan: Plan, records: list[list[Any]]) -> bool:
    """Return whether the transformers accept the records; the last step does not run, as it may be slow."""
    try:
        rows = _make_table(plan, pipeline, records)
        for _, step in pipeline.steps[:-1]:
            rows = rows if step in (None, "passthrough") else step.transform(rows)
        return bool(np.isfinite(rows.data if hasattr(rows, "tocsr") else np.asarray(rows, dtype=float)).all())
    except _REFUSALS:
        return False


def _check_single_records(found: RecordClassifier, pipeline: Any, records: list[list[Any]]) -> None:
    """Compare the answers to single records with those to many records at once."""
    if found.decision.scheme == "calibrated":
        return
    scores = np.asarray(found.decision_function(_make_table(found.plan, pipeline, records)))
    limit = _TOLERANCE * max(1.0, float(np.abs(scores).max(initial=0.0)))
    for record, own in zip(records, scores, strict=True):
        one = found.score_one(record[0] if found.plan.whole else record)
        if not np.allclose(one, own, rtol=_TOLERANCE, atol=limit):
            raise ValueError(
                "score_one differs from decision_function on a record made for it: this is a bug in "
                "unkernel, please report it"
            )


def _make_table(plan: Plan, pipeline: Any, records: list[list[Any]]) -> Any:
    """Convert records to the input of the pipeline: texts, dicts, a frame or an array."""
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
    made = {}
    for name, values in columns.items():
        is_number = all(isinstance(value, (int, float)) for value in values)
        made[name] = pd.Series(values, dtype=np.float64 if is_number else object)
    return pd.DataFrame(made)
