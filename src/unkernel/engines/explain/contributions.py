"""Compute the exact contribution of each conjunction of a row to its scores, whatever the engine."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from unkernel.data.rows.csr import CsrRows
from unkernel.engines.tables import builders
from unkernel.engines.tables.builders import Head, Machine, is_linear_of_pairs, simplify
from unkernel.models import ConjunctionModel, KernelModel, LinearModel
from unkernel.models.joint_conjunctions import square_constant
from unkernel.models.numbering import encode_choices
from unkernel.models.pair_coefficients import PairCoefficients

Model = KernelModel | LinearModel | ConjunctionModel
_MAX_CONJUNCTIONS = 5_000_000
_MAX_KEPT_CHOICES = 10_000


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


Split = Callable[[NDArray[np.int64], NDArray[np.float64]], RowContributions]


def make_split(model: Model) -> Split:
    """Return a function of the ascending columns and nonzero values of a row that computes its contributions.

    What all rows share is computed once.
    """
    model = simplify(model)
    split_scores: Split
    if isinstance(model, LinearModel):
        split_scores = partial(_split_linear_scores, model)
    elif isinstance(model, ConjunctionModel):
        split_scores = ConjunctionSplitter(model).split
    else:
        split_scores = partial(_split_kernel_scores, model)

    def split(columns: NDArray[np.int64], values: NDArray[np.float64]) -> RowContributions:
        with np.errstate(over="ignore", invalid="ignore"):  # the total is checked below
            contributions = split_scores(columns, values)
            total = contributions.values.sum(axis=0) + contributions.intercept
        if not np.isfinite(total).all():
            raise ValueError("a score is not finite: the values are too large for the kernel; scale them")
        return contributions

    return split


def compute_binary_contributions(model: Model, columns: NDArray[np.int64]) -> RowContributions:
    """Compute the contributions for a row that has the value 1 in the given ascending columns."""
    return make_split(model)(columns, np.ones(len(columns)))


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


class ConjunctionSplitter:
    """Looks up the conjunctions of rows in a model of conjunctions.

    Parameters
    ----------
    model : ConjunctionModel
        The model.
    """

    def __init__(self, model: ConjunctionModel) -> None:
        self._model = model
        self._ranks = np.argsort(model.columns)
        self._columns = model.columns[self._ranks]  # ascending

    def split(self, columns: NDArray[np.int64], values: NDArray[np.float64]) -> RowContributions:
        """Return the contributions for a row, given by its ascending columns and nonzero values."""
        model = self._model
        ranks, x = self._rank_row(columns, values)
        choices = _list_choices(len(ranks), model.degree, model.sets)
        keys = encode_choices(ranks, model.degree, model.sets, choices)
        positions = np.searchsorted(model.keys, keys)
        if len(model.keys):
            positions = np.minimum(positions, len(model.keys) - 1)
            stored = np.flatnonzero(model.keys[positions] == keys)
        else:
            stored = np.empty(0, np.int64)
        chosen = choices[stored]
        weights = model.weights[positions[stored]]
        if not (values == 1.0).all():  # otherwise every conjunction contributes its weight
            weights = weights * self._compute_row_factors(x, chosen)[:, None]
        # The index -1, which pads the choices, selects the last element.
        return RowContributions(np.append(model.columns[ranks], -1)[chosen], weights, model.intercept)

    def _rank_row(
        self, columns: NDArray[np.int64], values: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the ranks of a row's columns in the model, in descending order, and their values."""
        if not len(self._columns):
            return np.empty(0, np.int64), np.empty(0)
        places = np.minimum(np.searchsorted(self._columns, columns), len(self._columns) - 1)
        known = np.flatnonzero(self._columns[places] == columns)
        ranks = self._ranks[places[known]]
        descending = np.argsort(-ranks)
        return ranks[descending], values[known[descending]]

    def _compute_row_factors(self, x: NDArray[np.float64], chosen: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the factor of each chosen conjunction's weight; `x` has the values of the ranks."""
        factors = np.ones(len(chosen))
        orders = (chosen >= 0).sum(axis=1)
        for order in range(1, self._model.degree + 1):
            is_of_order = orders == order
            factors[is_of_order] = _compute_factors(self._model, x[chosen[is_of_order, :order]])
        return factors


def _list_choices(count: int, degree: int, sets: bool) -> NDArray[np.int64]:
    """Return the ascending choices of 1 to `degree` out of `count` positions, padded with -1.

    Positions may repeat unless `sets`.
    """
    size = count if sets else count + degree
    number = sum(math.comb(size, k) for k in range(1, degree + 1))
    if number > _MAX_CONJUNCTIONS:
        raise ValueError(f"a row of {count:,} features has too many conjunctions to be explained")
    return (_keep_choices if number <= _MAX_KEPT_CHOICES else _make_choices)(count, degree, sets)


def _make_choices(count: int, degree: int, sets: bool) -> NDArray[np.int64]:
    choose = itertools.combinations if sets else itertools.combinations_with_replacement
    parts = []
    for order in range(1, degree + 1):
        flat = np.fromiter(itertools.chain.from_iterable(choose(range(count), order)), np.int64)
        chosen = flat.reshape(-1, order)
        parts.append(np.pad(chosen, ((0, 0), (0, degree - order)), constant_values=-1))
    return np.concatenate(parts)


# Most rows of a table have the same number of features.
_keep_choices = lru_cache(maxsize=64)(_make_choices)


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
