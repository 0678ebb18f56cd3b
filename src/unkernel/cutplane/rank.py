"""Ranking SVMs: ordinal regression by cutting planes."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_y, check_is_fitted, validate_data

from unkernel._core import Oracle, count_pairs, ordinal_oracle
from unkernel.cutplane._base import LinearLearner, linear_model
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
from unkernel.learners.base import OnProgress, check_weights
from unkernel.models import Decision

PairWeight = Mapping[tuple[float, float], float]

_MOST_ORDINAL_CLASSES = 1024
_MOST_WEIGHTED_RANKS = 1024


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

    by cutting planes in O(n log n) a pass, for any number of ranks: the pairs are never listed. The C of
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
        Cuts that are kept; each takes 8 bytes a feature.
    checkpoint : path, default=None
        A folder where cuts are kept while training: a run that was killed goes on from its last pass when
        it is started again with the same rows. It is emptied when training ends.
    cache : path, default=None
        Where the packed copy of training files is kept; None is beside the first of them.
    n_jobs : int or None, default=None
        Threads; None is 1 and -1 is all. The result does not depend on it.
    verbose : int, default=0
        1 says how it ended; 2 adds a line a second.

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
        return self._fit_rows(
            rows, LocalMinimiser(rows, 0.0), ranking, counted_ranks(labels, weights), on_progress
        )

    def _fit_rows(
        self,
        rows: TrainingRows,
        minimiser: Minimiser,
        ranking: dict[str, Any],
        ranks: NDArray[Any],
        on_progress: OnProgress | None,
    ) -> Self:
        self.ranks_ = ranks
        self._forget_thresholds()
        options = self._solver_options(on_progress, 0.0)
        solution = self._solve(rows, minimiser, options, ranking)
        model = linear_model(
            [rows.to_columns(solution.weights)],
            [0.0],
            Decision("regression", np.empty(0, np.int64), ranking=True),
            {"learner": "RankSVM"},
        )
        return self._keep([solution], model)

    def _solve(
        self, rows: TrainingRows, minimiser: Minimiser, options: SolverOptions, ranking: dict[str, Any]
    ) -> Solution:
        identity = rows.identity | {"objective": "pairs"}
        if options.checkpoint is not None:
            identity |= {
                "labels": checksum(value for value in ranking.values() if isinstance(value, np.ndarray))
            }
        oracle: Oracle = ordinal_oracle(**ranking, accuracy=pair_accuracy(self.tol))
        return solve_by_cuts(minimiser, oracle, options, identity=identity)

    def _rows(
        self, X: Any, y: ArrayLike | None, qid: ArrayLike | None, on_reading: Any, zero_based: Any
    ) -> tuple[TrainingRows, NDArray[Any], NDArray[Any] | None]:
        if is_path(X):
            if y is not None or qid is not None:
                raise ValueError("files have their own labels and groups: y and qid must be None")
            rows, opened = self._rows_in_files(X, on_reading, zero_based)
            return rows, opened.y, opened.qid
        matrix, labels = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, accept_large_sparse=True, y_numeric=True
        )
        _check_text(labels)
        groups = _groups(qid, matrix)
        return self._rows_in_memory(matrix), labels, groups

    def _forget_thresholds(self) -> None:
        if hasattr(self, "thresholds_"):
            del self.thresholds_

    @property
    def coef_(self) -> NDArray[np.float64]:
        """A weight a feature."""
        return self.to_model().weights[:, 0]

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """The share of pairs that the scores have in order; equal scores count half.

        Only pairs of rows with different labels and, if there are groups, of the same group count. For two
        labels this is the area under the ROC curve.
        """
        scores = self.decision_function(X)
        labels = _numbers(y)
        check_consistent_length(scores, labels)
        weights = None if sample_weight is None else check_weights(sample_weight, scores)
        return _share_in_order(labels, scores, _groups(qid, scores), weights, self.pair_weight)

    def fit_thresholds(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Find the scores that divide the labels, so that :meth:`predict` can name them.

        The thresholds minimise the absolute error, counted in ranks, on these rows: the training rows, or
        better ones that were held out. Labels must be among those that the order was learned from.
        """
        check_is_fitted(self)
        scores = self.decision_function(X)
        labels = _numbers(y)
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
        self.thresholds_ = _best_thresholds(scores, ranks, weights, len(self.ranks_))
        model = self.model_
        classes = self.ranks_.astype(np.int64) if _all_whole(self.ranks_) else self.ranks_
        decision = Decision("ordinal", classes, thresholds=self.thresholds_, ranking=True)
        self._set_model(type(model)(**(vars(model) | {"decision": decision})))
        return self

    @available_if(_has_thresholds)  # type: ignore[untyped-decorator]
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The label of each row; only after :meth:`fit_thresholds`."""
        return self._compiled.decision.choose(self._scores(X))


def ordered_pairs(
    y: ArrayLike, scores: ArrayLike, qid: ArrayLike | None = None, sample_weight: ArrayLike | None = None
) -> float:
    """The share of pairs of rows with different labels that scores have in order; equal scores count half.

    Parameters
    ----------
    y, scores : array-like of numbers of shape (n_samples,)
    qid : array-like of shape (n_samples,), default=None
        Groups: only rows of the same one are compared.
    sample_weight : array-like of shape (n_samples,), default=None
        A pair has the product of its rows' weights.

    Examples
    --------
    >>> from unkernel.cutplane import ordered_pairs
    >>> ordered_pairs([1, 2, 3], [0.1, 0.3, 0.2])
    0.6666666666666666
    """
    labels, found = _numbers(y), np.asarray(_numbers(scores), dtype=np.float64)
    check_consistent_length(labels, found)
    weights = None if sample_weight is None else check_weights(sample_weight, found)
    return _share_in_order(labels, found, _groups(qid, found), weights, None)


def _share_in_order(
    labels: NDArray[Any],
    scores: NDArray[np.float64],
    groups: NDArray[Any] | None,
    weights: NDArray[np.float64] | None,
    pair_weight: PairWeight | None,
) -> float:
    pairs, ordered = count_pairs(**ranking_of(labels, groups, weights, pair_weight), scores=scores)
    if not pairs > 0:
        raise ValueError("there is no pair to order: within the groups, all rows have the same label")
    return float(ordered / pairs)


def _numbers(y: ArrayLike) -> NDArray[np.float64]:
    labels: NDArray[np.float64] = _check_y(y, y_numeric=True)
    _check_text(labels)
    return labels


def _check_text(labels: NDArray[Any]) -> None:
    if labels.dtype.kind not in "biuf":  # text has an order as well, but hardly the one that is meant
        raise ValueError(f"y must be numeric, so that it has an order; got {labels.dtype}")


def _all_whole(labels: NDArray[Any]) -> bool:
    return bool(np.array_equal(labels, np.round(labels)) and np.abs(labels).max() < 2**53)


def _groups(qid: ArrayLike | None, rows: Any) -> NDArray[Any] | None:
    if qid is None:
        return None
    groups: NDArray[Any] = column_or_1d(qid)
    missing = groups != groups if groups.dtype.kind in "fO" else np.zeros(0, dtype=bool)  # noqa: PLR0124 (NaN)
    if np.any(missing) or (groups.dtype.kind == "O" and any(group is None for group in groups)):
        raise ValueError("qid has missing values: every row is of some group")
    check_consistent_length(rows, groups)
    return groups


def ranking_of(
    labels: NDArray[Any],
    groups: NDArray[Any] | None,
    weights: NDArray[np.float64] | None,
    pair_weight: PairWeight | None,
) -> dict[str, Any]:
    """The arguments of the core's oracle."""
    values, ranks = np.unique(labels, return_inverse=True)
    nothing = np.empty(0)
    return {
        "ranks": ranks.astype(np.int32),
        "rank_count": len(values),
        "groups": np.empty(0, np.int32)
        if groups is None
        else np.unique(groups, return_inverse=True)[1].astype(np.int32),
        "weights": nothing if weights is None else weights,
        "pair_weights": nothing if pair_weight is None else _pair_weights(values, pair_weight),
    }


def counted_ranks(labels: NDArray[Any], weights: NDArray[np.float64] | None) -> NDArray[Any]:
    """The labels that rows of positive weight have, ascending."""
    return np.unique(labels if weights is None else labels[weights > 0])


def _pair_weights(values: NDArray[Any], pair_weight: PairWeight) -> NDArray[np.float64]:
    if len(values) > _MOST_WEIGHTED_RANKS:
        raise ValueError(f"pair_weight is for at most {_MOST_WEIGHTED_RANKS} labels, got {len(values)}")
    table = np.ones((len(values), len(values)))
    place = {float(value): code for code, value in enumerate(values.tolist())}
    for pair, weight in pair_weight.items():
        numbers = (
            isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(label, Real) for label in pair)
        )
        if not (numbers and pair[0] > pair[1]):
            raise ValueError(f"pair_weight has keys (higher label, lower label), got {pair!r}")
        if not (isinstance(weight, Real) and weight >= 0 and np.isfinite(weight)):
            raise ValueError(f"pair_weight has finite weights that are not negative, got {weight!r}")
        high, low = place.get(float(pair[0])), place.get(float(pair[1]))
        if high is not None and low is not None:  # labels of other rows
            table[high, low] = weight
    return table.ravel()


def _best_thresholds(
    scores: NDArray[np.float64], ranks: NDArray[Any], weights: NDArray[np.float64], count: int
) -> NDArray[np.float64]:
    """For each border between ranks the score that puts the least weight on its wrong side.

    The absolute error in ranks is the sum over borders of what is on the wrong side, so each border is best
    chosen by itself, and best borders can be taken in order.
    """
    order = np.argsort(scores, kind="stable")
    sorted_scores, sorted_ranks, sorted_weights = scores[order], ranks[order], weights[order]
    # A border may lie before all rows, after all, or between two of different score.
    places = np.flatnonzero(np.diff(sorted_scores) > 0) + 1
    places = np.concatenate([[0], places, [len(scores)]])
    borders = _between(sorted_scores, places)
    thresholds = np.empty(count - 1)
    first = 0
    for rank in range(count - 1):
        above = sorted_ranks > rank
        wrong_below = np.concatenate([[0.0], np.cumsum(sorted_weights * above)])
        wrong_above = np.concatenate([np.cumsum((sorted_weights * ~above)[::-1])[::-1], [0.0]])
        errors = (wrong_below + wrong_above)[places]
        first += int(np.argmin(errors[first:]))
        thresholds[rank] = borders[first]
    return thresholds


def _between(scores: NDArray[np.float64], places: NDArray[np.intp]) -> NDArray[np.float64]:
    low, high = scores[places[1:-1] - 1], scores[places[1:-1]]
    middle = (low + high) / 2
    # A score on a border is below it, and neighbouring numbers have no middle.
    middle = np.where(middle < high, middle, low)
    margin = 1.0 + abs(scores[0]) + abs(scores[-1])
    return np.concatenate([[scores[0] - margin], middle, [scores[-1] + margin]])
