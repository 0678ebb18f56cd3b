"""What ``compile`` takes: a path, a model, or anything that can be turned into a model."""

from __future__ import annotations

import os
from typing import Any

from unkernel.models import ConjunctionModel, KernelModel, LinearModel, TreeModel

Model = KernelModel | LinearModel | ConjunctionModel


def model_of(source: Any) -> Model | TreeModel:
    """The plain model behind a path, a model or an estimator."""
    if isinstance(source, str | os.PathLike):
        from unkernel.models.formats import read_model

        return read_model(source)
    if isinstance(source, KernelModel | LinearModel | ConjunctionModel | TreeModel):
        return source
    if hasattr(source, "to_model"):
        found: Model | TreeModel = source.to_model()
        return found
    from unkernel.models.sklearn import from_estimator

    return from_estimator(source)


def pipeline_of(source: Any) -> Any:
    """The pipeline that `source` is, or that a search found; None if there is none."""
    names = {kind.__name__ for kind in type(source).__mro__ if kind.__module__.startswith("sklearn.")}
    if "BaseSearchCV" in names and hasattr(source, "best_estimator_"):
        return pipeline_of(source.best_estimator_)
    return source if "Pipeline" in names else None
