"""Make models from scikit-learn's voting and stacking of linear estimators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from unkernel.models.curves import Curve, Curves
from unkernel.models.decision import Decision, Softmax
from unkernel.models.linear import LinearModel
from unkernel.models.sklearn_ensembles import LOGISTIC, join_scores

# The function ``unkernel.models.sklearn.from_estimator``. Its module imports this one, not the reverse.
FromEstimator = Callable[[Any], Any]


def from_soft_votes(estimator: Any, from_estimator: FromEstimator) -> LinearModel:
    """Return the model of a ``VotingClassifier`` that averages the probabilities of two classes."""
    classes = np.asarray(estimator.classes_)
    weights = [] if estimator.weights is None else list(estimator.weights)
    if estimator.voting != "soft" or any(weight != weights[0] for weight in weights):
        raise ValueError(
            "VotingClassifier is supported with voting='soft' and equal weights only: a model averages the "
            "probabilities of its classifiers"
        )
    if len(classes) > 2:
        raise ValueError(
            f"VotingClassifier of {len(classes)} classes is not supported; give it two classes, or take one "
            "of its classifiers"
        )
    members = _read_members(estimator, estimator.estimators_, from_estimator)
    curves: list[Curve] = []
    for member in members:
        probability = member.decision.probability
        if isinstance(probability, Softmax):
            curves.append(LOGISTIC)
        elif isinstance(probability, Curves) and len(probability.of_scores) == 1:
            curves += probability.of_scores
        else:
            raise ValueError(
                "a classifier inside VotingClassifier averages probabilities itself, which is not supported; "
                "give linear classifiers such as LogisticRegression"
            )
    return join_scores(members, Decision("calibrated", classes, probability=Curves(curves)), estimator)


def from_mean(estimator: Any, from_estimator: FromEstimator) -> LinearModel:
    """Return the model of a ``VotingRegressor``, which averages the values of linear regressions."""
    members = _read_members(estimator, estimator.estimators_, from_estimator)
    shares = np.ones(len(members))
    if estimator.weights is not None:
        used = [member != "drop" for _, member in estimator.estimators]
        shares = np.asarray(estimator.weights, dtype=np.float64)[used]
    mean = replace(members[0], intercept=np.zeros(1))
    return _put_on_top(members, (shares / shares.sum())[:, None], mean, estimator)


def from_stacking(estimator: Any, from_estimator: FromEstimator) -> LinearModel:
    """Return the model of a ``StackingClassifier`` or ``StackingRegressor`` of linear estimators.

    The result is linear, because linear functions of linear scores are linear.
    """
    name = type(estimator).__name__
    if any(method == "predict_proba" for method in estimator.stack_method_):
        raise ValueError(
            f"{name} on probabilities is not supported, because they are not linear; fit it with "
            "stack_method='decision_function'"
        )
    members = _read_members(estimator, estimator.estimators_, from_estimator)
    (final,) = _read_members(estimator, [estimator.final_estimator_], from_estimator)
    if name == "StackingClassifier":
        decision = replace(final.decision, classes=np.asarray(estimator.classes_))
        final = replace(final, decision=decision)
    return _put_on_top(members, final.weights, final, estimator)


def _read_members(
    estimator: Any, inner_estimators: Sequence[Any], from_estimator: FromEstimator
) -> list[LinearModel]:
    members = []
    for inner in inner_estimators:
        model = inner.to_model() if hasattr(inner, "to_model") else from_estimator(inner)
        decision = model.decision
        if not isinstance(model, LinearModel) or not (
            decision.decides_by_scores and decision.link == "identity" and not decision.outputs
        ):
            raise ValueError(
                f"{type(estimator).__name__} of {type(inner).__name__} is not supported; give linear models"
            )
        members.append(model)
    return members


def _put_on_top(
    members: Sequence[LinearModel], coefficients: Any, final: LinearModel, estimator: Any
) -> LinearModel:
    """Return the model that computes `final` from the scores of the members.

    If there are more coefficients than scores (``passthrough=True``), the others belong to the features.
    """
    weights = np.hstack([member.weights for member in members])
    intercept = np.concatenate([member.intercept for member in members])
    n_scores = len(intercept)
    total = weights @ coefficients[:n_scores]
    if len(coefficients) > n_scores:
        total += coefficients[n_scores:]
    return replace(
        final,
        weights=np.ascontiguousarray(total),
        intercept=final.intercept + intercept @ coefficients[:n_scores],
        n_features=len(total),
        origin=dict(final.origin) | {"estimator": type(estimator).__name__},
    )
