"""Ranking SVMs: ordinal regression by cutting planes, on features or on their conjunctions."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context, clone
from sklearn.utils import assert_all_finite, check_consistent_length
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from unkernel._core import Bundle, Oracle, ordinal_oracle
from unkernel.cutplane._base import LinearLearner
from unkernel.cutplane.mapped import MappedMinimiser, PolynomialMap, RowCoefficients, kernel_of, with_decision
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
from unkernel.cutplane.thresholds import all_whole, best_thresholds
from unkernel.cutplane.training import (
    LocalMinimiser,
    Minimiser,
    Solution,
    TrainingRows,
    checksum,
    is_path,
    pair_accuracy,
    solve_by_cuts,
)
from unkernel.data.rows.checking import check_given
from unkernel.data.threads import thread_count
from unkernel.errors import warn_caller
from unkernel.learners.progress import OnProgress
from unkernel.learners.targets import check_weights
from unkernel.models import ConjunctionModel, Decision, KernelModel

_MOST_ORDINAL_CLASSES = 1024
_BY_SCORE = Decision("regression", np.empty(0, np.int64), ranking=True)


def _has_thresholds(learner: Any) -> bool:
    if not hasattr(learner, "thresholds_"):
        raise AttributeError(
            "predict gives ordinal classes once fit_thresholds has been called; "
            "decision_function gives scores"
        )
    return True


class RankSVM(LinearLearner):
    """A support vector machine that learns an order, linear or on conjunctions of features.

    Solves, over the m pairs (i, j) of rows with y_i > y_j in the same group,

        min_w  1/2 |w|^2 + C (n / m) sum over pairs of max(0, 1 - (w'phi(x_i) - w'phi(x_j)))

    by cutting planes in O(n log n) per pass, for any number of ranks: the pairs are never listed. phi(x) is
    x itself, or, for degree 2 and 3, the feature map of the kernel ``(gamma <x, z> + coef0) ** degree``. The
    C of Joachims' paper is ``n C``, as for ``CuttingPlaneSVC``; a program that sums over pairs has
    ``C n / m``. With two labels and no groups this optimises the area under the ROC curve.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the pairs that are not in order, as if each row had a loss of its own.
    degree : {1, 2, 3}, default=1
        Features in a conjunction, at most. 1 is a linear ranking; 2 and 3 need rows in memory.
    gamma : {"scale", "auto"} or float, default="scale"
        Factor of the inner product for degree 2 and 3, as in ``PolySVC``: ``1 / (n_features * X.var())``,
        ``1 / n_features`` or a value.
    coef0 : float, default=1.0
        Constant of the kernel for degree 2 and 3, not negative.
    pair_weight : {"uniform", "ndcg"} or dict, default="uniform"
        "ndcg" weighs a pair by what NDCG loses if its rows are swapped in the best order of their group;
        labels are relevance then, with gains of ``2 ** y - 1``. A dict has the weights of classes of pairs,
        by (higher label, lower label); 1 for those that are not named. None is "uniform".
    tol : float, default=1e-3
        Relative gap at which training stops: (P - D) / P <= tol, P being the objective and D a lower bound
        of its minimum.
    max_iter : int, default=1000
        Passes over the training set, at most.
    max_cuts : int, default=200
        Cuts that are kept; each takes 8 bytes per feature, or 16 per row for degree 2 and 3.
    warm_start : bool, default=False
        Start the next fit from the weights of this one; for degree 2 and 3 from the part of them that rows
        of both fits have.
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
        Only for degree 1.
    gamma_ : float
        The value of gamma that was used; only for degree 2 and 3.
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
        "degree": [Interval(Integral, 1, 3, closed="both")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
        "coef0": [Interval(Real, 0, None, closed="left")],
        "pair_weight": [StrOptions({"uniform", "ndcg"}), dict, None],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        degree: int = 1,
        gamma: float | str = "scale",
        coef0: float = 1.0,
        pair_weight: PairWeight | None = "uniform",
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
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
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
        rows, ranking = self._training_set(
            X, y, qid, sample_weight, on_reading=on_reading, zero_based=zero_based
        )
        if isinstance(rows, MappedMinimiser):
            start = rows.start(self._former_coefficients(rows), thread_count(self.n_jobs))
            self._fit_mapped(rows, ranking, on_progress, start=start)
        else:
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
        rows, ranking = prepared._training_set(X, y, qid, sample_weight)
        minimiser = rows if isinstance(rows, MappedMinimiser) else LocalMinimiser(rows, 0.0)
        bundle, start = minimiser.new_bundle(int(self.max_cuts)), None
        fitted = []
        for copy in self._copies(Cs):
            copy._prepared_like(prepared)
            if isinstance(rows, MappedMinimiser):
                solution = copy._fit_mapped(rows, ranking, None, bundle=bundle, start=start)
            else:
                solution = copy._fit_rows(rows, minimiser, ranking, None, bundle=bundle, start=start)
            start = solution.weights
            fitted.append(copy)
        return fitted

    def _training_set(
        self,
        X: Any,
        y: ArrayLike | None,
        qid: ArrayLike | None,
        sample_weight: ArrayLike | None,
        *,
        on_reading: Any = None,
        zero_based: Any = "auto",
    ) -> tuple[TrainingRows | MappedMinimiser, dict[str, Any]]:
        """The rows as the solver takes them, and their order."""
        matrix, labels, groups = self._rows(X, y, qid, on_reading, zero_based)
        weights = None if sample_weight is None else check_weights(sample_weight, labels)
        ranking = ranking_of(labels, groups, weights, self.pair_weight)
        self._note_ranking(labels, groups, weights)
        if isinstance(matrix, TrainingRows):
            return matrix, ranking
        if self.degree == 1:
            return self._rows_in_memory(matrix), ranking
        wanted = PolynomialMap(int(self.degree), self.gamma, float(self.coef0))
        identify = self.checkpoint is not None
        mapped = MappedMinimiser.of(matrix, weights, wanted, thread_count(self.n_jobs), identify=identify)
        self.gamma_ = mapped.kernel.gamma
        return mapped, ranking

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
        solution = solve_by_cuts(
            minimiser,
            self._oracle(ranking),
            options,
            identity=self._identity(rows.identity, ranking),
            bundle=bundle,
            start=start,
        )
        columns = [rows.to_columns(solution.weights)]
        self._keep_weights([solution], columns, [0.0], _BY_SCORE, self._facts())
        return solution

    def _fit_mapped(
        self,
        rows: MappedMinimiser,
        ranking: dict[str, Any],
        on_progress: OnProgress | None,
        *,
        bundle: Bundle | None = None,
        start: NDArray[np.float64] | None = None,
    ) -> Solution:
        options = self._solver_options(on_progress, 0.0)
        oracle = self._oracle(ranking)
        identity = self._identity(rows.identity, ranking)
        found = solve_by_cuts(rows, oracle, options, identity=identity, bundle=bundle, start=start)
        solution = rows.verified(found, oracle, options)
        threads = thread_count(self.n_jobs)
        self._keep(
            [solution],
            lambda origin: rows.model(solution.weights, _BY_SCORE, threads, origin),
            facts=self._facts() | {"storage": rows.mapped.storage},
            about=f"{rows.rows.rows} distinct rows, storage={rows.mapped.storage}; ",
        )
        self._end_checkpoints([solution], any_weights=bool(solution.weights.any()))
        if self.warm_start:
            self._coefficients = rows.kept(solution.weights)
        return solution

    def _former_coefficients(self, rows: MappedMinimiser) -> RowCoefficients | None:
        """Where a warm start begins: the same map must have been used before."""
        model = getattr(self, "model_", None)
        of_map = isinstance(model, ConjunctionModel | KernelModel) and kernel_of(model) == rows.kernel
        return getattr(self, "_coefficients", None) if self.warm_start and of_map else None

    def _oracle(self, ranking: dict[str, Any]) -> Oracle:
        oracle: Oracle = ordinal_oracle(**ranking, accuracy=pair_accuracy(self.tol))
        return oracle

    def _identity(self, rows: dict[str, Any], ranking: dict[str, Any]) -> dict[str, Any]:
        """What a checkpoint belongs to."""
        identity = rows | {"objective": "pairs"}
        if self.checkpoint is None:
            return identity
        arrays = (value for value in ranking.values() if isinstance(value, np.ndarray))
        return identity | {"labels": checksum(arrays)}

    def _facts(self) -> dict[str, Any]:
        """What a model tells of its training besides C."""
        facts: dict[str, Any] = {"groups": self._has_groups}
        if len(self.ranks_) <= _MOST_ORDINAL_CLASSES:
            facts["ranks"] = self.ranks_.tolist()
        return facts

    def _restore(self, model: Any) -> None:
        super()._restore(model)
        if isinstance(model, ConjunctionModel | KernelModel):
            self.gamma_ = kernel_of(model).gamma
        self._has_groups = model.origin.get("groups") is True
        if isinstance(ranks := model.origin.get("ranks"), list):
            self.ranks_ = np.array(ranks)
        if model.decision.scheme == "ordinal":
            self.ranks_ = self.classes_
            self.thresholds_ = model.decision.thresholds

    def _rows(
        self, X: Any, y: ArrayLike | None, qid: ArrayLike | None, on_reading: Any, zero_based: Any
    ) -> tuple[Any, NDArray[Any], NDArray[Any] | None]:
        if is_path(X):
            if self.degree > 1:
                raise ValueError(
                    f"degree={self.degree} needs rows in memory: read the files with read_svmlight"
                )
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
        return matrix, labels, groups

    @property
    def coef_(self) -> NDArray[np.float64]:
        """One weight per feature; only for degree 1."""
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
        classes = self.ranks_.astype(np.int64) if all_whole(self.ranks_) else self.ranks_
        decision = Decision("ordinal", classes, thresholds=self.thresholds_, ranking=True)
        self.classes_ = classes
        self._set_model(with_decision(self.model_, decision))
        return self

    @available_if(_has_thresholds)  # type: ignore[untyped-decorator]
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The label of each row; only after :meth:`fit_thresholds`."""
        return super().predict(X)
