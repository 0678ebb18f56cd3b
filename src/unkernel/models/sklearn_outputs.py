"""Make models of several labels or outputs from scikit-learn's estimators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.models import sklearn_ensembles
from unkernel.models.conjunction import ConjunctionModel
from unkernel.models.curves import Curves, Interpolated
from unkernel.models.decision import Decision
from unkernel.models.kernel import KernelModel
from unkernel.models.linear import LinearModel
from unkernel.models.several_outputs import MULTI_LABEL, MULTI_OUTPUT
from unkernel.models.sklearn_ensembles import FromEstimator, Model, join_models
from unkernel.models.threshold import Threshold

CHAINS = ("ClassifierChain", "RegressorChain")


def from_one_vs_rest(estimator: Any, from_estimator: FromEstimator) -> Model:
    """Return the model of a ``OneVsRestClassifier``, fitted on classes or on several labels per row."""
    if not estimator.multilabel_:
        return sklearn_ensembles.from_one_vs_rest(estimator, from_estimator)
    is_constant = [type(inner).__name__ == "_ConstantPredictor" for inner in estimator.estimators_]
    # scikit-learn takes the smallest score of all labels from the first estimator: 0, but 0.5 if all training
    # rows have the first label, or none has it, because there is no classifier for such a label.
    threshold = Threshold(float(np.nextafter(0.5, 1.0)), 1, "score") if is_constant[0] else None
    read = {
        number: _read_label(inner, threshold, from_estimator)
        for number, inner in enumerate(estimator.estimators_)
        if not is_constant[number]
    }
    if not read:
        raise ValueError("OneVsRestClassifier has only labels of all rows or none: there is nothing to score")
    first = next(iter(read.values()))
    members = [
        read[number] if number in read else _make_constant_label(first, float(inner.y_[0]))
        for number, inner in enumerate(estimator.estimators_)
    ]
    decisions = tuple(member.decision for member in members)
    decision = Decision(MULTI_LABEL, np.asarray(estimator.classes_), outputs=decisions)
    return _join(members, decision, estimator)


def from_multi_output(estimator: Any, from_estimator: FromEstimator) -> Model:
    """Return the model of a ``MultiOutputClassifier`` or ``MultiOutputRegressor``."""
    members = [_read_output(inner, estimator, from_estimator) for inner in estimator.estimators_]
    decisions = tuple(member.decision for member in members)
    decision = Decision(MULTI_OUTPUT, np.empty(0, dtype=np.int64), outputs=decisions)
    return _join(members, decision, estimator)


def refuse_chain(estimator: Any, from_estimator: FromEstimator) -> Model:
    """Raise a ``ValueError`` for a chain, whose members see each other's predictions."""
    name = type(estimator).__name__
    whole = "MultiOutputClassifier" if name == "ClassifierChain" else "MultiOutputRegressor"
    raise ValueError(
        f"{name} is not supported: each of its estimators takes the predictions of the ones before it as "
        f"features; give {whole}, which fits one for each output"
    )


def make_linear_decision(estimator: Any, n_outputs: int) -> Decision | None:
    """Return the decision of a linear estimator that was fitted on several outputs, otherwise None."""
    binarizer = getattr(estimator, "_label_binarizer", None)  # of RidgeClassifier
    if binarizer is not None and str(binarizer.y_type_).startswith("multilabel"):
        label = Decision("binary", np.array([0, 1]))
        return Decision(MULTI_LABEL, np.asarray(estimator.classes_), outputs=(label,) * n_outputs)
    if hasattr(estimator, "classes_") or np.ndim(estimator.coef_) < 2:
        return None
    number = Decision("regression", np.empty(0, dtype=np.int64))
    return Decision(MULTI_OUTPUT, np.empty(0, dtype=np.int64), outputs=(number,) * n_outputs)


# --- The estimators inside ----------------------------------------------------------------------------


def _read_label(inner: Any, threshold: Threshold | None, from_estimator: FromEstimator) -> Model:
    """Return the model of one label's classifier."""
    name = type(inner).__name__
    model = _read_model(inner, "OneVsRestClassifier", from_estimator)
    if model.decision.scheme not in ("binary", "calibrated") or len(model.classes) != 2:
        raise ValueError(
            f"OneVsRestClassifier of {name} is not supported; give a support vector machine or a linear "
            "classifier"
        )
    # scikit-learn ignores the thresholds of the classifiers inside, and of scores of 0.
    if not hasattr(inner, "decision_function"):
        threshold = None
    decision = replace(model.decision, classes=np.array([0, 1]), threshold=threshold, zero_is_positive=False)
    return _replace_decision(model, decision)


def _read_output(inner: Any, whole: Any, from_estimator: FromEstimator) -> Model:
    """Return the model of one output's estimator."""
    return _read_model(inner, type(whole).__name__, from_estimator)


def _read_model(inner: Any, whole: str, from_estimator: FromEstimator) -> Model:
    name = type(inner).__name__
    if name == "Pipeline":
        raise ValueError(
            f"{whole} around a Pipeline is not supported; put it at the end of the pipeline: "
            f"make_pipeline(..., {whole}(LinearSVC()))"
        )
    model = inner.to_model() if hasattr(inner, "to_model") else from_estimator(inner)
    if not isinstance(model, Model) or model.decision.outputs or model.decision.ranking:
        raise ValueError(f"{whole} of {name} is not supported; give an estimator of one target of rows")
    return model


def _replace_decision(model: Model, decision: Decision) -> Model:
    if not isinstance(model, ConjunctionModel):
        return replace(model, decision=decision)
    return replace(model, classes=decision.classes, threshold=decision.threshold)


def _make_constant_label(like: Model, value: float) -> Model:
    """Return a model of the kind of `like` for a label of all training rows (1) or of none (0)."""
    has_probability = like.decision.probability is not None
    curve = Interpolated(np.zeros(1), np.array([value]))
    probability = Curves([curve]) if has_probability else None
    intercept = np.array([value])
    if isinstance(like, ConjunctionModel):
        return replace(
            like,
            columns=like.columns[:0],
            keys=like.keys[:0],
            weights=np.zeros((0, 1)),
            intercept=intercept,
            probability=probability,
            calibrated=False,
            curvatures=None,
            slopes=None,
        )
    decision = Decision("binary", np.array([0, 1]), probability=probability)
    if isinstance(like, LinearModel):
        weights = np.zeros((like.n_features, 1))
        return replace(like, weights=weights, intercept=intercept, decision=decision)
    coefficients = np.zeros((0, 1))
    return replace(
        like, vectors=like.vectors[:0], coefficients=coefficients, intercept=intercept, decision=decision
    )


# --- Joining ------------------------------------------------------------------------------------------


def _join(members: Sequence[Model], decision: Decision, estimator: Any) -> Model:
    model = join_models(members, decision, estimator)
    if not isinstance(model, KernelModel):
        return model
    rows = [getattr(inner, "support_", np.empty(0, dtype=np.int64)) for inner in estimator.estimators_]
    return _merge_vectors(model, np.concatenate(rows))


def _merge_vectors(model: KernelModel, training_rows: NDArray[Any]) -> KernelModel:
    """Return a model that stores the support vectors of several outputs once, given their training rows."""
    vectors = model.vectors
    if len(training_rows) != vectors.shape[0]:
        return model
    _, first, inverse = np.unique(training_rows, return_index=True, return_inverse=True)
    merged = vectors[first]
    repeated = merged[inverse]
    if not all(
        np.array_equal(getattr(repeated, name), getattr(vectors, name))
        for name in ("indptr", "indices", "data")
    ):
        return model
    coefficients = np.zeros((len(first), model.n_scores))
    np.add.at(coefficients, inverse, np.asarray(model.coefficients))
    return replace(model, vectors=merged, coefficients=coefficients)
