"""Compute the exact contribution of each conjunction of a row to its scores, whatever the engine."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from unkernel._core import ConjunctionLookup, RowContributions
from unkernel.data.rows.csr import CsrRows
from unkernel.engines.tables import builders
from unkernel.engines.tables.builders import Head, Machine, is_linear_of_pairs, simplify
from unkernel.engines.tables.compiled_tables import ConjunctionWeights, describe_map, make_map_arguments
from unkernel.models import ConjunctionModel, KernelModel, LinearModel
from unkernel.models.pair_coefficients import PairCoefficients

Model = KernelModel | LinearModel | ConjunctionModel
_MAX_CONJUNCTIONS = 5_000_000
Split = Callable[[NDArray[np.int64], NDArray[np.float64]], RowContributions]


def make_split(model: Model) -> Split:
    """Return a function of distinct columns of a row and their values that computes its contributions.

    Work that all rows share is done once.
    """
    model = simplify(model)
    if isinstance(model, LinearModel):
        return partial(_split_linear_scores, model)
    if isinstance(model, ConjunctionModel):
        return _make_lookup(model).find
    return partial(_split_kernel_scores, model)


def _make_lookup(model: ConjunctionModel) -> ConjunctionLookup:
    parameters = describe_map(model.sets, model.degree, model.feature_map, model.gamma, model.coef0)
    weights = ConjunctionWeights.from_arrays(
        model.columns, model.keys, model.weights, model.intercept, model.n_features
    )
    return ConjunctionLookup(weights, **make_map_arguments(parameters))


def _split_linear_scores(
    model: LinearModel, columns: NDArray[np.int64], values: NDArray[np.float64]
) -> RowContributions:
    is_known = columns < model.n_features
    weights = model.weights[columns[is_known]]
    return RowContributions(columns[is_known][:, None], weights * values[is_known][:, None], model.intercept)


def _split_kernel_scores(
    model: KernelModel, columns: NDArray[np.int64], values: NDArray[np.float64]
) -> RowContributions:
    """Expand the model over the columns of the row only; the engine is not used."""
    order = np.argsort(columns)
    order = order[values[order] != 0]
    columns, values = columns[order], values[order]
    if is_linear_of_pairs(model):
        assert isinstance(model.coefficients, PairCoefficients)
        weights = model.coefficients.multiply_transposed(model.vectors.select_columns(columns))
        return RowContributions(columns[:, None], weights * values[:, None], model.intercept)
    if not Machine(model).expandable:
        raise ValueError(
            f"the kernel is {model.kernel.words()}, which is not a sum over few conjunctions, so scores "
            "cannot be explained by them; polynomial kernels of degree 1 to 4 can"
        )
    is_binary_row = bool((values == 1.0).all())
    restricted = _replace_vectors(model, model.vectors.select_columns(columns))
    size = len(columns) + (0 if is_binary_row and restricted.binary else model.kernel.degree)
    if sum(math.comb(size, k) for k in range(1, model.kernel.degree + 1)) > _MAX_CONJUNCTIONS:
        raise ValueError(f"a row of {len(columns):,} features has too many conjunctions to be explained")
    if not is_binary_row:  # the weight of a set is for values of 1, for which all powers are equal
        restricted = _scale_by_row(restricted, values)
    tables = builders.build_expanded(
        Machine(restricted), head=Head(0.0), sets=is_binary_row and restricted.binary
    )
    listing = tables.heaviest_conjunctions(top=_MAX_CONJUNCTIONS)
    local_columns = np.asarray(listing["columns"])
    return RowContributions(
        _map_columns(local_columns, columns),
        np.asarray(listing["weights"]),
        tables.arrays["constants"],
    )


def _map_columns(indices: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Replace indices by ``columns[index]``; the padding -1 stays unchanged."""
    return np.where(indices >= 0, columns[np.maximum(indices, 0)], -1) if len(columns) else indices


def _scale_by_row(model: KernelModel, values: NDArray[np.float64]) -> KernelModel:
    """Multiply each column of the support vectors by the row's value in that column.

    The inner product of a scaled support vector with a row of ones is then that of the unscaled support
    vector with the given row.
    """
    vectors = model.vectors
    return _replace_vectors(model, replace(vectors, data=vectors.data * values[vectors.indices]))


def _replace_vectors(model: KernelModel, vectors: CsrRows) -> KernelModel:
    # The decision need not be adapted, because only the scores are used.
    return KernelModel(
        model.kernel,
        vectors,
        model.coefficients,
        model.intercept,
        model.decision,
        vectors.shape[1],
        False,
        {},
    )
