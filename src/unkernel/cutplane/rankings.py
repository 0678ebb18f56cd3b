"""Encode labels and groups for the core, and measure the order of scores."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import _check_y

from unkernel._core import count_pairs
from unkernel.learners.targets import check_weights

NO_PAIR = "there is no pair to order: in each group, all rows have the same class, or no weight"

PairWeight = Mapping[tuple[float, float], float] | str

_MAX_WEIGHTED_RANKS = 1024
_MAX_GAIN_EXPONENT = 60  # largest label if gains are 2^label - 1
_GAINS = ("exponential", "linear")
_WITHOUT_RELEVANT = {"skip": None, "zero": 0.0, "one": 1.0}


def ordered_pairs(
    y: ArrayLike, scores: ArrayLike, qid: ArrayLike | None = None, sample_weight: ArrayLike | None = None
) -> float:
    """Compute the share of pairs of rows that scores put in the right order.

    Only pairs with different labels count; a pair with equal scores counts half. For two labels, the result
    is the area under the ROC curve.

    Parameters
    ----------
    y : array-like of numbers of shape (n_samples,)
        The correct labels.
    scores : array-like of numbers of shape (n_samples,)
        The scores of the rows.
    qid : array-like of shape (n_samples,), default=None
        Groups: only rows of the same group are compared.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows; the weight of a pair is the product of the weights of its rows.

    Returns
    -------
    float
        The share of pairs, in [0, 1].

    Raises
    ------
    ValueError
        If there is no pair of rows with different labels in the same group.

    See Also
    --------
    ndcg_score : Normalised discounted cumulative gain.
    unkernel.RankSVM.score : The same measure for the scores of a ranker.

    Examples
    --------
    >>> from unkernel.cutplane import ordered_pairs
    >>> ordered_pairs([1, 2, 3], [0.1, 0.3, 0.2])
    0.6666666666666666
    """
    labels, score_array = check_numbers(y), np.asarray(check_numbers(scores), dtype=np.float64)
    check_consistent_length(labels, score_array)
    weights = None if sample_weight is None else check_weights(sample_weight, score_array)
    return compute_share_in_order(labels, score_array, check_groups(qid, score_array), weights, None)


def compute_share_in_order(
    labels: NDArray[Any],
    scores: NDArray[np.float64],
    groups: NDArray[Any] | None,
    weights: NDArray[np.float64] | None,
    pair_weight: PairWeight | None,
) -> float:
    """Return the share of pairs in the right order, like :func:`ordered_pairs`, for checked arrays."""
    pairs, ordered = count_pairs(**encode_ranking(labels, groups, weights, pair_weight), scores=scores)
    if not pairs > 0:
        raise ValueError("there is no pair to order: within the groups, all rows have the same label")
    return float(ordered / pairs)


def check_numbers(y: ArrayLike) -> NDArray[np.float64]:
    """Return numbers as an array of one dimension; raise a ``ValueError`` for text and missing values."""
    labels: NDArray[np.float64] = _check_y(y, y_numeric=True)
    check_not_text(labels)
    return labels


def check_not_text(labels: NDArray[Any]) -> None:
    if labels.dtype.kind not in "biuf":  # text would be sorted alphabetically
        raise ValueError(f"y must be numeric, so that it has an order; got {labels.dtype}")


def check_groups(qid: ArrayLike | None, rows: Any) -> NDArray[Any] | None:
    """Return the group of each row as an array, or None; raise a ``ValueError`` for missing groups."""
    if qid is None:
        return None
    groups: NDArray[Any] = column_or_1d(qid)
    missing = groups != groups if groups.dtype.kind in "fO" else np.zeros(0, dtype=bool)  # noqa: PLR0124 (NaN)
    if np.any(missing) or (groups.dtype.kind == "O" and any(group is None for group in groups)):
        raise ValueError("qid has missing values: every row needs a group")
    check_consistent_length(rows, groups)
    return groups


def encode_ranking(
    labels: NDArray[Any],
    groups: NDArray[Any] | None,
    weights: NDArray[np.float64] | None,
    pair_weight: PairWeight | None,
) -> dict[str, Any]:
    """Return the arguments of the core's ``ordinal_oracle``."""
    values, ranks = np.unique(labels, return_inverse=True)
    empty = np.empty(0)
    group_numbers = None if groups is None else np.unique(groups, return_inverse=True)[1].astype(np.int32)
    gains = discounts = pair_weights = empty
    if pair_weight == "ndcg":
        gains, discounts = _compute_ndcg_shares(labels, group_numbers, weights)
    elif isinstance(pair_weight, Mapping):
        pair_weights = _tabulate_pair_weights(values, pair_weight)
    return {
        "ranks": ranks.astype(np.int32),
        "rank_count": len(values),
        "groups": np.empty(0, np.int32) if group_numbers is None else group_numbers,
        "weights": empty if weights is None else weights,
        "pair_weights": pair_weights,
        "gains": gains,
        "discounts": discounts,
    }


def weigh_rank_pairs(
    values: NDArray[Any], totals: NDArray[np.float64], counts: NDArray[Any], pair_weight: PairWeight | None
) -> NDArray[np.float64]:
    """Return the weight of a pair of rows by [higher rank, lower rank], scaled for the risk.

    All rows belong to one group.

    Parameters
    ----------
    values : ndarray
        The labels in ascending order.
    totals, counts : ndarray
        For each label, the total weight of its rows, and the number of its rows with positive weight.
    pair_weight : dict, str or None
    """
    table = np.tri(len(values), k=-1)
    if isinstance(pair_weight, Mapping):
        table *= _tabulate_pair_weights(values, pair_weight).reshape(table.shape)
    elif pair_weight == "ndcg":
        gains, discounts = _compute_ndcg_shares(np.repeat(values, counts), None, None)
        first = np.minimum(np.cumsum(counts) - counts, len(gains) - 1)  # the first row of each label
        table *= np.subtract.outer(gains[first], gains[first])
        table *= np.subtract.outer(discounts[first], discounts[first])
    pairs = float(totals @ table @ totals)
    if not pairs > 0:
        raise ValueError(NO_PAIR)
    table *= totals.sum() / pairs
    return table


def list_ranks(labels: NDArray[Any], weights: NDArray[np.float64] | None) -> NDArray[Any]:
    """Return the labels of rows with a positive weight, in ascending order."""
    return np.unique(labels if weights is None else labels[weights > 0])


def _check_few_ranks(values: NDArray[Any]) -> None:
    if len(values) > _MAX_WEIGHTED_RANKS:
        raise ValueError(f"pair_weight is for at most {_MAX_WEIGHTED_RANKS} labels, got {len(values)}")


def _tabulate_pair_weights(
    values: NDArray[Any], pair_weight: Mapping[tuple[float, float], float]
) -> NDArray[np.float64]:
    """Return the weight of a pair by [higher rank, lower rank], flattened; 1 for pairs that are not given."""
    _check_few_ranks(values)
    table = np.ones((len(values), len(values)))
    codes = {float(value): code for code, value in enumerate(values.tolist())}
    for pair, weight in pair_weight.items():
        is_label_pair = (
            isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(label, Real) for label in pair)
        )
        if not (is_label_pair and pair[0] > pair[1]):
            raise ValueError(f"pair_weight has keys (higher label, lower label), got {pair!r}")
        if not (isinstance(weight, Real) and weight >= 0 and np.isfinite(weight)):
            raise ValueError(f"pair_weight has finite weights that are not negative, got {weight!r}")
        high, low = codes.get(float(pair[0])), codes.get(float(pair[1]))
        if high is not None and low is not None:  # ignore labels that do not occur
            table[high, low] = weight
    return table.ravel()


def _compute_ndcg_shares(
    labels: NDArray[Any], groups: NDArray[np.int32] | None, weights: NDArray[np.float64] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the relative gain of each row, and its discount in the ideal order of its group.

    Gains are divided by the DCG of the ideal order. If rows i and j are swapped in the ideal order, NDCG
    decreases by (gain_i - gain_j)(discount_i - discount_j). All rows with the same label have the mean of
    their discounts: the result is then the mean over all ideal orders.
    """
    values, ranks = np.unique(labels, return_inverse=True)
    _check_few_ranks(values)
    gains = _compute_gains(labels, "exponential")
    is_counted = np.ones(len(labels), dtype=bool) if weights is None else weights > 0
    group = np.zeros(len(labels), np.int64) if groups is None else groups.astype(np.int64)
    # The rows that count, in the ideal order of each group; `positions` are their places in this order.
    order = np.lexsort((-ranks, group, ~is_counted))[: int(is_counted.sum())]
    sizes = np.bincount(group[order], minlength=int(group.max(initial=0)) + 1)
    positions = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rank_in_group = np.unique(group * len(values) + ranks, return_inverse=True)[1]
    sums = np.bincount(
        rank_in_group[order], 1.0 / np.log2(positions + 2.0), minlength=int(rank_in_group.max(initial=0)) + 1
    )
    counts = np.bincount(rank_in_group[order], minlength=len(sums))
    discounts = (sums / np.maximum(counts, 1))[rank_in_group]
    best = np.bincount(group, gains * discounts * is_counted, minlength=len(sizes))[group]
    return np.divide(gains, best, out=np.zeros(len(gains)), where=best > 0), discounts


def ndcg_score(
    y: ArrayLike,
    scores: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    k: int | None = 10,
    gain: str = "exponential",
    without_relevant: str = "skip",
) -> float:
    """Compute NDCG@k: the discounted gain of the first k rows, relative to the ideal order.

    The gain of the row at position p (counted from 1) is divided by log2(1 + p). Each of several rows with
    equal scores gets the mean of their gains, so the result does not depend on how ties are broken.

    Parameters
    ----------
    y : array-like of numbers of shape (n_samples,)
        Relevance grades; they must not be negative. Rows with a grade above 0 are relevant.
    scores : array-like of numbers of shape (n_samples,)
        The scores of the rows.
    qid : array-like of shape (n_samples,), default=None
        Queries; None means that all rows belong to one query.
    k : int or None, default=10
        Number of rows at the top that count; None counts all rows.
    gain : {"exponential", "linear"}, default="exponential"
        Gain of a row: ``2 ** y - 1``, as in LETOR and LightGBM, or ``y`` itself, as in scikit-learn.
    without_relevant : {"skip", "zero", "one"}, default="skip"
        Value of a query without relevant rows, whose NDCG is undefined (0 / 0). "skip" leaves the query out
        of the mean. "zero" is the convention of LETOR and scikit-learn, "one" the convention of LightGBM and
        XGBoost.

    Returns
    -------
    float
        The mean over queries, in [0, 1].

    See Also
    --------
    ordered_pairs : Share of pairs in the right order.
    unkernel.RankSVM.ndcg : The same measure for the scores of a ranker.

    Examples
    --------
    >>> from unkernel.cutplane import ndcg_score
    >>> ndcg_score([2, 1, 0], [0.9, 0.1, 0.5])
    0.9639404333166532
    >>> ndcg_score([1, 0, 0, 0], [0.9, 0.1, 0.5, 0.2], qid=[1, 1, 2, 2], without_relevant="zero")
    0.5
    """
    labels, score_array = check_numbers(y), np.asarray(check_numbers(scores), dtype=np.float64)
    check_consistent_length(labels, score_array)
    if k is not None and (isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1):
        raise ValueError(f"k must be a number of rows from 1 on, or None for all, got {k!r}")
    if without_relevant not in _WITHOUT_RELEVANT:
        raise ValueError(f"without_relevant must be 'skip', 'zero' or 'one', got {without_relevant!r}")
    values, has_relevant = compute_group_ndcg(labels, score_array, check_groups(qid, score_array), k, gain)
    convention = _WITHOUT_RELEVANT[without_relevant]
    if convention is not None:
        return float(np.where(has_relevant, values, convention).mean())
    if not has_relevant.any():
        raise ValueError("no query has a relevant row (a label above 0), so there is no NDCG")
    return float(values[has_relevant].mean())


def compute_group_ndcg(
    labels: NDArray[Any],
    scores: NDArray[np.float64],
    groups: NDArray[Any] | None,
    k: int | None,
    gain: str = "exponential",
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the NDCG@k of each group, and whether the group has a relevant row.

    Groups are in ascending order. Without a relevant row, the NDCG@k is 0.
    """
    gains = _compute_gains(labels, gain)
    group_numbers = (
        np.zeros(len(scores), np.int64) if groups is None else np.unique(groups, return_inverse=True)[1]
    )
    best = _sum_discounted_gains(gains, gains, group_numbers, k)
    reached = _sum_discounted_gains(gains, scores, group_numbers, k)
    has_relevant = best > 0
    return np.divide(reached, best, out=np.zeros_like(best), where=has_relevant), has_relevant


def _compute_gains(labels: NDArray[Any], gain: str) -> NDArray[np.float64]:
    """Return the gain of each label; raise a ``ValueError`` if a label is negative or too large."""
    if gain not in _GAINS:
        raise ValueError(f"gain must be 'exponential' or 'linear', got {gain!r}")
    if (labels < 0).any():
        raise ValueError("relevance is not negative, but y has labels below 0")
    if gain == "linear":
        return labels.astype(np.float64)
    if (labels > _MAX_GAIN_EXPONENT).any():
        raise ValueError(
            f"y has labels above {_MAX_GAIN_EXPONENT}, too large for gains of 2^y - 1: use gain='linear'"
        )
    return np.exp2(labels.astype(np.float64)) - 1.0


def _sum_discounted_gains(
    gains: NDArray[np.float64], scores: NDArray[np.float64], groups: NDArray[Any], k: int | None
) -> NDArray[np.float64]:
    """Return each group's sum of discounted gains in the order of scores; tied rows get their mean gain."""
    order = np.lexsort((-scores, groups))
    group, score = groups[order], scores[order]
    first_of_group = np.r_[True, group[1:] != group[:-1]]
    begins = np.flatnonzero(first_of_group)
    positions = np.arange(len(order)) - np.repeat(begins, np.diff(np.r_[begins, len(order)]))
    tie = np.cumsum(first_of_group | np.r_[True, score[1:] != score[:-1]]) - 1
    shared = (np.bincount(tie, gains[order]) / np.bincount(tie))[tie]
    discounts = 1.0 / np.log2(positions + 2.0)
    if k is not None:
        discounts[positions >= k] = 0.0
    return np.bincount(group, shared * discounts).astype(np.float64, copy=False)
