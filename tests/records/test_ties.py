"""Scores at the boundary between two classes, and scores derived from scores of the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, OneClassSVM

import unkernel
from unkernel.engines.records.classifier import RecordClassifier
from unkernel.engines.records.pipeline_check import check_answers
from unkernel.models import Decision, LinearModel
from unkernel.records import Plan, steps

PLAN = Plan(["a", "b"], [steps.numbers([0, 1], ["a", "b"])], required=True)
TINY = 1e-12


def linear(decision: Decision, weights: Any) -> RecordClassifier:
    """Return a classifier of two numbers with these weights."""
    weights = np.array(weights, dtype=np.float64).reshape(2, -1)
    model = LinearModel(weights, np.zeros(weights.shape[1]), decision, 2, True, {})
    return RecordClassifier(PLAN, unkernel.compile(model, measure=False))


# --- A score of exactly 0 ------------------------------------------------------------------------------


@pytest.mark.parametrize(("zero_is_positive", "answer"), [(True, "yes"), (False, "no")])
def test_the_model_determines_the_class_of_a_zero_score(zero_is_positive: bool, answer: str) -> None:
    decision = Decision("binary", np.array(["no", "yes"]), zero_is_positive=zero_is_positive)
    fast = linear(decision, [1.0, -1.0])
    bound = fast.bind({"a": 3.0})
    for record, expected in (
        ({"a": 3.0, "b": 3.0}, answer),
        ({"a": 3.0, "b": 3.0 - 1e-9}, "yes"),
        ({"a": 3.0, "b": 3.0 + 1e-9}, "no"),
    ):
        assert fast.predict_one(record) == expected
        assert fast.predict([record]).tolist() == [expected]
        assert bound.predict_one({"b": record["b"]}) == expected
    assert fast.score_one({"a": 0.0, "b": 0.0}) == 0.0
    assert fast.predict_one({"a": 0.0, "b": 0.0}) == answer  # a row without features


def test_the_first_of_equal_classes_wins() -> None:
    fast = linear(Decision("one_vs_rest", np.array([7, 8, 9])), [[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]])
    for a, expected in ((1.0, 8), (0.0, 7), (-1.0, 7)):
        record = {"a": a, "b": 5.0}
        assert fast.predict_one(record) == fast.predict([record])[0] == expected


def test_a_score_equal_to_a_threshold_means_the_lower_class() -> None:
    fast = linear(Decision("ordinal", np.array([1, 2, 3]), thresholds=np.array([0.0, 2.0])), [1.0, 0.0])
    for a, expected in ((-1.0, 1), (0.0, 1), (1e-9, 2), (2.0, 2), (2.5, 3)):
        record = {"a": a, "b": 1.0}
        assert fast.predict_one(record) == fast.predict([record])[0] == expected
        assert fast.score_one(record) == fast.decision_function([record])[0] == a


# --- Derived scores ------------------------------------------------------------------------------------

RNG = np.random.default_rng(2)
X = RNG.normal(size=(60, 3))
THREE = np.array(["x", "y", "z"])[np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.5])]
TWO = (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (SVC(kernel="poly", degree=2, coef0=1, gamma=0.5), THREE),
        (SVC(kernel="poly", degree=2, coef0=1, gamma=0.5, break_ties=True), THREE),
        (SVC(kernel="linear", decision_function_shape="ovo"), THREE),
        (SVC(kernel="linear"), TWO),
        (CalibratedClassifierCV(LinearSVC(), cv=2), THREE),
        (CalibratedClassifierCV(LinearSVC(), cv=2, method="isotonic"), TWO),
        (CalibratedClassifierCV(LinearSVC(), cv=2, ensemble=False), TWO),
        (OneClassSVM(gamma=0.5), None),
    ],
    ids=["ovr", "ties", "ovo", "two", "calibrated", "isotonic", "no ensemble", "one class"],
)
def test_score_one_equals_decision_function(estimator: Any, y: Any) -> None:
    pipeline = make_pipeline(StandardScaler(), estimator).fit(X, y)
    fast = unkernel.compile(pipeline, measure=False)
    scores = fast.decision_function(X)
    scores_of_pipeline = getattr(pipeline, "decision_function", None) or pipeline.predict_proba
    np.testing.assert_allclose(scores, scores_of_pipeline(X), rtol=1e-9, atol=1e-12)
    for row, expected, label in zip(X.tolist(), scores, pipeline.predict(X), strict=True):
        score = fast.score_one(row)
        assert np.shape(score) == np.shape(expected)
        np.testing.assert_allclose(score, expected, rtol=1e-9, atol=1e-12)
        assert fast.predict_one(row) == label


# --- Comparing with a pipeline -------------------------------------------------------------------------


class Answers:
    """A pipeline with these scores and predictions."""

    def __init__(self, scores: Any, answers: Any) -> None:
        self._scores, self._answers = np.array(scores, dtype=float), np.array(answers)

    def decision_function(self, _: Any) -> NDArray[np.float64]:
        return self._scores

    def predict(self, _: Any) -> NDArray[Any]:
        return self._answers


BINARY = Decision("binary", np.array([0, 1]))
MANY = Decision("one_vs_rest", np.array([0, 1, 2]))
PAIRS = Decision("one_vs_one", np.array([0, 1, 2]))
SAMPLE = np.array([[1.0, 0.0], [0.0, 1.0]])


@pytest.mark.parametrize(
    ("decision", "weights", "scores", "answers", "answers_after_tie"),
    [
        (BINARY, [-TINY, 1.0], [TINY, 1.0], [0, 1], [1, 1]),
        (MANY, [[1.0, 1.0 - TINY, 0.0], [2.0, 0.0, 0.0]], [[1, 1, 0], [2, 0, 0]], [0, 0], [1, 0]),
        (PAIRS, [[TINY, 5.0, 1.0], [3.0, 2.0, 1.0]], [[-TINY, 5, 1], [3, 2, 1]], [0, 0], [1, 0]),
    ],
    ids=["binary", "one_vs_rest", "one_vs_one"],
)
def test_a_tie_on_the_sample_is_no_error(
    decision: Decision, weights: Any, scores: Any, answers: Any, answers_after_tie: Any
) -> None:
    fast = linear(decision, weights)
    assert fast.predict(SAMPLE).tolist() == answers
    check_answers(fast, Answers(scores, answers), SAMPLE)
    check_answers(fast, Answers(scores, answers_after_tie), SAMPLE)
    with pytest.raises(ValueError, match=r"answers .* and the pipeline .* for record 1 of the sample"):
        check_answers(fast, Answers(scores, [answers[0], 1 - answers[1]]), SAMPLE)


@pytest.mark.parametrize(
    ("decision", "weights", "answers"),
    [
        (BINARY, [1e-6, -1.0], [0, 0]),
        (MANY, [[1.0, 1.0 - 1e-6, 0.0], [2.0, 0.0, 0.0]], [1, 0]),
        (PAIRS, [[1e-6, 5.0, 1.0], [3.0, 2.0, 1.0]], [1, 0]),
    ],
    ids=["binary", "one_vs_rest", "one_vs_one"],
)
def test_a_small_difference_is_an_error(decision: Decision, weights: Any, answers: Any) -> None:
    fast = linear(decision, weights)
    scores = fast.decision_function(SAMPLE)
    check_answers(fast, Answers(scores, fast.predict(SAMPLE)), SAMPLE)
    with pytest.raises(ValueError, match="for record 0 of the sample"):
        check_answers(fast, Answers(scores, answers), SAMPLE)
    with pytest.raises(ValueError, match="scores of the compiled pipeline differ"):
        check_answers(fast, Answers(scores + 1e-7, fast.predict(SAMPLE)), SAMPLE)
