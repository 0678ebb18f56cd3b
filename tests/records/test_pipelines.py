"""Compiled pipelines predict like scikit-learn: generated steps, parameters and records."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings

import unkernel
from reference import pipelines as generated
from reference.function_pipelines import function_pipelines
from reference.selection import few_examples

CLOSE = 1e-9


def fit_case(case: generated.Case) -> None:
    """Fit the pipeline; skip cases that scikit-learn refuses or cannot predict."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            case.pipeline.fit(case.X, case.y)
        except (ValueError, TypeError, IndexError):
            assume(False)


def records_of(X: Any) -> list[Any]:
    """Return the records one by one, in the form that callers have."""
    if hasattr(X, "columns"):
        return X.astype(object).to_dict("records")
    return X.tolist() if hasattr(X, "tolist") else list(X)


def own_answers(pipeline: Any, X: Any) -> tuple[Any, Any, Any]:
    """Return the pipeline's labels, its scores or else probabilities, and its probabilities or None.

    The records are transformed only once, which takes most of the time.
    """
    transformed, estimator = pipeline[:-1].transform(X), pipeline[-1]
    probabilities = estimator.predict_proba(transformed) if hasattr(estimator, "predict_proba") else None
    scores = (
        estimator.decision_function(transformed) if hasattr(estimator, "decision_function") else probabilities
    )
    return estimator.predict(transformed), np.asarray(scores), probabilities


def is_sure(scores: Any) -> Any:
    """Return whether rounding errors cannot change the label."""
    if scores.ndim == 1:
        return np.abs(scores) > CLOSE
    two_largest = np.sort(scores, axis=1)[:, -2:]
    return two_largest[:, 1] - two_largest[:, 0] > CLOSE * np.maximum(1, np.abs(two_largest[:, 1]))


def have_clear_votes(fast: Any, X: Any, limit: float) -> Any:
    """Return whether rounding errors cannot change the votes of pairs of classes."""
    raw = fast.classifier._raw_scores(fast.transform(X), None)
    if fast.decision.scheme != "one_vs_one" or fast.decision.decides_by_scores:
        return np.ones(len(raw), dtype=bool)
    return (np.abs(raw) > limit).all(axis=1)


def is_off_threshold(fast: Any, X: Any) -> Any:
    """Return whether rounding errors cannot change the label that a threshold decides."""
    threshold = fast.decision.threshold
    raw = fast.classifier._raw_scores(fast.transform(X), None)
    return np.abs(fast.decision.evidence(raw, threshold) - threshold.value) > CLOSE


def check_equal(case: generated.Case) -> None:
    """Check that the compiled pipeline predicts like the pipeline, for batches and single records."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit_case(case)
        # If the first labels are equal, `compile` gets no sample and compares generated records.
        without_sample = (case.y[:4] == case.y[0]).all()
        sample = None if without_sample else case.X
        fast = unkernel.compile(case.pipeline, sample=sample, measure=False)
        for X in (case.X, case.X_test):
            try:
                answers = own_answers(case.pipeline, X)
            except ValueError:
                with pytest.raises(ValueError):  # with another message
                    fast.predict(X)
                continue
            check_answers(fast, X, *answers, has_scores=hasattr(case.pipeline, "decision_function"))


def check_answers(
    fast: Any, X: Any, labels: Any, scores: Any, probabilities: Any, *, has_scores: bool
) -> None:
    fast_scores = fast.decision_function(X) if has_scores else fast.predict_proba(X)
    limit = CLOSE * max(1.0, np.abs(scores).max())
    are_clear = have_clear_votes(fast, X, limit)
    np.testing.assert_allclose(fast_scores[are_clear], scores[are_clear], rtol=CLOSE, atol=limit)
    is_certain = are_clear & (
        is_sure(scores) if fast.decision.threshold is None else is_off_threshold(fast, X)
    )
    np.testing.assert_array_equal(fast.predict(X)[is_certain], labels[is_certain])
    score_one = fast.score_one if has_scores else fast.predict_proba_one
    for row, record in enumerate(records_of(X)):
        if not are_clear[row]:
            continue
        np.testing.assert_allclose(score_one(record), scores[row], rtol=CLOSE, atol=limit)
        if is_certain[row]:
            assert fast.predict_one(record) == labels[row]
    if probabilities is not None:
        np.testing.assert_allclose(fast.predict_proba(X), probabilities, rtol=CLOSE, atol=CLOSE)
        score_one = fast.predict_proba_one(records_of(X)[0])
        np.testing.assert_allclose(score_one, probabilities[0], rtol=CLOSE, atol=CLOSE)
    else:
        assert not hasattr(fast, "predict_proba")


@few_examples(10, derandomize=True)
@given(generated.table_pipelines())
def test_tables(case):
    check_equal(case)


@few_examples(10, derandomize=True)
@given(generated.number_pipelines())
def test_numbers(case):
    check_equal(case)


@few_examples(10, derandomize=True)
@given(generated.text_pipelines())
def test_texts(case):
    check_equal(case)


@few_examples(10, derandomize=True)
@given(generated.dict_pipelines())
def test_dicts(case):
    check_equal(case)


@few_examples(10, derandomize=True)
@given(generated.bayes_pipelines())
def test_target_encoders_and_naive_bayes(case):
    check_equal(case)


@few_examples(10, derandomize=True)
@given(generated.mapped_pipelines())
def test_linear_maps(case):
    check_equal(case)


def check_functions(case: generated.Case) -> None:
    """Check that a pipeline of functions is compiled exactly; skip those that are refused."""
    try:
        check_equal(case)
    except ValueError as error:
        refusals = ("gets a sparse matrix", "lines that cross", "divides whole numbers", "do not ascend")
        assert any(reason in str(error) for reason in refusals), error


@few_examples(10, derandomize=True)
@given(function_pipelines())
def test_functions_and_splines(case):
    check_functions(case)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw_case", "count", "check"),
    [
        (generated.bayes_pipelines, 150, check_equal),
        (generated.mapped_pipelines, 150, check_equal),
        (function_pipelines, 300, check_functions),
    ],
)
def test_many_pipelines(draw_case, count, check):
    settings(max_examples=count, derandomize=True, deadline=None)(given(draw_case())(check))()
