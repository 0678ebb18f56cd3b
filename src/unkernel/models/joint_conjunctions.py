"""Join several models of conjunctions into one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.models.conjunction import ConjunctionModel
from unkernel.models.curves import Curves
from unkernel.models.numbering import decode, encode

_Ranks = NDArray[np.int64]  # shape (n, 3), descending, padded with -1
_Weights = NDArray[np.float64]


def join_conjunctions(
    members: Sequence[ConjunctionModel], probability: Curves, origin: dict[str, Any]
) -> ConjunctionModel:
    """Return one calibrated model with the scores of all members in turn.

    If the members' maps differ (``gamma="scale"`` depends on the training set), sets of features become
    monomials, whose weights include the constants of the maps. So rows that are not binary get the scores of
    the members.
    """
    first = members[0]
    if any((one.degree, one.feature_map) != (first.degree, first.feature_map) for one in members):
        raise ValueError("the classifiers have different degrees or feature maps, and cannot be one model")
    sets = all(one.sets and _get_kernel_constants(one) == _get_kernel_constants(first) for one in members)
    columns, place = np.unique(np.concatenate([one.columns for one in members]), return_index=True)
    columns = columns[np.argsort(place)]  # frequent features of the first member stay in front
    parts = [_renumber(one, columns, sets=sets) for one in members]
    keys, where = np.unique(np.concatenate([keys for keys, _ in parts]), return_inverse=True)
    weights = np.zeros((len(keys), sum(len(one.intercept) for one in members)))
    row = column = 0
    for own_keys, own_weights in parts:
        rows, width = own_weights.shape
        weights[where.reshape(-1)[row : row + len(own_keys)], column : column + width] = own_weights
        row, column = row + rows, column + width
    return replace(
        first,
        sets=sets,
        columns=columns,
        keys=keys,
        weights=weights,
        intercept=np.concatenate([one.intercept for one in members]),
        probability=probability,
        calibrated=True,
        origin=origin,
    )


def square_constant(model: ConjunctionModel, order: int, repeats: int) -> np.float64:
    """Return the map's squared constant of a monomial of `order` factors, given its exponents' factorials.

    Powers that overflow are infinite, as numpy's are.
    """
    if order > model.degree:
        return np.float64(0.0)
    if model.feature_map == "plain":
        return np.float64(1.0)
    powers = np.float64(model.coef0) ** (model.degree - order) * np.float64(model.gamma) ** order
    return np.float64(math.comb(model.degree, order) * powers * math.factorial(order) / repeats)


def _get_kernel_constants(model: ConjunctionModel) -> tuple[float, float] | None:
    return None if model.feature_map == "plain" else (model.gamma, model.coef0)


def _renumber(
    model: ConjunctionModel, columns: NDArray[np.int64], *, sets: bool
) -> tuple[NDArray[np.uint64], _Weights]:
    """Return conjunction numbers for features in the order of `columns`, and their weights."""
    order = np.argsort(columns)
    rank_of = np.append(order[np.searchsorted(columns, model.columns, sorter=order)], -1)
    ranks = rank_of[decode(model.keys, model.degree, model.sets)]
    ranks = -np.sort(-ranks, axis=1)
    weights = model.weights
    if model.sets and not sets:
        ranks, weights = _split_into_monomials(model, ranks)
    return encode(ranks, model.degree, sets), weights


def _split_into_monomials(model: ConjunctionModel, ranks: _Ranks) -> tuple[_Ranks, _Weights]:
    """Split sets into monomials; the weight of each set is divided among the monomials of its features."""
    sizes = (ranks >= 0).sum(axis=1)
    found = [ranks[sizes == 3]]
    weights = [model.weights[sizes == 3]]
    singles, pairs = sizes == 1, sizes == 2
    powers = [square_constant(model, order, math.factorial(order)) for order in (1, 2, 3)]
    plain, mixed = square_constant(model, 2, 1), square_constant(model, 3, 2)
    chosen = [
        (singles, [0] * order + [2] * (3 - order), powers[order - 1], sum(powers)) for order in (1, 2, 3)
    ]
    chosen += [
        (pairs, places, share, plain + 2 * mixed)
        for places, share in (([0, 1, 2], plain), ([0, 0, 1], mixed), ([0, 1, 1], mixed))
    ]
    for these, places, share, total in chosen:
        if share > 0:
            found.append(ranks[these][:, places])
            weights.append(model.weights[these] * (share / total))
    return np.concatenate(found), np.concatenate(weights)
