"""Find the model in a source of ``compile``: a path, a model, or an object that can be converted."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np

from unkernel.engines.records.calibrated_pipelines import is_calibrated_pipeline, move_calibration_last
from unkernel.models import ConjunctionModel, KernelModel, LinearModel, TreeModel
from unkernel.models.several_outputs import MULTI_OUTPUT
from unkernel.models.sklearn_thresholds import get_inner, has_threshold, replace_inner
from unkernel.records.sklearn.boosting_machines import is_boosting_machine

Model = KernelModel | LinearModel | ConjunctionModel


def find_model(source: Any) -> Model | TreeModel:
    """Return the model of a source: a path, a model or an estimator."""
    if isinstance(source, str | os.PathLike):
        from unkernel.models.formats import read_model

        return read_model(source)
    model = source.to_model() if hasattr(source, "to_model") else source
    if isinstance(model, KernelModel | LinearModel | ConjunctionModel | TreeModel):
        return model
    if hasattr(model, "parts_"):
        raise TypeError(f"the classifiers of a {type(source).__name__} are compiled already: use it as it is")
    from unkernel.models.sklearn import from_estimator

    return from_estimator(source)


def replace_classes(model: Model | TreeModel, classes: Any) -> Any:
    """Return a model with ``classes[k]`` in place of class k; None keeps the classes."""
    if classes is None:
        return model
    if model.decision.scheme == MULTI_OUTPUT:
        raise ValueError("classes replace the labels of a single output, and the model has several outputs")
    named = _map_labels(np.asarray(getattr(classes, "classes_", classes)), model.decision.classes)
    if isinstance(model, ConjunctionModel):
        ranking = None if model.ranking is None else replace(model.ranking, classes=named)
        return replace(model, classes=named, ranking=ranking)
    return replace(model, decision=replace(model.decision, classes=named))


def _map_labels(names: Any, labels: Any) -> Any:
    """Return ``names[label]`` for each label; ValueError unless the labels are indices of unique names."""
    if names.ndim != 1 or len(np.unique(names)) != len(names):
        raise ValueError(
            "classes must be a fitted LabelEncoder or MultiLabelBinarizer, or a list of different labels"
        )
    if labels.dtype.kind not in "iu" or not len(labels):
        raise ValueError("classes replace the labels 0, 1, ... of a classifier, and the model has others")
    if labels.min() < 0 or labels.max() >= len(names):
        raise ValueError(f"the model has the label {labels.max()}, and there are {len(names)} classes")
    return names[labels]


def find_pipeline(source: Any) -> Any:
    """Return the pipeline in `source`, or the best pipeline of a search; None if there is none.

    An estimator that has chosen a pipeline stores it in ``pipeline_``. An Explainable Boosting Machine
    encodes its records itself, and is returned as a pipeline of one step. If a ``CalibratedClassifierCV`` or
    a classifier with a threshold contains pipelines, the result is a pipeline that ends with this classifier.
    """
    names = {kind.__name__ for kind in type(source).__mro__ if kind.__module__.startswith("sklearn.")}
    if "BaseSearchCV" in names and hasattr(source, "best_estimator_"):
        return find_pipeline(source.best_estimator_)
    if hasattr(source, "pipeline_"):
        return source.pipeline_
    if is_boosting_machine(source):
        from sklearn.pipeline import Pipeline

        return Pipeline([("machine", source)])
    if has_threshold(source):
        inner = find_pipeline(get_inner(source))
        return None if inner is None else _move_threshold_last(source, inner)
    if "CalibratedClassifierCV" in names and is_calibrated_pipeline(source):
        return move_calibration_last(source)
    return source if "Pipeline" in names else None


def _move_threshold_last(wrapper: Any, pipeline: Any) -> Any:
    """Return a pipeline with the predictions of a classifier with a threshold around it."""
    from sklearn.pipeline import Pipeline

    *transformers, (_, last) = pipeline.steps
    return Pipeline([*transformers, ("threshold", replace_inner(wrapper, last))])
