"""Make functions that score or classify one row or record with a single call to the core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from unkernel._core import exponential_of_one, sigmoid_of_one, softmax_of_one
from unkernel.models import Decision, Threshold
from unkernel.models.curves import Curves, Sigmoid
from unkernel.models.decision import Softmax
from unkernel.models.several_outputs import MULTI_LABEL, have_signs, list_score_ranges

AnswerOne = Callable[..., Any]  # a function of one row or record


class SingleCalls(Protocol):
    """Makes functions of one row or record; each function calls a scorer in the core once.

    The functions have fixed parameters, because Python calls functions with ``*args`` much more slowly.
    """

    @property
    def score(self) -> AnswerOne:
        """The function that returns the raw scores: a float, or a list of floats."""

    def sum_votes(self, n_classes: int) -> AnswerOne:
        """Make a function that combines the votes and scores of pairs into one number per class."""

    def choose(self, labels: list[Any], zero_is_positive: bool) -> AnswerOne:
        """Make a function that returns the label of the largest score or, for one score, of its sign."""

    def choose_by_pairs(self, labels: list[Any], by_sums: bool) -> AnswerOne:
        """Make a function that returns the label with the most votes of pairs."""

    def convert(self, function: Callable[[Any], Any]) -> AnswerOne:
        """Make a function that applies `function` to the raw scores."""


def make_score_one(calls: SingleCalls, decision: Decision) -> AnswerOne:
    """Return a function that computes the decision function of one row or record."""
    if decision.outputs and (decision.n_scores == 1 or not decision.decides_by_scores):
        return calls.convert(lambda scores: decision.decide(_to_table(scores))[0].tolist())
    if decision.decides_by_scores:
        return calls.score
    if decision.scheme == "one_vs_one":
        return calls.sum_votes(len(decision.classes))
    return calls.convert(lambda scores: decision.decide(_to_table(scores))[0].tolist())


def make_predict_one(calls: SingleCalls, decision: Decision) -> AnswerOne:
    """Return a function that predicts the class or the value of one row or record.

    For several labels or outputs, the function returns a list.
    """
    if decision.outputs:
        return calls.convert(_make_choice_of_outputs(decision))
    if decision.threshold is not None:
        return calls.convert(_make_choice_by_threshold(decision, decision.threshold))
    if decision.chooses_largest:
        return calls.choose(decision.classes.tolist(), bool(decision.zero_is_positive))
    if decision.scheme == "one_vs_one":
        return calls.choose_by_pairs(decision.classes.tolist(), decision.breaks_ties)
    if decision.scheme == "regression":
        return calls.score if decision.link == "identity" else calls.convert(exponential_of_one)
    return calls.convert(lambda scores: decision.choose(_to_table(scores)).tolist()[0])


def make_predict_proba_one(calls: SingleCalls, decision: Decision) -> AnswerOne:
    """Return a function that lists the probabilities of the classes for one row or record.

    For several outputs, the function returns one list for each output.
    """
    if decision.outputs:
        return calls.convert(_make_probabilities_of_outputs(decision))
    return calls.convert(_make_probabilities(decision))


def _make_probabilities(decision: Decision) -> Callable[[Any], list[float]]:
    """Return a function that converts the raw scores of one row or record into class probabilities."""
    probability = decision.probability
    if isinstance(probability, Softmax):
        return softmax_of_one
    if isinstance(probability, Curves) and len(probability.of_scores) == 1 == len(decision.classes) - 1:
        (curve,) = probability.of_scores
        if isinstance(curve, Sigmoid):
            return _make_pair_of_probabilities(curve)
    return lambda scores: decision.probabilities(_to_table(scores))[0].tolist()


def _make_choice_of_outputs(decision: Decision) -> Callable[[Any], list[Any]]:
    """Make the function from the raw scores of one row or record to the predictions of all outputs."""
    if have_signs(decision.outputs) and decision.n_scores > 1:
        return lambda scores: [1 if score > 0 else 0 for score in scores]
    return _make_list_of_answers(decision, _make_choice)


def _make_probabilities_of_outputs(decision: Decision) -> Callable[[Any], list[Any]]:
    """Make the function from the raw scores of one row or record to the probabilities of all outputs."""
    list_probabilities = _make_list_of_answers(decision, _make_probabilities)
    if decision.scheme != MULTI_LABEL:
        return list_probabilities
    return lambda scores: [positive for _, positive in list_probabilities(scores)]


def _make_list_of_answers(
    decision: Decision, make_answer: Callable[[Decision], Callable[[Any], Any]]
) -> Callable[[Any], list[Any]]:
    """Make the function from the raw scores of all outputs to the list of their answers."""
    functions = [make_answer(output) for output in decision.outputs]
    if decision.n_scores == 1:
        (answer,) = functions
        return lambda score: [answer(score)]
    if decision.n_scores == len(functions):
        return lambda scores: [answer(score) for answer, score in zip(functions, scores, strict=True)]
    # An output with a single score gets this score, and the others get lists.
    places = [
        begin if end == begin + 1 else slice(begin, end) for begin, end in list_score_ranges(decision.outputs)
    ]
    return lambda scores: [answer(scores[place]) for answer, place in zip(functions, places, strict=True)]


def _make_choice(decision: Decision) -> Callable[[Any], Any]:
    """Make the function from the raw scores of one row or record to the prediction of a single output."""
    labels = decision.classes.tolist()
    if decision.threshold is not None:
        return _make_choice_by_threshold(decision, decision.threshold)
    if decision.chooses_by_sign:
        if decision.zero_is_positive:
            return lambda score: labels[1 if score >= 0 else 0]
        return lambda score: labels[1 if score > 0 else 0]
    if decision.scheme == "one_vs_rest":
        return lambda scores: labels[scores.index(max(scores))]
    if decision.scheme == "regression":
        return lambda score: score
    return lambda scores: decision.choose(_to_table(scores)).tolist()[0]


def _make_choice_by_threshold(decision: Decision, threshold: Threshold) -> Callable[[Any], Any]:
    """Return a function that converts the raw scores of one row or record into its label."""
    labels, positive, value = decision.classes.tolist(), threshold.positive, threshold.value
    reached, missed = labels[positive], labels[1 - positive]
    if threshold.of == "score":
        sign = 1.0 if positive else -1.0
        return lambda score: reached if sign * score >= value else missed
    probabilities = _make_probabilities(decision)
    return lambda scores: reached if probabilities(scores)[positive] >= value else missed


def _make_pair_of_probabilities(curve: Sigmoid) -> Callable[[float], list[float]]:
    """Return a function that converts one score into the probabilities of two classes, like ``Curves``."""
    a, b = curve.a, curve.b

    def compute_probabilities(score: float) -> list[float]:
        positive = sigmoid_of_one(a * score + b)
        return [1.0 - positive, positive]

    return compute_probabilities


def _to_table(scores: float | list[float]) -> Any:
    """Return the scores of one example as an array of shape (1, n_scores)."""
    return np.array([scores], dtype=np.float64).reshape(1, -1)
