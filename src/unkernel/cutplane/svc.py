"""Linear SVMs by cutting planes."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from unkernel._core import Bundle, Oracle, f1_oracle, margin_oracle, ordinal_oracle, precision_oracle
from unkernel.cutplane._base import LinearLearner
from unkernel.cutplane.solver_run import (
    LocalMinimiser,
    Minimiser,
    Solution,
    SolverOptions,
    TrainingRows,
    compute_checksum,
    compute_pair_accuracy,
    is_path,
    merge_equal_rows,
    solve_by_cuts,
    solve_by_dual,
)
from unkernel.cutplane.targets import OneVsRestTargets, to_whole_labels
from unkernel.data.rows.csr import CsrRows, canonical_rows
from unkernel.data.rows.row_checks import check_inputs
from unkernel.learners.prepared_classifier import PreparedClassifier
from unkernel.learners.progress import OnProgress
from unkernel.learners.targets import (
    check_single_target,
    check_weights,
    compute_class_weights,
    encode_classes,
)
from unkernel.models import Decision

ProblemStart = tuple[Bundle, NDArray[np.float64] | None]  # the cuts so far, and the initial weights

OBJECTIVES = ("error_rate", "f1", "break_even", "precision_at_k", "roc_area")
# With fewer rows, "auto" uses cutting planes: they take milliseconds, and ignore the order of rows.
_ROWS_FOR_DUAL = 1000


class CuttingPlaneSVC(PreparedClassifier, LinearLearner):
    r"""Linear support vector classification for large data sets, in memory or in files.

    With a constant ``intercept_scaling`` appended to each row, the estimator solves

    .. math:: \min_w \; \tfrac{1}{2} \|w\|^2 + C \sum_i \ell(1 - y_i w^\top x_i)

    by cutting planes: each iteration makes one pass over the rows and adds one linear lower bound of the
    loss. The number of iterations does not grow with the number of rows. As in scikit-learn's ``LinearSVC``,
    the intercept is regularised like every other weight, and ``C`` has the same meaning. The C of Joachims'
    papers is ``n_samples`` times as large. Problems with more than two classes are solved one versus the
    rest.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss; larger values fit the training set more closely.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        Loss of a row that violates the margin, for ``objective="error_rate"``.
    objective : str, default="error_rate"
        The measure to optimise, as in SVMperf: ``"error_rate"``, the area under the ROC curve
        (``"roc_area"``), the F1 score (``"f1"``), the precision at the point where it equals the recall
        (``"break_even"``), or the precision among the ``k`` highest scores (``"precision_at_k"``).
    k : int, default=None
        Number of highest-scoring rows that count, for ``objective="precision_at_k"``. The objective works
        best if `k` is near the number of positive rows and features are centred. Otherwise the optimum may
        be a model that gives all rows the same score.
    solver : {"auto", "cutting_plane", "dual"}, default="auto"
        Cutting planes or dual coordinate descent. "dual" needs ``objective="error_rate"`` and rows in
        memory. It is often faster, especially on text with a large C. "auto" chooses "dual" where it is
        possible and there are at least 1,000 rows. Both solvers stop at the same certified gap.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    intercept_scaling : float, default=1.0
        Value of the constant feature; the larger it is, the less the intercept is regularised.
    tol : float, default=1e-3
        Relative gap at which training stops: (P - D) / P <= tol, where P is the objective and D a lower bound
        of its minimum.
    max_iter : int, default=1000
        Largest number of passes over the training set.
    max_cuts : int, default=200
        Largest number of stored cuts; each takes 8 bytes per feature.
    class_weight : dict, "balanced" or None, default=None
        Factor of C for each class; "balanced" gives all classes the same total weight. Only for
        ``objective="error_rate"``.
    warm_start : bool, default=False
        Whether the next ``fit`` starts from the weights of the previous one.
    checkpoint : path, default=None
        Folder in which to keep the cuts during training. If training is interrupted, the next ``fit`` on the
        same rows continues after the last pass. The folder is emptied when training ends.
    cache : path, default=None
        File for the packed copy of rows that are read from files; by default, ``.rows`` is appended to the
        name of the first of these files.
    n_jobs : int or None, default=None
        Number of threads; None means 1 and -1 means all processors. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the order in which ``solver="dual"`` visits rows.
    verbose : int, default=0
        1 prints how training ended; 2 also prints one line per second.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if ``X`` had them.
    objective_ : float
        Primal objective, summed over the one-versus-rest problems.
    gap_ : float
        Certified relative duality gap, the largest over all problems.
    n_iter_ : int
        Passes over the training set, the largest number over all problems.
    history_ : History
        Objective and lower bound of the optimum, pass by pass; ``to_frame()`` returns a pandas DataFrame.
    solver_ : str
        The solver that was used.
    model_ : LinearModel
        The fitted model; see :meth:`to_model`.

    See Also
    --------
    PolySVC : Support vector classification on conjunctions of features.
    RankSVM : Learning to rank with the same solver.
    unkernel.distributed.DaskCuttingPlaneSVC : The same estimator on a Dask cluster.

    Notes
    -----
    The objectives ``"roc_area"``, ``"break_even"`` and ``"precision_at_k"`` depend only on the order of the
    scores. For these objectives, the intercept is set after training: it makes as many training scores
    positive as there are positive rows (or ``k``).

    References
    ----------
    .. [1] T. Joachims, "Training linear SVMs in linear time", KDD 2006.
    .. [2] T. Joachims, "A support vector method for multivariate performance measures", ICML 2005.

    Examples
    --------
    >>> from unkernel import CuttingPlaneSVC
    >>> clf = CuttingPlaneSVC(C=10).fit([[0, 0], [1, 0], [2, 0]], [0, 0, 1])
    >>> clf.predict([[3, 1], [0, 1]])
    array([1, 0])
    >>> clf.gap_ <= clf.tol
    True
    """

    _kind = "CuttingPlaneSVC"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearLearner._parameter_constraints,
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "objective": [StrOptions(set(OBJECTIVES))],
        "k": [Interval(Integral, 1, None, closed="left"), None],
        "solver": [StrOptions({"auto", "cutting_plane", "dual"})],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "hinge",
        objective: str = "error_rate",
        k: int | None = None,
        solver: str = "auto",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_cuts: int = 200,
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        checkpoint: Any = None,
        cache: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self._set_parameters(locals())

    def _clone_for_path(self) -> Self:
        copy = super()._clone_for_path()
        if hasattr(copy, "solver"):  # estimators on a cluster have no such parameter
            copy.solver = "cutting_plane"
        return copy

    def _prepare(
        self, X: Any, y: Any, sample_weight: Any, *, on_reading: Any = None, zero_based: Any = "auto"
    ) -> Any:
        """Return the rows in the form that the solver takes, and the class and the cost of each row."""
        matrix, labels = self._read_rows(X, y, on_reading, zero_based)
        weights = None if sample_weight is None else check_weights(sample_weight, labels)
        codes = self._check_targets(labels, weights)
        if isinstance(matrix, TrainingRows):
            rows = matrix
        else:
            order = None
            if self._may_use_dual(matrix.shape[0]):
                order, codes, weights = merge_equal_rows(matrix, codes, weights)
            rows = self._pack_rows(matrix, order)
        self.solver_ = self._choose_solver(rows)
        return rows, codes, self._compute_costs(codes, weights)

    def _train_on(
        self, examples: Any, start: list[ProblemStart] | None, on_progress: OnProgress | None
    ) -> list[ProblemStart]:
        rows, codes, costs = examples
        options = self._make_solver_options(on_progress, self._get_intercept_feature())
        minimiser = LocalMinimiser(rows, options.intercept)
        start = start or self._start_problems(minimiser)
        solutions, shifts = self._solve_problems(minimiser, options, codes, costs, start)
        self._finish_with_solutions(rows, solutions, shifts)
        return make_next_start(start, solutions)

    def _start_problems(self, minimiser: Minimiser) -> list[ProblemStart]:
        return [(minimiser.new_bundle(int(self.max_cuts)), None) for _ in self._list_problems()]

    def _solve_problems(
        self,
        minimiser: Minimiser,
        options: SolverOptions,
        codes: NDArray[np.int32],
        costs: NDArray[np.float64] | None,
        start: list[ProblemStart],
    ) -> tuple[list[Solution], list[float]]:
        """Return the solution of each problem, and the shift of each problem's scores."""
        solutions = [
            self._solve(minimiser, options, OneVsRestTargets(codes, costs, problem), bundle, weights)
            for problem, (bundle, weights) in zip(self._list_problems(), start, strict=True)
        ]
        return solutions, self._compute_shifts(minimiser, options, codes, solutions)

    def _compute_shifts(
        self,
        minimiser: Minimiser,
        options: SolverOptions,
        codes: NDArray[np.int32],
        solutions: list[Solution],
    ) -> list[float]:
        """Return the shift that gives each problem the right number of positive scores.

        Only objectives that depend on the order of scores alone need shifts; for others, shifts are 0.
        """
        if self.objective in ("error_rate", "f1") or not self.fit_intercept:
            return [0.0] * len(solutions)
        shifts = []
        for problem, solution in zip(self._list_problems(), solutions, strict=True):
            scores = np.sort(minimiser.scores(solution.weights, options.threads))
            positives = int(OneVsRestTargets(codes, None, problem).positive().sum())
            n_positive = int(self.k or 0) if self.objective == "precision_at_k" else positives
            n_negative = len(scores) - n_positive
            lowest_positive = scores[n_negative] if n_negative < len(scores) else scores[-1]
            if n_negative > 0:
                shifts.append(-float(scores[n_negative - 1] + lowest_positive) / 2)
            else:
                shifts.append(1.0 - float(scores[0]))
        return shifts

    def _read_rows(
        self, X: Any, y: ArrayLike | None, on_reading: Any, zero_based: Any
    ) -> tuple[TrainingRows | CsrRows, NDArray[Any]]:
        """Return the rows and their labels; rows from files are packed."""
        if is_path(X):
            if y is not None:
                raise ValueError("files have their own labels: y must be None")
            rows, opened = self._open_row_files(X, on_reading, zero_based)
            labels = to_whole_labels(opened.y)
            check_classification_targets(labels)
            return rows, labels
        check_inputs(X, y)
        check_single_target(y, self)
        matrix, labels = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, accept_large_sparse=True
        )
        check_classification_targets(labels)
        return canonical_rows(matrix), labels

    def _check_targets(self, labels: NDArray[Any], weights: NDArray[np.float64] | None) -> NDArray[np.int32]:
        """Set the classes, and return the class of each row, after checking the options."""
        self.classes_, codes = encode_classes(labels, weights, type(self).__name__)
        if self.objective == "error_rate":
            return codes
        if weights is not None or self.class_weight is not None:
            raise ValueError(f"objective={self.objective!r} takes neither sample_weight nor class_weight")
        if self.loss != "hinge":
            raise ValueError("loss='squared_hinge' is for objective='error_rate'")
        if self.objective == "precision_at_k" and self.k is None:
            raise ValueError("objective='precision_at_k' needs k")
        return codes

    def _may_use_dual(self, rows: int) -> bool:
        """Return whether ``"dual"`` may solve a problem of `rows` rows in memory."""
        if self.objective != "error_rate" or self.solver == "cutting_plane":
            return False
        return self.solver == "dual" or (rows >= _ROWS_FOR_DUAL and self.checkpoint is None)

    def _choose_solver(self, rows: TrainingRows) -> str:
        """Return the solver to use; raise a ``ValueError`` if it does not support the problem."""
        can_use_dual = self.objective == "error_rate" and not rows.is_file
        if self.solver == "dual" and not can_use_dual:
            raise ValueError("solver='dual' is for objective='error_rate' on rows in memory")
        if self.solver == "dual" and self.checkpoint is not None:
            raise ValueError("solver='dual' keeps no checkpoint: leave it out, or use solver='cutting_plane'")
        if self.solver != "auto":
            return str(self.solver)
        dual_is_faster = can_use_dual and rows.store.rows >= _ROWS_FOR_DUAL and self.checkpoint is None
        return "dual" if dual_is_faster and not self.warm_start else "cutting_plane"

    def _describe_shortfall(self) -> str:
        message = super()._describe_shortfall()
        slow_by_choice = getattr(self, "solver", "") == "cutting_plane" and self.objective == "error_rate"
        return message + (", or take solver='dual' for rows in memory" if slow_by_choice else "")

    def _get_intercept_feature(self) -> float:
        return float(self.intercept_scaling) if self.fit_intercept else 0.0

    def _list_problems(self) -> list[tuple[int, int]]:
        count = 1 if len(self.classes_) == 2 else len(self.classes_)
        return [(problem, count) for problem in range(count)]

    def _compute_costs(
        self, codes: NDArray[np.int32], weights: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        if weights is None and self.class_weight is None:
            return None
        factors = np.array(compute_class_weights(self.class_weight, self.classes_, codes, weights))
        return factors[codes] * (1.0 if weights is None else weights)

    def _solve(
        self,
        minimiser: Minimiser,
        options: SolverOptions,
        targets: OneVsRestTargets,
        bundle: Bundle,
        start: NDArray[np.float64] | None,
    ) -> Solution:
        """Solve one of the one-versus-rest problems."""
        rows, signed_costs = minimiser.rows, targets.signed_costs()
        if self.solver_ == "dual":
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            squared = self.loss == "squared_hinge"
            return solve_by_dual(rows, signed_costs, options, squared=squared, seed=seed, place=targets.place)
        identity = rows.identity | {"objective": self.objective, "loss": self.loss, "k": self.k}
        if options.checkpoint is not None:
            identity |= {"labels": compute_checksum([signed_costs]), "intercept": options.intercept}
        if start is None:
            start = self._find_start(rows, self.classes_, targets.place[0], options.intercept)
        oracle = self._make_oracle(targets.positive(), signed_costs)
        return solve_by_cuts(
            minimiser, oracle, options, identity=identity, place=targets.place, bundle=bundle, start=start
        )

    def _make_oracle(self, positive: NDArray[np.bool_], signed_costs: NDArray[np.float64]) -> Oracle:
        """Return the oracle of the objective, which computes losses and cuts from scores."""
        match self.objective:
            case "f1":
                return f1_oracle(positive)
            case "break_even":
                return precision_oracle(positive, int(positive.sum()))
            case "precision_at_k":
                return precision_oracle(positive, int(self.k or 0))
            case "roc_area":
                empty = np.empty(0)
                return ordinal_oracle(
                    positive.astype(np.int32),
                    rank_count=2,
                    groups=np.empty(0, np.int32),
                    weights=empty,
                    pair_weights=empty,
                    gains=empty,
                    discounts=empty,
                    accuracy=compute_pair_accuracy(self.tol),
                )
            case _:
                return margin_oracle(signed_costs, squared=self.loss == "squared_hinge")

    def _finish_with_solutions(
        self, rows: TrainingRows, solutions: list[Solution], shifts: list[float]
    ) -> None:
        constant = self._get_intercept_feature()
        columns = [rows.to_columns(solution.weights) for solution in solutions]
        intercepts = [
            (float(solution.weights[-1]) * constant if constant else 0.0) + shift
            for solution, shift in zip(solutions, shifts, strict=True)
        ]
        decision = Decision("binary" if len(solutions) == 1 else "one_vs_rest", self.classes_)
        facts = {"objective_name": self.objective, "loss": self.loss, "solver": self.solver_}
        self._finish_linear_fit(solutions, columns, intercepts, decision, facts)

    def _restore(self, model: Any) -> None:
        super()._restore(model)
        solver = model.origin.get("solver")
        if isinstance(solver, str):
            self.solver_ = solver

    @classmethod
    def _infer_parameters(cls, model: Any) -> dict[str, Any]:
        from_origin = {"objective": model.origin.get("objective_name"), "loss": model.origin.get("loss")}
        return super()._infer_parameters(model) | {k: v for k, v in from_origin.items() if v is not None}


def make_next_start(start: list[ProblemStart], solutions: list[Solution]) -> list[ProblemStart]:
    """Return the cuts and weights to start the next training on the same rows from."""
    return [(bundle, solution.weights) for (bundle, _), solution in zip(start, solutions, strict=True)]
