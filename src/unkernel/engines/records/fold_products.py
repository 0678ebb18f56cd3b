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
    shortened = remove_products(plan, _MAX_CONJUNCTION_FEATURES)
    if shortened is None:
        return plan, model
    plan_without_products, sets = shortened
    n_features = len(plan_without_products.feature_names)
    return plan_without_products, _make_conjunctions(model, sets, n_features)


def _can_fold(model: LinearModel) -> bool:
    """Return whether models of conjunctions support the decision of this model."""
    decision = model.decision
    return (
        decision.scheme in ("binary", "one_vs_rest")
        and (decision.probability is None or isinstance(decision.probability, Softmax))
        and not decision.zero_is_positive
        and decision.decides_by_scores
    )


def _make_conjunctions(model: LinearModel, sets: Any, n_features: int) -> ConjunctionModel:
    """Make a model with one weight per set of features, the sum of the weights of all products of the set."""
    degree = max(1, int((sets >= 0).sum(axis=1).max(initial=1)))
    keys, key_of_set = np.unique(encode(sets, degree, sets=True), return_inverse=True)
    weights = np.zeros((len(keys), model.weights.shape[1]))
    np.add.at(weights, key_of_set.reshape(-1), model.weights)
    is_constant = keys == 0
    is_kept = ~is_constant & weights.any(axis=1)
    return ConjunctionModel(
        degree=degree,
        sets=True,
        feature_map="plain",
        gamma=1.0,
        coef0=1.0,
        n_features=n_features,
        columns=np.arange(n_features, dtype=np.int64),
        keys=keys[is_kept],
        weights=np.ascontiguousarray(weights[is_kept]),
        intercept=model.intercept + weights[is_constant].sum(axis=0),
        classes=model.decision.classes,
        origin=dict(model.origin),
        probability=Softmax() if model.decision.probability is not None else None,
    )
