"""Measures of rankings. Queries may count several times, as in bootstrap samples."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from unkernel._core import count_pairs
from unkernel.cutplane.rankings import compute_group_ndcg, encode_ranking
from unkernel.measures.base import ModelMeasures
from unkernel.measures.intervals import Counts, Numbers

ORDERED = "ordered pairs"
DEPTHS = (1, 3, 5, 10, 20)
LARGEST_DEPTH = 20
MEANINGS = {
    ORDERED: "the share of pairs of unequal label that the scores order correctly; equal scores count half"
}
MEANINGS |= {
    f"NDCG@{depth}": f"the discounted gain of the first {depth}, relative to that of the best order"
    for depth in DEPTHS
}
_LARGEST_GRADE = 50.0  # the gain of a row is 2^label - 1; larger labels are not grades


class RankMeasures(ModelMeasures):
    """All measures of one model's ranking."""

    meanings: ClassVar[Mapping[str, str]] = MEANINGS
    resampled_unit = "queries"

    @property
    def n_resampled(self) -> int:
        """Return the number of queries; 0 if there is only one, because this cannot be resampled."""
        return len(self.queries) if len(self.queries) > 1 else 0

    @property
    def scores(self) -> Numbers:
        return self.predictions.raw[:, 0]

    @cached_property
    def labels(self) -> Numbers:
        """Return the gold labels as numbers."""
        try:
            return self.predictions.examples.labels.astype(np.float64)
        except ValueError:
            raise ValueError("the labels of a ranking are numbers, so that they have an order") from None

    @cached_property
    def groups(self) -> NDArray[np.intp]:
        """Return the index of each row's query."""
        groups = self.predictions.examples.groups
        if groups is None:
            return np.zeros(len(self.labels), np.intp)
        return np.unique(groups, return_inverse=True)[1]

    @cached_property
    def queries(self) -> NDArray[Any]:
        """Return the names of the queries."""
        groups = self.predictions.examples.groups
        return np.zeros(1, np.intp) if groups is None else np.unique(groups)

    @cached_property
    def has_grades(self) -> bool:
        """Return whether the labels are grades; NDCG is defined only for grades."""
        return are_grades(self.labels)

    @cached_property
    def ndcg(self) -> dict[int, Numbers]:
        """Return the NDCG of each query, by depth; NaN for queries without a relevant row."""
        if not self.has_grades:
            return {}
        by_depth = {}
        for depth in range(1, LARGEST_DEPTH + 1):
            values, relevant = compute_group_ndcg(self.labels, self.scores, self.groups, depth)
            by_depth[depth] = np.where(relevant, values, np.nan)
        return by_depth

    @cached_property
    def pairs(self) -> NDArray[np.float64]:
        """Return, for each query, the number of pairs with unequal labels and how many are in order."""
        order = np.argsort(self.groups, kind="stable")
        ends = np.cumsum(np.bincount(self.groups))
        counts = []
        for rows in np.split(order, ends[:-1]):
            counts.append(count_ordered_pairs(self.labels[rows], self.scores[rows]))
        return np.array(counts, dtype=np.float64)

    def values(self, counts: Counts | None = None) -> dict[str, float]:
        """Return the measures, counting query i `counts[i]` times; None means once each."""
        weights = np.ones(len(self.queries)) if counts is None else counts
        pairs, ordered = weights @ self.pairs
        measures = {ORDERED: float(ordered / pairs) if pairs else float("nan")}
        for depth in DEPTHS:
            if depth in self.ndcg:
                measures[f"NDCG@{depth}"] = _average_over_queries(self.ndcg[depth], weights)
        return measures


def _average_over_queries(values: Numbers, weights: NDArray[Any]) -> float:
    """Return the weighted mean over the queries that have relevant rows."""
    is_defined = ~np.isnan(values)
    total = weights[is_defined].sum()
    return float((values[is_defined] * weights[is_defined]).sum() / total) if total else float("nan")


def are_grades(labels: NDArray[Any]) -> bool:
    """Return whether labels are grades; NDCG is defined only for grades."""
    return bool(labels.min() >= 0 and labels.max() <= _LARGEST_GRADE)


def count_ordered_pairs(
    labels: NDArray[Any], scores: Numbers, groups: NDArray[Any] | None = None
) -> tuple[float, float]:
    """Return the number of pairs with unequal labels within groups, and how many the scores order correctly.

    A pair with equal scores counts half. Without groups, all rows form one group.
    """
    settings = encode_ranking(labels, groups, weights=None, pair_weight=None)
    pairs, ordered = count_pairs(**settings, scores=np.ascontiguousarray(scores))
    return pairs, ordered
