"""Measure the order of the scores of rankings, and predict ordinal classes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from unkernel.cutplane._base import LinearLearner
from unkernel.cutplane.polynomial_rows import replace_decision
from unkernel.cutplane.rankings import check_groups, check_numbers, compute_share_in_order, ndcg_score
from unkernel.cutplane.thresholds import are_whole, find_thresholds
from unkernel.errors import warn_caller
from unkernel.learners.targets import check_weights
from unkernel.models import Decision

MAX_ORDINAL_CLASSES = 1024


def _has_thresholds(learner: Any) -> bool:
    if not hasattr(learner, "thresholds_"):
        raise AttributeError(
            "predict gives ordinal classes once fit_thresholds has been called; "
            "decision_function gives scores"
        )
    return True


class RankPredictor(LinearLearner):
    """Base class of ranking estimators: measures the order of rows, and predicts ordinal classes."""

    ranks_: NDArray[Any]
    _has_groups: bool

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Compute the share of pairs that the scores put in the right order.

        Only pairs of rows with different labels count and, if there are groups, only pairs within a group. A
        pair with equal scores counts half. For two labels, the result is the area under the ROC curve. A
        ranker that was fitted with groups warns if ``qid`` is None, because it was not trained to compare
        rows of different groups.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : array-like of numbers of shape (n_samples,)
            The correct labels.
        qid : array-like of shape (n_samples,), default=None
            Groups: only rows of the same group are compared.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; the weight of a pair is the product of the weights of its rows.

        Returns
        -------
        float
            The share of pairs, in [0, 1].
        """
        scores = self.decision_function(X)
        self._warn_without_groups(qid, "score")
        labels = check_numbers(y)
        check_consistent_length(scores, labels)
        weights = None if sample_weight is None else check_weights(sample_weight, scores)
        return compute_share_in_order(labels, scores, check_groups(qid, scores), weights, self.pair_weight)

    def ndcg(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        *,
        k: int | None = 10,
        gain: str = "exponential",
        without_relevant: str = "skip",
    ) -> float:
        """Compute the NDCG of the scores, averaged over queries.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : array-like of numbers of shape (n_samples,)
            Relevance grades; they must not be negative.
        qid : array-like of shape (n_samples,), default=None
            Queries; None means that all rows belong to one query.
        k : int or None, default=10
            Number of rows at the top that count; None counts all rows.
        gain : {"exponential", "linear"}, default="exponential"
            Gain of a row: ``2 ** y - 1`` or ``y``.
        without_relevant : {"skip", "zero", "one"}, default="skip"
            Value of a query without relevant rows; "skip" leaves it out of the mean.

        Returns
        -------
        float
            The mean NDCG, in [0, 1].

        See Also
        --------
        unkernel.cutplane.ndcg_score : The same measure for given scores, with its conventions.
        """
        scores = self.decision_function(X)
        self._warn_without_groups(qid, "ndcg")
        return ndcg_score(y, scores, qid, k=k, gain=gain, without_relevant=without_relevant)

    def _warn_without_groups(self, qid: ArrayLike | None, method: str) -> None:
        if qid is None and self._has_groups:
            warn_caller(
                f"this RankSVM was fitted with groups, but {method} was given no qid, so it compares rows of "
                "different groups: pass qid",
                UserWarning,
            )

    def fit_thresholds(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Find thresholds that separate the labels; :meth:`predict` then returns labels.

        The thresholds minimise the absolute error, in ranks, on the given rows. Use held-out rows if you
        have them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : array-like of numbers of shape (n_samples,)
            The labels of the rows. All of them must be among ``ranks_``.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        RankSVM
            The estimator itself, with ``thresholds_`` and ``classes_``.
        """
        check_is_fitted(self)
        scores = self.decision_function(X)
        labels = check_numbers(y)
        check_consistent_length(scores, labels)
        if len(self.ranks_) > MAX_ORDINAL_CLASSES:
            raise ValueError(
                f"there are {len(self.ranks_)} labels, and thresholds are for at most {MAX_ORDINAL_CLASSES}"
            )
        is_unknown = ~np.isin(labels, self.ranks_)
        if is_unknown.any():
            raise ValueError(
                f"y has labels that fit did not see: {np.unique(labels[is_unknown])[:8].tolist()}"
            )
        weights = np.ones(len(labels)) if sample_weight is None else check_weights(sample_weight, scores)
        ranks = np.searchsorted(self.ranks_, labels)
        self.thresholds_ = find_thresholds(scores, ranks, weights, len(self.ranks_))
        classes = self.ranks_.astype(np.int64) if are_whole(self.ranks_) else self.ranks_
        decision = Decision("ordinal", classes, thresholds=self.thresholds_, ranking=True)
        self.classes_ = classes
        self._set_model(replace_decision(self.model_, decision))
        return self

    @available_if(_has_thresholds)  # type: ignore[untyped-decorator]
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the label of each row; available after ``fit_thresholds``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            The predicted labels.
        """
        return super().predict(X)
