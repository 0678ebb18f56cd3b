"""Fold linear maps, such as a PCA, into the weights of the model; the plan then need not apply them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unkernel.models import LinearModel
from unkernel.records.sklearn.linear_maps import Transformers, compose_linear_maps


def fold_linear_maps(maps: Transformers, model: LinearModel) -> LinearModel:
    """Return a model whose scores equal those of a linear model after the linear maps."""
    matrix, offset = compose_linear_maps(maps)
    return replace(
        model,
        weights=np.ascontiguousarray(matrix @ model.weights),
        intercept=model.intercept + offset @ model.weights,
        n_features=len(matrix),
    )
