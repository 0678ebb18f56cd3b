"""Number the conjunctions of models for other features, and join several models into one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.models.conjunction import ConjunctionModel
from unkernel.models.decision import Decision, Platt
from unkernel.models.numbering import decode, encode

_Ranks = NDArray[np.int64]  # shape (n, 3), descending, padded with -1
_Weights = NDArray[np.float64]
_UNKNOWN = -2


def join_conjunctions(
    members: Sequence[ConjunctionModel], decision: Decision, origin: dict[str, Any]
) -> ConjunctionModel:
    """Return one model with the scores of all members, one member after the other, and a given decision.

    If the feature maps of the members differ (``gamma="scale"`` depends on the training set), sets of
    features become monomials, whose weights include the constants of the maps. Therefore, also rows that are
    not binary get the scores of the members.
    """
    first = members[0]
    probability = decision.probability
    if isinstance(probability, Platt) or any(
        isinstance(output.probability, Platt) for output in decision.outputs
    ):
        raise ValueError("conjunctions of several classifiers have no Platt scaling")
    if any((member.degree, member.feature_map) != (first.degree, first.feature_map) for member in members):
        raise ValueError("the classifiers have different degrees or feature maps, and cannot be one model")
    sets = all(
        member.sets and _get_kernel_constants(member) == _get_kernel_constants(first) for member in members
    )
    columns, first_indices = np.unique(
        np.concatenate([member.columns for member in members]), return_index=True
    )
    columns = columns[np.argsort(first_indices)]  # frequent features of the first member stay in front
    parts = [renumber_conjunctions(member, columns, sets=sets) for member in members]
    keys, index_of_key = np.unique(np.concatenate([keys for keys, _ in parts]), return_inverse=True)
    weights = np.zeros((len(keys), sum(len(member.intercept) for member in members)))
    row = column = 0
    for _, member_weights in parts:
        rows, width = member_weights.shape
        weights[index_of_key.reshape(-1)[row : row + rows], column : column + width] = member_weights
        row, column = row + rows, column + width
    return replace(
        first,
        sets=sets,
        columns=columns,
        keys=keys,
        weights=weights,
        intercept=np.concatenate([member.intercept for member in members]),
        classes=decision.classes,
        probability=probability,
        ranking=decision if decision.outputs else None,
        calibrated=decision.scheme == "calibrated",
        threshold=None,
        curvatures=None,
        slopes=None,
        origin=origin,
    )


def square_constant(model: ConjunctionModel, order: int, repeats: int) -> np.float64:
    """Return the squared constant of a monomial of `order` factors in the feature map of a model.

    `repeats` is the product of the factorials of the exponents. Powers that overflow are infinite.
    """
    if order > model.degree:
        return np.float64(0.0)
    if model.feature_map == "plain":
        return np.float64(1.0)
    powers = np.float64(model.coef0) ** (model.degree - order) * np.float64(model.gamma) ** order
    return np.float64(math.comb(model.degree, order) * powers * math.factorial(order) / repeats)


def _get_kernel_constants(model: ConjunctionModel) -> tuple[float, float] | None:
    return None if model.feature_map == "plain" else (model.gamma, model.coef0)


def renumber_conjunctions(
    model: ConjunctionModel, columns: NDArray[np.int64], *, sets: bool
) -> tuple[NDArray[np.uint64], _Weights]:
    """Return the keys of a model's conjunctions for features in the order of `columns`, and their weights.

    Conjunctions of features that are not in `columns` are left out.
    """
    rank_by_column = dict(zip(columns.tolist(), range(len(columns)), strict=True))
    # The rank -1 pads conjunctions; it selects the last element.
    new_ranks = np.array([rank_by_column.get(c, _UNKNOWN) for c in model.columns.tolist()] + [-1], np.int64)
    ranks = new_ranks[decode(model.keys, model.degree, model.sets)]
    is_kept = (ranks != _UNKNOWN).all(axis=1)
    ranks, weights = -np.sort(-ranks[is_kept], axis=1), model.weights[is_kept]
    if model.sets and not sets:
        ranks, weights = split_into_monomials(model, ranks, weights)
    return encode(ranks, model.degree, sets), weights


def split_into_monomials(
    model: ConjunctionModel, ranks: _Ranks, weights: _Weights
) -> tuple[_Ranks, _Weights]:
    """Split sets into monomials; the weight of each set is divided among the monomials of its features."""
    sizes = (ranks >= 0).sum(axis=1)
    is_single, is_pair = sizes == 1, sizes == 2
    powers = [square_constant(model, order, math.factorial(order)) for order in (1, 2, 3)]
    plain, mixed = square_constant(model, 2, 1), square_constant(model, 3, 2)
    # Kinds of monomials: their sets, their factors as columns of `ranks`, their constant, and the sum of the
    # constants of all monomials of a set. A column after the last feature of a set holds the padding -1.
    kinds = [
        (is_single, [0, 2, 2], powers[0], sum(powers)),
        (is_single, [0, 0, 2], powers[1], sum(powers)),
        (is_single, [0, 0, 0], powers[2], sum(powers)),
        (is_pair, [0, 1, 2], plain, plain + 2 * mixed),
        (is_pair, [0, 0, 1], mixed, plain + 2 * mixed),
        (is_pair, [0, 1, 1], mixed, plain + 2 * mixed),
    ]
    monomials = [ranks[sizes == 3]]
    divided = [weights[sizes == 3]]
    for is_chosen, factors, constant, total in kinds:
        if constant > 0:
            monomials.append(ranks[is_chosen][:, factors])
            divided.append(weights[is_chosen] * (constant / total))
    return np.concatenate(monomials), np.concatenate(divided)
