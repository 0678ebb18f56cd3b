"""The ``int16`` engine: weights of pairs of features in 16 bits each, as trained by online learners.

The engine is built in memory from the arrays of the model. Files store no tables for it.
"""

from __future__ import annotations

import numpy as np

from unkernel._core import fits_int16
from unkernel.engines.tables.compiled_tables import INT16, Tables, describe_map
from unkernel.models import ConjunctionModel, KernelModel, LinearModel


def find_int16_obstacle(model: KernelModel | LinearModel | ConjunctionModel) -> str | None:
    """Return the requirement that a model does not meet, as a part of a message; None if it meets all."""
    if isinstance(model, KernelModel):
        return "weights of pairs, and this model has support vectors"
    if isinstance(model, LinearModel):
        return "weights of pairs, and this model is linear"
    if model.degree != 2 or not model.sets:
        return f"pairs of binary features, and this model is of degree {model.degree}" + (
            "" if model.sets else ", over features with values"
        )
    if len(model.intercept) < 2:
        return "at least two scores, and this model has one"
    if not fits_int16(model.intercept, model.weights.reshape(-1)):
        return (
            "weights that are multiples of one power of two in 16 bits, and the weights of this model are not"
        )
    return None


def build_int16(model: KernelModel | LinearModel | ConjunctionModel, *, fits: bool = False) -> Tables:
    """Build the tables of the ``int16`` engine; raise a ``ValueError`` if it cannot represent the model.

    ``fits=True`` skips :func:`find_int16_obstacle`, which must examine all weights.
    """
    obstacle = None if fits else find_int16_obstacle(model)
    if obstacle is not None:
        raise ValueError(f"engine='int16' needs {obstacle}; use engine='auto'")
    assert isinstance(model, ConjunctionModel)
    parameters = describe_map(model.sets, model.degree, model.feature_map, model.gamma, model.coef0)
    arrays = {
        "features": np.array([model.n_features], np.int64),
        "columns": model.columns,
        "keys": model.keys,
        "weights": model.weights,
        "constants": model.intercept,
    }
    return Tables(INT16, parameters, {}, arrays)
