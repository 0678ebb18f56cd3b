"""Compiled pipelines answer as scikit-learn does: generated steps, parameters and records."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings

import unkernel
from reference import pipelines as generated

CLOSE = 1e-9


def fitted(case: generated.Case) -> None:
    """Fit the pipeline; cases that scikit-learn refuses, or cannot answer, are no cases."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            case.pipeline.fit(case.X, case.y)
        except (ValueError, TypeError):
            assume(False)


def records_of(X: Any) -> list[Any]:
    """The records one by one, as a caller has them."""
    if hasattr(X, "columns"):
        return X.astype(object).to_dict("records")
    return X.tolist() if hasattr(X, "tolist") else list(X)


def own_answers(pipeline: Any, X: Any) -> tuple[Any, Any, Any]:
    """The pipeline's labels, its scores (probabilities where it has no others) and its probabilities or None.

    The records are transformed once for all of them: that is most of the time.
    """
    transformed, last = pipeline[:-1].transform(X), pipeline[-1]
    chances = last.predict_proba(transformed) if hasattr(last, "predict_proba") else None
    scores = last.decision_function(transformed) if hasattr(last, "decision_function") else chances
    return last.predict(transformed), np.asarray(scores), chances


def is_sure(scores: Any) -> Any:
    """Whether the label is certain in spite of rounding."""
    if scores.ndim == 1:
        return np.abs(scores) > CLOSE
    two = np.sort(scores, axis=1)[:, -2:]
    return two[:, 1] - two[:, 0] > CLOSE * np.maximum(1, np.abs(two[:, 1]))


def check_equal(case: generated.Case) -> None:
    """The compiled pipeline answers as the pipeline, on batches and on single records."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted(case)
        made = (case.y[:4] == case.y[0]).all()  # a few are compared on records that compile makes, as well
        sample = None if made else case.X
        fast = unkernel.compile(case.pipeline, sample=sample, measure=False)
        for X in (case.X, case.asked):
            try:
                answers = own_answers(case.pipeline, X)
            except ValueError:
                with pytest.raises(ValueError):  # each has words of its own
                    fast.predict(X)
                continue
            check_answers(fast, X, *answers, has_scores=hasattr(case.pipeline, "decision_function"))


def check_answers(fast: Any, X: Any, labels: Any, scores: Any, chances: Any, *, has_scores: bool) -> None:
    ours = fast.decision_function(X) if has_scores else fast.predict_proba(X)
    limit = CLOSE * max(1.0, np.abs(scores).max())
    np.testing.assert_allclose(ours, scores, rtol=CLOSE, atol=limit)
    sure = is_sure(scores)
    np.testing.assert_array_equal(fast.predict(X)[sure], labels[sure])
    one = fast.score_one if has_scores else fast.predict_proba_one
    for row, record in enumerate(records_of(X)):
        np.testing.assert_allclose(one(record), scores[row], rtol=CLOSE, atol=limit)
        if sure[row]:
            assert fast.predict_one(record) == labels[row]
    if chances is not None:
        np.testing.assert_allclose(fast.predict_proba(X), chances, rtol=CLOSE, atol=CLOSE)
        one = fast.predict_proba_one(records_of(X)[0])
        np.testing.assert_allclose(one, chances[0], rtol=CLOSE, atol=CLOSE)
    else:
        assert not hasattr(fast, "predict_proba")


@settings(max_examples=25, derandomize=True)
@given(generated.table_pipelines())
def test_tables(case):
    check_equal(case)


@settings(max_examples=25, derandomize=True)
@given(generated.number_pipelines())
def test_numbers(case):
    check_equal(case)


@settings(max_examples=25, derandomize=True)
@given(generated.text_pipelines())
def test_texts(case):
    check_equal(case)


@settings(max_examples=25, derandomize=True)
@given(generated.dict_pipelines())
def test_dicts(case):
    check_equal(case)
