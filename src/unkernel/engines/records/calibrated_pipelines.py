"""Rewrite a ``CalibratedClassifierCV`` of pipelines as a pipeline that ends with the calibration."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np


def is_calibrated_pipeline(estimator: Any) -> bool:
    """Return whether an estimator is a fitted ``CalibratedClassifierCV`` of pipelines."""
    parts = getattr(estimator, "calibrated_classifiers_", ())
    return bool(parts) and all(_is_pipeline(_get_inner(part)) for part in parts)


def move_calibration_last(calibrated: Any) -> Any:
    """Return a pipeline that predicts the same as a ``CalibratedClassifierCV`` of pipelines.

    A single pipeline keeps its transformers. If there are several pipelines, one per fold, their transformers
    form a union, and each classifier has weights only for the features of its own fold.

    Raises
    ------
    ValueError
        If there are several pipelines, and a last step is not linear or a first step is a RecordEncoder.
    """
    from sklearn.pipeline import FeatureUnion, Pipeline

    pipelines = [_get_inner(part) for part in calibrated.calibrated_classifiers_]
    last_steps = [pipeline.steps[-1][1] for pipeline in pipelines]
    if len(pipelines) == 1:
        steps = pipelines[0].steps[:-1]
    elif any(hasattr(pipeline.steps[0][1], "plan_") for pipeline in pipelines):
        raise ValueError(
            "CalibratedClassifierCV of pipelines that begin with a RecordEncoder is not supported, because "
            "each fold has its own: fit it with ensemble=False"
        )
    else:
        folds = [(f"fold {number}", pipeline[:-1]) for number, pipeline in enumerate(pipelines)]
        last_steps = _widen(last_steps)
        steps = [("folds", FeatureUnion(folds))]
    moved = copy(calibrated)
    moved.calibrated_classifiers_ = []
    for part, last in zip(calibrated.calibrated_classifiers_, last_steps, strict=True):
        own_part = copy(part)
        own_part.estimator = last
        moved.calibrated_classifiers_.append(own_part)
    return Pipeline([*steps, ("calibrated", moved)])


def _get_inner(part: Any) -> Any:
    inner = part.estimator
    return inner.estimator if type(inner).__name__ == "FrozenEstimator" else inner


def _is_pipeline(estimator: Any) -> bool:
    return type(estimator).__name__ == "Pipeline" and len(estimator.steps) > 1


def _widen(classifiers: Sequence[Any]) -> list[Any]:
    """Return copies of linear classifiers that take all features, with zero weights for those of others."""
    for classifier in classifiers:
        if not hasattr(classifier, "coef_"):
            raise ValueError(
                f"CalibratedClassifierCV of pipelines that end with {type(classifier).__name__} is not "
                "supported: fit it with ensemble=False, or give the pipelines a linear classifier"
            )
    weights = [np.atleast_2d(np.asarray(_to_dense(classifier.coef_))) for classifier in classifiers]
    ends = np.cumsum([own.shape[1] for own in weights])
    widened = []
    for classifier, own, end in zip(classifiers, weights, ends.tolist(), strict=True):
        wide = copy(classifier)
        wide.coef_ = np.zeros((len(own), int(ends[-1])))
        wide.coef_[:, end - own.shape[1] : end] = own
        wide.n_features_in_ = int(ends[-1])
        vars(wide).pop("feature_names_in_", None)
        widened.append(wide)
    return widened


def _to_dense(weights: Any) -> Any:
    return weights.toarray() if hasattr(weights, "toarray") else weights
