"""Ranking SVMs: ordinal regression by cutting planes, on features or on their conjunctions."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context, clone
from sklearn.utils import assert_all_finite
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

from unkernel._core import Bundle, Oracle, ordinal_oracle
from unkernel.cutplane._base import LinearLearner
from unkernel.cutplane.polynomial_rows import (
    MappedMinimiser,
    PolynomialMap,
    RowCoefficients,
    get_kernel,
)
from unkernel.cutplane.rank_predictor import MAX_ORDINAL_CLASSES, RankPredictor
from unkernel.cutplane.rankings import (
    PairWeight,
    check_groups,
    check_not_text,
    encode_ranking,
    list_ranks,
)
from unkernel.cutplane.solver_run import (
    LocalMinimiser,
    Solution,
    TrainingRows,
    compute_checksum,
    compute_pair_accuracy,
    is_path,
    solve_by_cuts,
)
from unkernel.data.rows.row_checks import check_inputs
from unkernel.data.threads import thread_count
from unkernel.learners.prepared_classifier import check_no_checkpoint
from unkernel.learners.progress import OnProgress
from unkernel.learners.targets import check_weights
from unkernel.models import ConjunctionModel, Decision, KernelModel

_BY_SCORE = Decision("regression", np.empty(0, np.int64), ranking=True)


class RankSVM(RankPredictor):
    r"""Support vector machine for learning to rank, linear or on conjunctions of features.

    A pair consists of two rows :math:`(i, j)` of the same group (query) with labels :math:`y_i > y_j`. Over
    all :math:`m` pairs of :math:`n` rows, the estimator solves

    .. math:: \min_w \; \tfrac{1}{2} \|w\|^2
              + C \tfrac{n}{m} \sum_{(i, j)} \max(0,\, 1 - w^\top (\phi(x_i) - \phi(x_j)))

    by cutting planes. A pass takes :math:`O(n \log n)` time for any number of ranks, because the pairs are
    never listed. :math:`\phi(x)` is :math:`x` itself or, for degree 2 and 3, the feature map of the kernel
    ``(gamma <x, z> + coef0) ** degree``. The C of Joachims' paper equals :math:`n C` here, as for
    :class:`CuttingPlaneSVC`. The C of programs that sum over pairs equals :math:`C n / m`. With two labels
    and no groups, the estimator optimises the area under the ROC curve.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss; larger values fit the training set more closely. The loss is scaled as if each
        row, instead of each pair, had one loss.
    degree : {1, 2, 3}, default=1
        Largest number of features in a conjunction. 1 gives a linear ranking; 2 and 3 need rows in memory.
    gamma : {"scale", "auto"} or float, default="scale"
        Factor of the inner product in the kernel, for degree 2 and 3: a number, "scale" for
        ``1 / (n_features * X.var())``, or "auto" for ``1 / n_features``.
    coef0 : float, default=1.0
        Constant of the kernel for degree 2 and 3; it must not be negative.
    pair_weight : {"uniform", "ndcg"} or dict, default="uniform"
        Weight of each pair: the same for all pairs ("uniform"), or the loss of NDCG if the two rows are
        swapped in the ideal order of their group ("ndcg"). With "ndcg", labels are relevance grades, with
        gains of ``2 ** y - 1``. A dict maps (higher label, lower label) to weights; pairs of labels that are
        not in the dict have weight 1. None means "uniform".
    tol : float, default=1e-3
        Relative gap at which training stops: (P - D) / P <= tol, where P is the objective and D a lower bound
        of its minimum.
    max_iter : int, default=1000
        Largest number of passes over the training set.
    max_cuts : int, default=200
        Largest number of stored cuts; each takes 8 bytes per feature or, for degree 2 and 3, 16 bytes per
        row.
    warm_start : bool, default=False
        Whether the next ``fit`` starts from the weights of the previous one. For degree 2 and 3, only the
        coefficients of rows that are in both training sets are used.
    checkpoint : path, default=None
        Folder in which to keep the cuts during training. If training is interrupted, the next ``fit`` on the
        same rows continues after the last pass. The folder is emptied when training ends.
    cache : path, default=None
        File for the packed copy of rows that are read from files; by default, ``.rows`` is appended to the
        name of the first of these files.
    n_jobs : int or None, default=None
        Number of threads; None means 1 and -1 means all processors. The result does not depend on it.
    verbose : int, default=0
        1 prints how training ended; 2 also prints one line per second.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features; only for degree 1.
    intercept_ : float
        Always 0, because a constant does not change the order of scores; only for degree 1.
    gamma_ : float
        The value of gamma that was used; only for degree 2 and 3.
    ranks_ : ndarray of shape (n_ranks,)
        The labels, in ascending order.
    thresholds_ : ndarray of shape (n_ranks - 1,)
        Scores that separate the labels; only after :meth:`fit_thresholds`.
    classes_ : ndarray of shape (n_ranks,)
        The labels that :meth:`predict` returns; only after :meth:`fit_thresholds`.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if ``X`` had them.
    objective_ : float
        Primal objective.
    gap_ : float
        Certified relative duality gap.
    n_iter_ : int
        Passes over the training set.
    history_ : History
        Objective and lower bound of the optimum, pass by pass; ``to_frame()`` returns a pandas DataFrame.
    model_ : LinearModel, ConjunctionModel or KernelModel
        The fitted model; see :meth:`to_model`.

    See Also
    --------
    unkernel.cutplane.ndcg_score : NDCG of scores, averaged over queries.
    unkernel.cutplane.ordered_pairs : Share of pairs that scores put in the right order.
    unkernel.distributed.DaskRankSVM : The same estimator on a Dask cluster.

    References
    ----------
    .. [1] T. Joachims, "Training linear SVMs in linear time", KDD 2006.

    Examples
    --------
    >>> from unkernel import RankSVM
    >>> X, y = [[0.0], [1.0], [2.0], [9.0]], [1, 2, 3, 4]
    >>> ranker = RankSVM().fit(X, y)
    >>> ranker.score([[5.0], [3.0], [4.0]], [3, 1, 2])
    1.0

    Predict the labels themselves instead of scores:

    >>> ranker.fit_thresholds(X, y).predict([[1.2], [7.0]])
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
        self._set_parameters(locals())

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
        """Fit the model: rows with larger labels should get larger scores.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or path
            Training rows. A path, a pattern such as ``"part-*.svm.gz"`` or a list of paths names svmlight
            files with labels and, optionally, ``qid:`` fields. Files may be larger than memory.
        y : array-like of numbers of shape (n_samples,), default=None
            Labels; None for files.
        qid : array-like of shape (n_samples,), default=None
            Groups (queries): only rows of the same group are compared. Rows of a group need not be adjacent.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; the weight of a pair is the product of the weights of its rows.

        Returns
        -------
        RankSVM
            The fitted estimator itself.
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
        """Fit the model and report progress while reading and training.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or path
            Training rows, as in :meth:`fit`.
        y : array-like of numbers of shape (n_samples,) or None
            Labels.
        qid : array-like of shape (n_samples,) or None
            Groups.
        sample_weight : array-like of shape (n_samples,) or None
            Weights of the rows.
        on_progress : callable or None
            Called with the state of the solver about twenty times per second.
        on_reading : callable, default=None
            Called with the progress of reading files.
        zero_based : bool or "auto", default="auto"
            Whether feature numbers in files start at 0.

        Returns
        -------
        RankSVM
            The fitted estimator itself.
        """
        minimiser, ranking = self._prepare(
            X, y, qid, sample_weight, on_reading=on_reading, zero_based=zero_based
        )
        self._train_on(minimiser, ranking, on_progress)
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
        """Fit one model for each of several values of C.

        Cuts are valid for every C. Each fit therefore starts from the cuts of the previous one, and the whole
        path takes little more time than its most difficult value of C alone.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or path
            Training rows, as in :meth:`fit`.
        y : array-like of numbers of shape (n_samples,) or None
            Labels; None for files.
        Cs : iterable of float
            Values of C; training is fastest if they ascend.
        qid : array-like of shape (n_samples,), default=None
            Groups: only rows of the same group are compared.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        list of RankSVM
            One fitted copy of this estimator for each C.
        """
        check_no_checkpoint(self)
        prepared = clone(self)
        minimiser, ranking = prepared._prepare(X, y, qid, sample_weight)
        bundle, start = minimiser.new_bundle(int(self.max_cuts)), None
        fitted = []
        for copy in self._copy_with_each(Cs, prepared):
            start = copy._train_on(minimiser, ranking, None, bundle=bundle, start=start).weights
            fitted.append(copy)
        return fitted

    def _prepare(
        self,
        X: Any,
        y: Any,
        qid: Any,
        sample_weight: Any,
        *,
        on_reading: Any = None,
        zero_based: Any = "auto",
    ) -> tuple[Any, Any]:
        """Return the minimiser for the rows, and the arguments of the core's ``ordinal_oracle``."""
        matrix, labels, groups = self._read_rows(X, y, qid, on_reading, zero_based)
        weights = None if sample_weight is None else check_weights(sample_weight, labels)
        ranking = encode_ranking(labels, groups, weights, self.pair_weight)
        self._set_ranking_attributes(labels, groups, weights)
        if self.degree == 1:
            rows = matrix if isinstance(matrix, TrainingRows) else self._pack_rows(matrix)
            return LocalMinimiser(rows, 0.0), ranking
        polynomial = PolynomialMap(int(self.degree), self.gamma, float(self.coef0))
        identify = self.checkpoint is not None
        mapped = MappedMinimiser.from_rows(
            matrix, weights, polynomial, thread_count(self.n_jobs), identify=identify
        )
        self.gamma_ = mapped.kernel.gamma
        return mapped, ranking

    def _set_ranking_attributes(
        self, labels: NDArray[Any], groups: NDArray[Any] | None, weights: NDArray[np.float64] | None
    ) -> None:
        """Set the fitted attributes that describe the ranking."""
        self.ranks_ = list_ranks(labels, weights)
        self._has_groups = groups is not None
        for name in ("thresholds_", "classes_"):  # from an earlier fit
            if hasattr(self, name):
                delattr(self, name)

    def _train_on(
        self,
        minimiser: Any,
        ranking: Any,
        on_progress: OnProgress | None,
        *,
        bundle: Bundle | None = None,
        start: NDArray[np.float64] | None = None,
    ) -> Solution:
        """Train, set the fitted attributes, and return the solution."""
        options, oracle = self._make_solver_options(on_progress, 0.0), self._make_oracle(ranking)
        if start is None:
            start = self._find_warm_start(minimiser)
        identity = self._describe_run(minimiser.identity, ranking)
        solution = solve_by_cuts(minimiser, oracle, options, identity=identity, bundle=bundle, start=start)
        if isinstance(minimiser, MappedMinimiser):
            solution = minimiser.recompute_objective(solution, oracle, options)
            self._finish_mapped_fit(minimiser, solution)
            return solution
        columns = [minimiser.rows.to_columns(solution.weights)]
        self._finish_linear_fit([solution], columns, [0.0], _BY_SCORE, self._training_facts())
        return solution

    def _finish_mapped_fit(self, rows: MappedMinimiser, solution: Solution) -> None:
        """Set the fitted attributes after training on mapped rows."""
        threads = thread_count(self.n_jobs)
        self._finish_fit(
            [solution],
            lambda origin: rows.make_model(solution.weights, _BY_SCORE, threads, origin),
            facts=self._training_facts() | {"storage": rows.mapped.storage},
            about=f"{rows.rows.rows} distinct rows, storage={rows.mapped.storage}; ",
        )
        self._remove_checkpoints([solution], has_weights=bool(solution.weights.any()))
        if self.warm_start:
            self._coefficients = rows.row_coefficients(solution.weights)

    def _find_warm_start(self, minimiser: Any) -> NDArray[np.float64] | None:
        if isinstance(minimiser, MappedMinimiser):
            former = self._find_former_coefficients(minimiser)
            return minimiser.make_start(former, thread_count(self.n_jobs))
        return self._find_start(minimiser.rows, np.empty(0), 0, 0.0)

    def _find_former_coefficients(self, rows: MappedMinimiser) -> RowCoefficients | None:
        """Return the coefficients of the last fit for a warm start; None if that fit used another map."""
        model = getattr(self, "model_", None)
        if not self.warm_start or not isinstance(model, ConjunctionModel | KernelModel):
            return None
        if get_kernel(model) != rows.kernel:
            return None
        return getattr(self, "_coefficients", None)

    def _make_oracle(self, ranking: dict[str, Any]) -> Oracle:
        oracle: Oracle = ordinal_oracle(**ranking, accuracy=compute_pair_accuracy(self.tol))
        return oracle

    def _describe_run(self, rows: dict[str, Any], ranking: dict[str, Any]) -> dict[str, Any]:
        """Return the identity of a run, as stored in its checkpoint."""
        identity = rows | {"objective": "pairs"}
        if self.checkpoint is None:
            return identity
        arrays = (value for value in ranking.values() if isinstance(value, np.ndarray))
        return identity | {"labels": compute_checksum(arrays)}

    def _training_facts(self) -> dict[str, Any]:
        """Return facts about the training that the model stores in addition to C."""
        facts: dict[str, Any] = {"groups": self._has_groups}
        if len(self.ranks_) <= MAX_ORDINAL_CLASSES:
            facts["ranks"] = self.ranks_.tolist()
        return facts

    def _restore(self, model: Any) -> None:
        super()._restore(model)
        if isinstance(model, ConjunctionModel | KernelModel):
            self.gamma_ = get_kernel(model).gamma
        self._has_groups = model.origin.get("groups") is True
        ranks = model.origin.get("ranks")
        if isinstance(ranks, list):
            self.ranks_ = np.array(ranks)
        if model.decision.scheme == "ordinal":
            self.ranks_ = self.classes_
            self.thresholds_ = model.decision.thresholds

    def _read_rows(
        self, X: Any, y: ArrayLike | None, qid: ArrayLike | None, on_reading: Any, zero_based: Any
    ) -> tuple[Any, NDArray[Any], NDArray[Any] | None]:
        """Return the rows, labels and groups; rows from files are packed."""
        if is_path(X):
            if self.degree > 1:
                raise ValueError(
                    f"degree={self.degree} needs rows in memory: read the files with read_svmlight"
                )
            if y is not None or qid is not None:
                raise ValueError("files have their own labels and groups: y and qid must be None")
            rows, opened = self._open_row_files(X, on_reading, zero_based)
            return rows, opened.y, opened.qid
        check_inputs(X, y, qid)
        matrix, labels = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, accept_large_sparse=True, y_numeric=True
        )
        check_not_text(labels)
        assert_all_finite(labels, input_name="y")  # missing labels are NaN after the conversion
        groups = check_groups(qid, matrix)
        return matrix, labels, groups

    @property
    def coef_(self) -> NDArray[np.float64]:
        """One weight per feature; only for degree 1."""
        weights: NDArray[np.float64] = self._linear_weights()[0][0]
        return weights

    @property
    def intercept_(self) -> Any:
        """Always 0, because only the order of scores matters."""
        return float(self._linear_weights()[1][0])
