"""Compose PCA and TruncatedSVD before a linear model; the model's weights are multiplied by the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.records.sklearn.plan_builder import class_names
from unkernel.records.sklearn.supported_steps import TRANSFORMERS, check_parameters

LINEAR_MAPS = ("PCA", "TruncatedSVD")
_SCALERS = ("StandardScaler", "RobustScaler", "MaxAbsScaler", "MinMaxScaler")

Transformers = Sequence[tuple[str, Any]]
Matrix = NDArray[np.float64]


def split_linear_maps(transformers: Transformers) -> tuple[Transformers, Transformers]:
    """Divide the steps of a pipeline into steps of the plan, and maps to fold into the model's weights.

    The maps begin with a PCA or TruncatedSVD, followed only by scalers and selections. If any other step
    follows, there are no maps.
    """
    first = len(transformers)
    for place in range(len(transformers) - 1, -1, -1):
        transformer = transformers[place][1]
        if not _is_affine(transformer):
            break
        if _get_name(transformer) in LINEAR_MAPS:
            first = place
    return transformers[:first], transformers[first:]


def compose_linear_maps(maps: Transformers) -> tuple[Matrix, NDArray[np.float64]]:
    """Return the matrix and the offset of a sequence of maps.

    If a PCA comes first, its means are not in the offset: the plan subtracts them, because an offset would
    make large numbers cancel.
    """
    matrix, offset = np.empty((0, 0)), np.zeros(0)
    for place, (name, transformer) in enumerate(maps):
        if transformer in (None, "passthrough"):
            continue
        check_parameters(transformer, f"{name!r} ({type(transformer).__name__})")
        if place == 0:
            matrix = _get_directions(transformer)
            offset = np.zeros(matrix.shape[1])
        else:
            matrix, offset = _append(transformer, matrix, offset)
    return matrix, offset


def _get_name(transformer: Any) -> str:
    name = type(transformer).__name__
    return name if name in class_names(transformer) else ""


def _is_affine(transformer: Any) -> bool:
    """Return whether a transformer multiplies rows by a matrix and adds a constant, or does nothing."""
    if transformer in (None, "passthrough"):
        return True
    name = _get_name(transformer)
    if name in _SCALERS:
        return not getattr(transformer, "clip", False)
    is_selector = name in TRANSFORMERS and TRANSFORMERS[name].module == "sklearn.feature_selection"
    return name in LINEAR_MAPS or is_selector


def _get_directions(transformer: Any) -> Matrix:
    """Return the matrix of a PCA or TruncatedSVD, one column per component."""
    directions = np.array(transformer.components_, dtype=np.float64).T
    if getattr(transformer, "whiten", False):
        deviations = np.sqrt(np.asarray(transformer.explained_variance_, dtype=np.float64))
        directions /= np.maximum(deviations, np.finfo(np.float64).eps)
    return directions


def _append(transformer: Any, matrix: Matrix, offset: Matrix) -> tuple[Matrix, Matrix]:
    """Return the map that applies a transformer to the results of another map."""
    name = _get_name(transformer)
    if name in LINEAR_MAPS:
        centred = offset - transformer.mean_ if name == "PCA" else offset
        directions = _get_directions(transformer)
        return matrix @ directions, centred @ directions
    if name == "MinMaxScaler":
        return matrix * transformer.scale_, offset * transformer.scale_ + transformer.min_
    if name in _SCALERS:
        center: Any = getattr(transformer, "mean_" if name == "StandardScaler" else "center_", None)
        is_centred = getattr(transformer, "with_mean", getattr(transformer, "with_centering", False))
        scale = 1.0 if transformer.scale_ is None else transformer.scale_
        return matrix / scale, (offset - center if is_centred else offset) / scale
    selected = np.asarray(transformer.get_support())
    return matrix[:, selected], offset[selected]
