"""Compute the exact contribution of each conjunction of a row to its scores, whatever the engine."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unkernel.data.rows.csr import CsrRows
from unkernel.engines.tables import builders
from unkernel.engines.tables.builders import Head, Machine, is_linear_of_pairs, simplify
from unkernel.models import ConjunctionModel, KernelModel, LinearModel
from unkernel.models.joint_conjunctions import square_constant
from unkernel.models.numbering import encode
from unkernel.models.pair_coefficients import PairCoefficients

Model = KernelModel | LinearModel | ConjunctionModel
_MAX_CONJUNCTIONS = 5_000_000


@dataclass(frozen=True, eq=False)
class RowContributions:
    """The contributions of all conjunctions of a row to its scores.

    Attributes
    ----------
    columns : (conjunctions, degree) int64
        The columns of each conjunction, padded with -1.
    values : (conjunctions, scores) float64
        Contribution of each conjunction to each score.
    intercept : (scores,) float64
        Constant contribution to every row.
    """

    columns: NDArray[np.int64]
    values: NDArray[np.float64]
    intercept: NDArray[np.float64]


def compute_binary_contributions(model: Model, columns: NDArray[np.int64]) -> RowContributions:
    """Compute the contributions for a row that has the value 1 in the given ascending columns."""
    return compute_contributions(model, columns, np.ones(len(columns)))


def compute_contributions(
    model: Model, columns: NDArray[np.int64], values: NDArray[np.float64]
) -> RowContributions:
    """Compute the contributions for a row, given by its ascending columns and nonzero values."""
    model = simplify(model)
    with np.errstate(over="ignore", invalid="ignore"):  # the total is checked below
        if isinstance(model, LinearModel):
            contributions = _split_linear_scores(model, columns, values)
        elif isinstance(model, ConjunctionModel):
            contributions = _split_conjunction_scores(model, columns, values)
        else:
            contributions = _split_kernel_scores(model, columns, values)
        total = contributions.values.sum(axis=0) + contributions.intercept
    if not np.isfinite(total).all():
        raise ValueError("a score is not finite: the values are too large for the kernel; scale them")
    return contributions


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
        restricted = _move_values(restricted, values)
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


def _move_values(model: KernelModel, values: NDArray[np.float64]) -> KernelModel:
    """Multiply the support vectors by the values of a row; a row of ones then has the same products."""
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


def _split_conjunction_scores(
    model: ConjunctionModel, columns: NDArray[np.int64], values: NDArray[np.float64]
) -> RowContributions:
    ranks, x = _rank_row(model, columns, values)
    is_binary_row = bool((values == 1.0).all())  # then every conjunction contributes its weight
    size = len(ranks) + (0 if model.sets else model.degree)
    if sum(math.comb(size, k) for k in range(1, model.degree + 1)) > _MAX_CONJUNCTIONS:
        raise ValueError(f"a row of {len(ranks):,} features has too many conjunctions to be explained")
    columns_of_sizes, values_of_sizes = [], []
    for order in range(1, model.degree + 1):
        combinations = _list_combinations(len(ranks), order, model.sets)
        padded = np.full((len(combinations), 3), -1, np.int64)
        padded[:, :order] = ranks[combinations]
        keys = encode(padded, model.degree, model.sets)
        positions = np.searchsorted(model.keys, keys)
        is_stored = positions < len(model.keys)
        is_stored[is_stored] = model.keys[positions[is_stored]] == keys[is_stored]
        columns_of_sizes.append(np.where(padded >= 0, model.columns[np.maximum(padded, 0)], -1)[is_stored])
        factors = (
            np.ones(int(is_stored.sum()))
            if is_binary_row
            else _compute_factors(model, x[combinations[is_stored]])
        )
        values_of_sizes.append(model.weights[positions[is_stored]] * factors[:, None])
    return RowContributions(
        np.concatenate(columns_of_sizes), np.concatenate(values_of_sizes), model.intercept
    )


def _rank_row(
    model: ConjunctionModel, columns: NDArray[np.int64], values: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the ranks of a row's columns in the model, in descending order, and their values."""
    order = np.argsort(model.columns)
    if not len(order):
        return np.empty(0, np.int64), np.empty(0)
    positions = np.minimum(np.searchsorted(model.columns, columns, sorter=order), len(order) - 1)
    ranks = order[positions]
    is_known = model.columns[ranks] == columns
    descending = np.argsort(-ranks[is_known])
    return ranks[is_known][descending], values[is_known][descending]


def _list_combinations(count: int, order: int, sets: bool) -> NDArray[np.int64]:
    """Return all ascending choices of `order` out of `count` positions; unless `sets`, they may repeat."""
    choose = itertools.combinations if sets else itertools.combinations_with_replacement
    flat = np.fromiter(itertools.chain.from_iterable(choose(range(count), order)), np.int64)
    return flat.reshape(-1, order)


def _compute_factors(model: ConjunctionModel, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the factor of each conjunction's weight; `x` has the values, of shape (conjunctions, order).

    The weight of a set is the sum of the weights of all monomials of its features. Its factor is therefore
    the mean of the monomials' values, weighted by their constants in the kernel.
    """
    product: NDArray[np.float64] = x.prod(axis=1)
    if not model.sets:
        return product
    if x.shape[1] > 2:
        return np.asarray(
            product * _compute_share(square_constant(model, 3, 1), square_constant(model, 3, 1))
        )
    if x.shape[1] == 1:
        first, second, third = (square_constant(model, order, math.factorial(order)) for order in (1, 2, 3))
        total = first + second + third
        v = x[:, 0]
        return np.asarray(
            _compute_share(first, total) * v
            + _compute_share(second, total) * v**2
            + _compute_share(third, total) * v**3
        )
    plain, mixed = square_constant(model, 2, 1), square_constant(model, 3, 2)
    total = plain + 2 * mixed
    return np.asarray(product * (_compute_share(plain, total) + _compute_share(mixed, total) * x.sum(axis=1)))


def _compute_share(part: np.float64, total: np.float64) -> np.float64:
    """Return the share of a monomial in the weight of its set; 0 if the set has the constant 0."""
    return part / total if total else np.float64(0.0)
