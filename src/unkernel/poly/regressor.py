"""Regression on conjunctions of features: least squares, support vectors, quantiles and counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions

from unkernel._core import DistinctRows, PolySolution, logarithm_of_one
from unkernel.data.rows.csr import CsrRows
from unkernel.learners.base import Model
from unkernel.learners.progress import OnProgress
from unkernel.learners.targets import check_targets
from unkernel.models import ConjunctionModel, Decision, KernelModel
from unkernel.poly._base import PolyLearner, Start
from unkernel.poly.updates import Examples, UpdatableLearner

_LINEAR_LOSSES = ("absolute_error", "epsilon_insensitive", "quantile")
_EPSILON_LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive")
_SMOOTH_LOSSES = ("squared_error", "poisson")
_LOSSES = {"squared_epsilon_insensitive", *_LINEAR_LOSSES, *_SMOOTH_LOSSES}
_STORAGES_OF_COUNTS = ("auto", "on_the_fly", "condensed")
_LARGEST_COUNT = 1e15
_VALUES = Decision("regression", np.empty(0, dtype=np.int64))
_COUNTS = Decision("regression", np.empty(0, dtype=np.int64), link="log")


@dataclass(frozen=True, eq=False)
class RegressionSet:
    """The distinct rows, and `values`, the distinct targets, of which codes are indices.

    Values are targets minus the centre or, with the Poisson loss, targets divided by their mean.
    """

    rows: DistinctRows
    values: NDArray[np.float64]

    @property
    def factors(self) -> list[float]:
        """The factors of C per class: none."""
        return []


class PolyRegressor(RegressorMixin, UpdatableLearner):  # type: ignore[misc]
    r"""Regression with a polynomial kernel of degree 1, 2 or 3, trained like a linear model.

    The model is :math:`f(x) = w^\top \phi(x) + c`. Here, :math:`\phi(x)` contains all conjunctions of at most
    ``degree`` features, and the centre :math:`c` is the mean, the median or a quantile of the targets,
    depending on the loss. The estimator solves

    .. math:: \min_w \; \tfrac{1}{2} \|w\|^2 + C \sum_i \ell(y_i - f(x_i))

    (other penalties: see ``penalty``) and stops at a certified relative duality gap.

    With ``loss="poisson"``, the model predicts the mean of a count, :math:`\exp(f(x))`, and the centre is the
    logarithm of the mean of the targets.

    Parameters
    ----------
    degree : {1, 2, 3}, default=2
        Degree of the kernel: the largest number of features in a conjunction.
    C : float, default=1.0
        Weight of the loss; larger values fit the training set more closely.
    loss : str, default="squared_error"
        The loss of a prediction. For a residual :math:`r = y - f(x)`, it is:

        - ``"squared_error"``: :math:`r^2`. This is kernel ridge regression with ``alpha=1 / (2 * C)``.
        - ``"absolute_error"``: :math:`|r|`, which estimates the median.
        - ``"epsilon_insensitive"``: :math:`\max(|r| - \epsilon, 0)`, the loss of support vector regression.
        - ``"squared_epsilon_insensitive"``: :math:`\max(|r| - \epsilon, 0)^2`.
        - ``"quantile"``: :math:`\max(\tau r, (\tau - 1) r)`, which estimates the quantile :math:`\tau`.

        There is also a loss of counts:

        - ``"poisson"``: :math:`\exp(f) - y f + y \log y - y`, half of the Poisson deviance. The targets
          must not be negative; they need not be whole numbers.
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        Penalty of the weights: half of the squared l2 norm, the l1 norm, or a mixture. "l1" (the lasso over
        all conjunctions) and "elasticnet" make most weights exactly 0, and require ``loss="squared_error"``
        or ``"poisson"``.
        The solution is optimal over all conjunctions; only those that can have a nonzero weight are stored.
    l1_ratio : float in (0, 1], default=0.5
        Share of the l1 term in "elasticnet": ``l1_ratio * |w|_1 + (1 - l1_ratio) / 2 * |w|^2``. Other
        penalties ignore it.
    epsilon : float, default=0.1
        Largest absolute residual without a loss, for the two epsilon-insensitive losses.
    quantile : float, default=0.5
        The quantile :math:`\tau` between 0 and 1; for ``loss="quantile"``.
    gamma : {"scale", "auto"} or float, default="scale"
        Factor of the inner product in the kernel: a number, "scale" for ``1 / (n_features * X.var())``, or
        "auto" for ``1 / n_features``.
    coef0 : float, default=1.0
        Constant of the kernel; it must not be negative, and 0 leaves out conjunctions of fewer than
        ``degree`` features.
    feature_map : {"kernel", "plain"}, default="kernel"
        Coefficients of the conjunctions: those of the kernel ``(gamma <x, z> + coef0) ** degree``, or 1. With
        "plain", ``gamma`` and ``coef0`` are ignored.
    storage : {"auto", "on_the_fly", "condensed", "split", "kernel"}, default="auto"
        How conjunctions are stored during training, as in :class:`PolySVC`. "split" and "kernel" are not
        available for ``loss="poisson"``.
    tol : float, default=1e-3
        Relative duality gap at which training stops.
    max_iter : int, default=1000
        Largest number of passes over the rows or, with an l1 term, of Newton steps. With ``loss="poisson"``,
        of passes and Newton steps together.
    warm_start : bool, default=False
        Whether the next ``fit`` starts from the solution of the previous one. Solutions are matched by row
        and target, so a warm start only helps if rows and targets are the same.
    updatable : bool, default=False
        Whether the model stores a summary of the training rows for :meth:`update`, one number per weight.
        Computing it takes one more pass over the rows, and requires ``loss="squared_error"``.
    n_jobs : int, default=None
        Number of threads; None means 1 and -1 means all processors. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the order of the rows.
    verbose : int, default=0
        Whether to print progress.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if ``X`` had them.
    objective_ : float
        The objective at the solution.
    gap_ : float
        The certified relative duality gap.
    n_iter_ : int
        Number of passes over the rows, Newton steps, or both; see ``max_iter``.
    history_ : History
        The objective and its bound after each pass.
    gamma_ : float
        The value of gamma that was used.
    storage_ : str
        The storage that was used.
    model_ : ConjunctionModel or KernelModel
        The fitted model; see :meth:`to_model`.

    See Also
    --------
    PolySVC : Classification with the same kernel.
    unkernel.distributed.DaskPolyRegressor : The same estimator on a Dask cluster.
    RankSVM : Predicts the order of rows instead of values.
    compile : Compile the fitted model for fast inference.

    References
    ----------
    .. [1] C.-H. Ho and C.-J. Lin, "Large-scale linear support vector regression", Journal of Machine Learning
       Research 13, 2012.
    .. [2] H.-F. Yu, F.-L. Huang and C.-J. Lin, "Dual coordinate descent methods for logistic regression and
       maximum entropy models", Machine Learning 85, 2011. The method for ``loss="poisson"`` is analogous.

    Examples
    --------
    Learn a product, which is not linear:

    >>> from unkernel import PolyRegressor
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1], [2, 1]], [0, 0, 0, 1, 2]
    >>> reg = PolyRegressor(degree=2, C=1e4, gamma=1, tol=1e-9).fit(X, y)
    >>> reg.predict([[2, 2]]).round(2)
    array([4.])

    Learn a rate, which both features double:

    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [5, 10, 10, 20]
    >>> reg = PolyRegressor(degree=1, loss="poisson", C=1e4, gamma=1, tol=1e-9).fit(X, y)
    >>> reg.predict([[1, 1]]).round(1)
    array([20.])
    """

    _kind = "PolyRegressor"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PolyLearner._parameter_constraints,
        "loss": [StrOptions(_LOSSES)],
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "penalty": [StrOptions({"l1", "l2", "elasticnet"})],
        "l1_ratio": [Interval(Real, 0, 1, closed="right")],
        "quantile": [Interval(Real, 0, 1, closed="neither")],
        "updatable": ["boolean"],
        "storage": [StrOptions({"auto", "on_the_fly", "condensed", "split", "kernel"})],
    }

    def __init__(
        self,
        degree: int = 2,
        *,
        C: float = 1.0,
        loss: str = "squared_error",
        penalty: str = "l2",
        l1_ratio: float = 0.5,
        epsilon: float = 0.1,
        quantile: float = 0.5,
        gamma: float | str = "scale",
        coef0: float = 1.0,
        feature_map: str = "kernel",
        storage: str = "auto",
        tol: float = 1e-3,
        max_iter: int = 1000,
        warm_start: bool = False,
        updatable: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self._set_parameters(locals())

    def _check_parameters(self) -> None:
        if self.penalty != "l2" and self.loss not in _SMOOTH_LOSSES:
            raise ValueError(
                f"penalty={self.penalty!r} needs loss='squared_error' or 'poisson', got loss={self.loss!r}: "
                "other losses have penalty='l2' only"
            )
        if self.loss == "poisson" and self.storage not in _STORAGES_OF_COUNTS:
            raise ValueError(
                f"loss='poisson' needs the weights of conjunctions, which storage={self.storage!r} does not "
                "compute: set storage='auto'"
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.loss == "poisson"
        return tags

    @property
    def decision_function(self) -> NoReturn:
        """Not available, because a regressor predicts values."""
        raise AttributeError("a regressor has no decision function: predict returns the values")

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict the value of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            The predicted values; with ``loss="poisson"`` the predicted means.
        """
        return np.asarray(super().predict(X), dtype=np.float64)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute R squared: the share of the variance of the values that the predictions explain.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            The true values.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        float
            1 for perfect predictions, 0 for the mean of the values, negative for worse predictions.
        """
        return float(super().score(X, y, sample_weight))

    @property
    def _decision(self) -> Decision:
        return _COUNTS if self.loss == "poisson" else _VALUES

    def _make_training_set(
        self, rows: CsrRows, targets: NDArray[Any], weights: NDArray[np.float64] | None
    ) -> RegressionSet:
        targets = _check_counts(targets) if self.loss == "poisson" else check_targets(targets)
        row_weights = np.ones(len(targets)) if weights is None else weights
        values = np.unique(targets[row_weights > 0])
        codes = np.searchsorted(values, targets).clip(max=len(values) - 1).astype(np.int32)
        if self.loss != "poisson":
            self._centre = self._choose_centre(targets, row_weights)
            distinct = self._merge_equal_rows(rows, codes, weights, merge_classes=False)
            return RegressionSet(distinct, values - self._centre)
        self._mean = float(values[0] if len(values) == 1 else np.average(targets, weights=row_weights))
        if not self._mean > 0:
            raise ValueError("Input y is 0 for all rows: loss='poisson' needs at least one count above 0")
        self._centre = float(logarithm_of_one(self._mean))
        return RegressionSet(self._merge_equal_rows(rows, codes, weights), values / self._mean)

    @property
    def _cost(self) -> float:
        # The Poisson loss of a count and a mean grows in proportion to both, which are divided by the mean.
        return float(self.C) * (self._mean if self.loss == "poisson" else 1.0)

    def _choose_centre(self, targets: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
        """Return the constant prediction with the smallest loss."""
        if self.loss not in _LINEAR_LOSSES:
            return float(np.average(targets, weights=weights))
        order = np.argsort(targets, kind="stable")
        cumulative = np.cumsum(weights[order])
        return float(targets[order[np.searchsorted(cumulative, self._quantile_share * cumulative[-1])]])

    @property
    def _quantile_share(self) -> float:
        """The share of targets below the centre."""
        return float(self.quantile) if self.loss == "quantile" else 0.5

    def _train(
        self, training_set: RegressionSet, start: Start, on_progress: OnProgress | None
    ) -> PolySolution:
        if self.penalty != "l2":
            l1, l2 = self._penalty
            solution = self._train_sparse(
                training_set,
                start,
                on_progress,
                loss=self.loss,
                l1=l1,
                l2=l2,
                targets=training_set.values,
                centre=self._centre,
            )
        else:
            self._steps = "epochs"
            solution = self._train_duals(training_set, start, self._choose_reporter(on_progress, "rows"))
        self.storage_ = solution.storage
        return solution

    def _train_duals(
        self, training_set: RegressionSet, start: Start, on_progress: OnProgress
    ) -> PolySolution:
        """Train all weights under an l2 penalty, row by row."""
        hashes, duals = self._match_duals(start.duals)
        if self.loss == "poisson":
            return training_set.rows.train_poisson(
                self._make_row_options("poisson"),
                feature_map=self._make_feature_map(),
                targets=training_set.values,
                start_hashes=hashes,
                start_duals=duals,
                on_progress=on_progress,
            )
        return training_set.rows.train_regression(
            self._make_row_options("hinge" if self.loss in _LINEAR_LOSSES else "squared_hinge"),
            feature_map=self._make_feature_map(),
            targets=training_set.values,
            epsilon=float(self.epsilon) if self.loss in _EPSILON_LOSSES else 0.0,
            below=self._quantile_share if self.loss == "quantile" else 1.0,
            above=1.0 - self._quantile_share if self.loss == "quantile" else 1.0,
            start_hashes=hashes,
            start_duals=duals,
            on_progress=on_progress,
        )

    def _make_model(
        self, rows: DistinctRows, solution: PolySolution, origin: dict[str, Any]
    ) -> ConjunctionModel | KernelModel:
        model = super()._make_model(rows, solution, origin)
        return replace(model, intercept=model.intercept + self._centre)

    # --- Updates --------------------------------------------------------------------------------------

    @property
    def _penalty(self) -> tuple[float, float]:
        share = float(self.l1_ratio) if self.penalty == "elasticnet" else float(self.penalty == "l1")
        return share, 1.0 - share

    def _get_smooth_loss(self) -> str:
        if self.loss != "squared_error":
            raise ValueError(
                f"updatable=True needs loss='squared_error', got loss={self.loss!r}: models of other losses "
                "cannot be updated"
            )
        return "squared_error"

    def _make_examples(self, training_set: RegressionSet) -> Examples:
        return Examples(training_set.rows, [], training_set.values)

    def _describe_examples(self, examples: Examples) -> dict[str, Any]:
        return {"centre": self._centre}

    def _get_factors(self, model: ConjunctionModel) -> list[float]:
        return []

    def _encode_new_targets(
        self, targets: NDArray[Any], weights: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        targets = check_targets(targets)
        values = np.unique(targets)
        return np.searchsorted(values, targets).astype(np.int32), values - self._centre

    @property
    def _model_centre(self) -> float:
        return self._centre

    def _restore(self, model: Model) -> None:
        super()._restore(model)
        centre = model.origin.get("centre")
        if isinstance(centre, int | float):
            self._centre = float(centre)

    def _training_facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"loss": self.loss, "penalty": self.penalty, "storage": self.storage_}
        if self.penalty == "elasticnet":
            facts["l1_ratio"] = float(self.l1_ratio)
        if self.loss in _EPSILON_LOSSES:
            facts["epsilon"] = float(self.epsilon)
        return facts | ({"quantile": float(self.quantile)} if self.loss == "quantile" else {})


def _check_counts(targets: NDArray[Any]) -> NDArray[np.float64]:
    """Return the targets; raise a ValueError if values are missing, negative or too large."""
    counts = check_targets(targets)
    if counts.min() < 0:
        row = int(np.flatnonzero(counts < 0)[0])
        raise ValueError(f"Input y[{row}] is {counts[row]:g}: loss='poisson' needs counts of at least 0")
    if counts.max() > _LARGEST_COUNT:
        raise ValueError(f"Input y has counts beyond {_LARGEST_COUNT:g}: divide y by a number")
    return counts
