"""Ranking SVMs: ordinal regression by cutting planes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context, clone
from sklearn.utils import assert_all_finite, check_consistent_length
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from unkernel._core import Bundle, Oracle, ordinal_oracle
from unkernel.cutplane._base import LinearLearner
from unkernel.cutplane.rankings import (
    PairWeight,
    check_groups,
    check_not_text,
    check_numbers,
    counted_ranks,
    ndcg_score,
    ranking_of,
    share_in_order,
)
from unkernel.cutplane.thresholds import best_thresholds
from unkernel.cutplane.training import (
    LocalMinimiser,
    Minimiser,
    Solution,
    SolverOptions,
    TrainingRows,
    checksum,
    is_path,
    pair_accuracy,
    solve_by_cuts,
)
from unkernel.data.rows.checking import check_given
from unkernel.learners.progress import OnProgress, warn_caller
from unkernel.learners.targets import check_weights
from unkernel.models import Decision, LinearModel

_MOST_ORDINAL_CLASSES = 1024


def _has_thresholds(learner: Any) -> bool:
    if not hasattr(learner, "thresholds_"):
        raise AttributeError(
            "predict gives ordinal classes once fit_thresholds has been called; "
            "decision_function gives scores"
        )
    return True


class RankSVM(LinearLearner):
    """A linear support vector machine that learns an order.

    Solves, over the m pairs (i, j) of rows with y_i > y_j in the same group,

        min_w  1/2 |w|^2 + C (n / m) sum over pairs of max(0, 1 - (w'x_i - w'x_j))

    by cutting planes in O(n log n) per pass, for any number of ranks: the pairs are never listed. The C of
    Joachims' paper is ``n C``, as for ``CuttingPlaneSVC``; a program that sums over pairs has ``C n / m``.
    With two labels and no groups this optimises the area under the ROC curve.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the pairs that are not in order, as if each row had a loss of its own.
    pair_weight : dict, default=None
        Weights of classes of pairs, by (higher label, lower label); 1 for those that are not named.
    tol : float, default=1e-3
        Relative gap at which training stops: (P - D) / P <= tol, P being the objective and D a lower bound
        of its minimum.
    max_iter : int, default=1000
        Passes over the training set, at most.
    max_cuts : int, default=200
        Cuts that are kept; each takes 8 bytes per feature.
    warm_start : bool, default=False
        Start the next fit from the weights of this one.
    checkpoint : path, default=None
        A folder where cuts are kept while training: a run that was killed goes on from its last pass when
        it is started again with the same rows. It is emptied when training ends.
    cache : path, default=None
        The file for the packed copy of rows that are trained on from files; by default it lies beside the
        first of these, with ``.rows`` after its name.
    n_jobs : int or None, default=None
        Threads; None is 1 and -1 is all. The result does not depend on it.
    verbose : int, default=0
        1 says how it ended; 2 adds one line per second.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    ranks_ : ndarray
        The labels, ascending.
    thresholds_ : ndarray of shape (n_ranks - 1,)
        After :meth:`fit_thresholds`.
    n_features_in_ : int
    objective_ : float
    gap_ : float
        Certified relative duality gap.
    n_iter_ : int
        Passes over the training set.

    Examples
    --------
    >>> from unkernel import RankSVM
    >>> ranker = RankSVM().fit([[0.0], [1.0], [2.0], [9.0]], [1, 2, 3, 4])
    >>> ranker.score([[5.0], [3.0], [4.0]], [3, 1, 2])
    1.0
    >>> ranker.fit_thresholds([[0.0], [1.0], [2.0], [9.0]], [1, 2, 3, 4]).predict([[1.2], [7.0]])
    array([2, 4])
    """

    _kind = "RankSVM"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearLearner._parameter_constraints,
        "pair_weight": [dict, None],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        pair_weight: PairWeight | None = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_cuts: int = 200,
        warm_start: bool = False,
        checkpoint: Any = None,
        cache: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.pair_weight = pair_weight
        self.tol = tol
        self.max_iter = max_iter
        self.max_cuts = max_cuts
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.cache = cache
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train on rows X with labels y, of which larger ones should have larger scores.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or path
            A path, a pattern such as ``"part-*.svm.gz"`` or a list of paths names svmlight files with their
            own labels and, perhaps, ``qid:`` fields. They may be larger than memory.
        y : array-like of numbers of shape (n_samples,)
            None for files.
        qid : array-like of shape (n_samples,), default=None
            Groups: only rows of the same one are compared. Rows of a group need not stand together.
        sample_weight : array-like of shape (n_samples,), default=None
            A pair has the product of its rows' weights.
        """
        fitted: Self = self.fit_reporting(X, y, qid, sample_weight, on_progress=None)
        return fitted

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit_reporting(
        self,
        X: Any,
        y: ArrayLike | None,
        qid: ArrayLike | None,
        sample_weight: ArrayLike | None,
        *,
        on_progress: OnProgress | None,
        on_reading: Any = None,
        zero_based: Any = "auto",
    ) -> Self:
        """``fit``, with functions that are shown the progress of training and of reading."""
        rows, labels, groups = self._rows(X, y, qid, on_reading, zero_based)
        weights = None if sample_weight is None else check_weights(sample_weight, labels)
        ranking = ranking_of(labels, groups, weights, self.pair_weight)
        self._note_ranking(labels, groups, weights)
        self._fit_rows(rows, LocalMinimiser(rows, 0.0), ranking, on_progress)
        return self

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def path(
        self,
        X: Any,
        y: ArrayLike | None,
        Cs: Iterable[float],
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> list[Self]:
        """Fit for several values of C, each from the cuts of the one before.

        Cuts hold for every C, so a path costs little more than its hardest value.

        Parameters
        ----------
        X, y, qid, sample_weight
            As in :meth:`fit`.
        Cs : iterable of float
            Best in ascending order.

        Returns
        -------
        list of RankSVM
            One fitted copy per C.
        """
        if self.checkpoint is not None:
            raise ValueError("path keeps no checkpoint: leave it out")
        prepared = clone(self)
        rows, labels, groups = prepared._rows(X, y, qid, None, "auto")
        weights = None if sample_weight is None else check_weights(sample_weight, labels)
        prepared._note_ranking(labels, groups, weights)
        ranking = ranking_of(labels, groups, weights, self.pair_weight)
        minimiser = LocalMinimiser(rows, 0.0)
        bundle, start = Bundle(minimiser.dimension, int(self.max_cuts)), None
        fitted = []
        for copy in self._copies(Cs):
            copy._prepared_like(prepared)
            start = copy._fit_rows(rows, minimiser, ranking, None, bundle=bundle, start=start).weights
            fitted.append(copy)
        return fitted

    def _note_ranking(
        self, labels: NDArray[Any], groups: NDArray[Any] | None, weights: NDArray[np.float64] | None
    ) -> None:
        """What later questions need of the labels: the ranks, and whether there were groups."""
        self.ranks_ = counted_ranks(labels, weights)
        self._has_groups = groups is not None
        for name in ("thresholds_", "classes_"):  # of an earlier fit
            if hasattr(self, name):
                delattr(self, name)

    def _fit_rows(
        self,
        rows: TrainingRows,
        minimiser: Minimiser,
        ranking: dict[str, Any],
        on_progress: OnProgress | None,
        *,
        bundle: Bundle | None = None,
        start: NDArray[np.float64] | None = None,
    ) -> Solution:
        options = self._solver_options(on_progress, 0.0)
        if start is None:
            start = self._last_weights(rows, np.empty(0), 0, 0.0)
        solution = self._solve(rows, minimiser, options, ranking, bundle=bundle, start=start)
        facts: dict[str, Any] = {"groups": self._has_groups}
        if len(self.ranks_) <= _MOST_ORDINAL_CLASSES:
            facts["ranks"] = self.ranks_.tolist()
        decision = Decision("regression", np.empty(0, np.int64), ranking=True)
        self._keep_weights([solution], [rows.to_columns(solution.weights)], [0.0], decision, facts)
        return solution

    def _solve(
        self,
        rows: TrainingRows,
        minimiser: Minimiser,
        options: SolverOptions,
        ranking: dict[str, Any],
        *,
        bundle: Bundle | None,
        start: NDArray[np.float64] | None,
    ) -> Solution:
        identity = rows.identity | {"objective": "pairs"}
        if options.checkpoint is not None:
            identity |= {
                "labels": checksum(value for value in ranking.values() if isinstance(value, np.ndarray))
            }
        oracle: Oracle = ordinal_oracle(**ranking, accuracy=pair_accuracy(self.tol))
        return solve_by_cuts(minimiser, oracle, options, identity=identity, bundle=bundle, start=start)

    def _restore(self, model: Any) -> None:
        super()._restore(model)
        self._has_groups = model.origin.get("groups") is True
        if isinstance(ranks := model.origin.get("ranks"), list):
            self.ranks_ = np.array(ranks)
        if model.decision.scheme == "ordinal":
            self.ranks_ = self.classes_
            self.thresholds_ = model.decision.thresholds

    def _rows(
        self, X: Any, y: ArrayLike | None, qid: ArrayLike | None, on_reading: Any, zero_based: Any
    ) -> tuple[TrainingRows, NDArray[Any], NDArray[Any] | None]:
        if is_path(X):
            if y is not None or qid is not None:
                raise ValueError("files have their own labels and groups: y and qid must be None")
            rows, opened = self._rows_in_files(X, on_reading, zero_based)
            return rows, opened.y, opened.qid
        check_given(X, y, qid)
        matrix, labels = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, accept_large_sparse=True, y_numeric=True
        )
        check_not_text(labels)
        assert_all_finite(labels, input_name="y")  # None has become NaN
        groups = check_groups(qid, matrix)
        return self._rows_in_memory(matrix), labels, groups

    @property
    def coef_(self) -> NDArray[np.float64]:
        """One weight per feature."""
        weights: NDArray[np.float64] = self._linear_weights()[0][0]
        return weights

    @property
    def intercept_(self) -> Any:
        """Always 0: only the order of scores counts."""
        return float(self._linear_weights()[1][0])

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """The share of pairs that the scores have in order; equal scores count half.

        Only pairs of rows with different labels and, if there are groups, of the same group count. For two
        labels this is the area under the ROC curve. A ranker that was fitted with groups warns when it is
        scored without: pairs of different groups, which it never learned to order, would count then.
        """
        scores = self.decision_function(X)
        self._warn_without_groups(qid, "score")
        labels = check_numbers(y)
        check_consistent_length(scores, labels)
        weights = None if sample_weight is None else check_weights(sample_weight, scores)
        return share_in_order(labels, scores, check_groups(qid, scores), weights, self.pair_weight)

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
        """NDCG@k of the scores; see :func:`unkernel.cutplane.ndcg_score` for its conventions."""
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
        """Find the scores that divide the labels, so that :meth:`predict` can name them.

        The thresholds minimise the absolute error, counted in ranks, on these rows: the training rows, or
        better ones that were held out. Labels must be among those that the order was learned from.
        """
        check_is_fitted(self)
        scores = self.decision_function(X)
        labels = check_numbers(y)
        check_consistent_length(scores, labels)
        if len(self.ranks_) > _MOST_ORDINAL_CLASSES:
            raise ValueError(
                f"there are {len(self.ranks_)} labels, and thresholds are for at most {_MOST_ORDINAL_CLASSES}"
            )
        unknown = ~np.isin(labels, self.ranks_)
        if unknown.any():
            raise ValueError(f"y has labels that fit did not see: {np.unique(labels[unknown])[:8].tolist()}")
        weights = np.ones(len(labels)) if sample_weight is None else check_weights(sample_weight, scores)
        ranks = np.searchsorted(self.ranks_, labels)
        self.thresholds_ = best_thresholds(scores, ranks, weights, len(self.ranks_))
        classes = self.ranks_.astype(np.int64) if _all_whole(self.ranks_) else self.ranks_
        decision = Decision("ordinal", classes, thresholds=self.thresholds_, ranking=True)
        self.classes_ = classes
        self._set_model(replace(cast(LinearModel, self.model_), decision=decision))
        return self

    @available_if(_has_thresholds)  # type: ignore[untyped-decorator]
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The label of each row; only after :meth:`fit_thresholds`."""
        return super().predict(X)


def _all_whole(labels: NDArray[Any]) -> bool:
    return bool(np.array_equal(labels, np.round(labels)) and np.abs(labels).max() < 2**53)
