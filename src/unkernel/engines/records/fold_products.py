"""Fold products of features into the model, so that the plan does not list each product."""

from __future__ import annotations

from typing import Any

import numpy as np

from unkernel.models import ConjunctionModel, LinearModel
from unkernel.models.decision import Softmax
from unkernel.models.numbering import encode
from unkernel.records.feature_products import remove_products
from unkernel.records.plan import Plan

_MAX_CONJUNCTION_FEATURES = 3


def fold_products(plan: Plan, model: Any) -> tuple[Plan, Any]:
    """Move products of 0/1 features at the end of a plan into the model, if possible."""
    if not isinstance(model, LinearModel) or not _can_fold(model):
        return plan, model
    shorter = remove_products(plan, _MAX_CONJUNCTION_FEATURES)
    if shorter is None:
        return plan, model
    rest, sets = shorter
    return rest, _make_conjunctions(model, sets, len(rest.feature_names))


def _can_fold(model: LinearModel) -> bool:
    """Return whether a model of conjunctions can have this model's rule for predictions."""
    decision = model.decision
    return (
        decision.scheme in ("binary", "one_vs_rest")
        and (decision.probability is None or isinstance(decision.probability, Softmax))
        and not decision.zero_is_positive
        and decision.decides_by_scores
    )


def _make_conjunctions(model: LinearModel, sets: Any, n_features: int) -> ConjunctionModel:
    """Make a model with one weight per set of features; weights of the same set are added."""
    degree = max(1, int((sets >= 0).sum(axis=1).max(initial=1)))
    keys, places = np.unique(encode(sets, degree, sets=True), return_inverse=True)
    weights = np.zeros((len(keys), model.weights.shape[1]))
    np.add.at(weights, places.reshape(-1), model.weights)
    constant = keys == 0
    kept = ~constant & weights.any(axis=1)
    return ConjunctionModel(
        degree=degree,
        sets=True,
        feature_map="plain",
        gamma=1.0,
        coef0=1.0,
        n_features=n_features,
        columns=np.arange(n_features, dtype=np.int64),
        keys=keys[kept],
        weights=np.ascontiguousarray(weights[kept]),
        intercept=model.intercept + weights[constant].sum(axis=0),
        classes=model.decision.classes,
        origin=dict(model.origin),
        probability=Softmax() if model.decision.probability is not None else None,
    )
