"""Replace products of features by conjunctions in the model; the plan then need not list each product."""

from __future__ import annotations

from typing import Any

from unkernel.models import LinearModel
from unkernel.models.decision import Softmax
from unkernel.models.feature_sets import make_set_model
from unkernel.records.feature_products import remove_products
from unkernel.records.plan import Plan

_MAX_CONJUNCTION_FEATURES = 3


def fold_products(plan: Plan, model: Any) -> tuple[Plan, Any]:
    """Return the plan and the model with final products of 0/1 features moved to the model, if possible."""
    if not isinstance(model, LinearModel) or not _can_fold(model):
        return plan, model
    shortened = remove_products(plan, _MAX_CONJUNCTION_FEATURES)
    if shortened is None:
        return plan, model
    plan_without_products, sets = shortened
    return plan_without_products, make_set_model(
        sets,
        model.weights,
        model.intercept,
        len(plan_without_products.feature_names),
        classes=model.decision.classes,
        origin=dict(model.origin),
        probability=Softmax() if model.decision.probability is not None else None,
        threshold=model.decision.threshold,
    )


def _can_fold(model: LinearModel) -> bool:
    """Return whether a model of conjunctions can have the decision of this model."""
    decision = model.decision
    return (
        decision.scheme in ("binary", "one_vs_rest")
        and (decision.probability is None or isinstance(decision.probability, Softmax))
        and not decision.zero_is_positive
        and decision.decides_by_scores
    )
