"""Log-linear models over conjunctions of features."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from unkernel.learners.base import Model
from unkernel.learners.parameters import COST
from unkernel.learners.progress import OnProgress
from unkernel.models.decision import Softmax, log_softmax
from unkernel.poly._base import PolyLearner, Start, TrainingSet


class PolyLogisticRegression(PolyLearner):
    """Logistic regression over all conjunctions of at most ``degree`` features.

    Solves, with phi the feature map of :class:`PolySVC`,

        min_w  penalty(w) + C sum_i loss_i(w'phi(x_i))

    where the loss of two classes is log(1 + exp(-y w'phi)), y = 1 or -1, and that of more the softmax's
    log(sum_k exp(w_k'phi)) - w_y'phi. The penalty is ``|w|_1`` ("l1"), ``1/2 |w|^2`` ("l2") or
    ``l1_ratio |w|_1 + (1 - l1_ratio) / 2 |w|^2`` ("elasticnet"). The constant of phi takes the part of an
    intercept; it is regularised like every other weight.

    With an l1 part most weights are exactly 0, and the optimum over *all* conjunctions is found and certified
    although only those that might have a weight are ever stored: a bounded search names them.

    Parameters
    ----------
    degree : {1, 2, 3}, default=2
        Features in a conjunction, at most.
    C : float, default=1.0
        Weight of the losses; larger fits the training set more closely and makes less sparse models.
    penalty : {"l1", "l2", "elasticnet"}, default="l1"
        Penalty on the size of weights: under "l1" most are exactly 0, under "l2" all are stored, as by
        :class:`PolySVC`, and "elasticnet" has both. Where all training data are 0 and 1,
        all monomials of the same features are one conjunction; "elasticnet" is over these, each with the
        longest of its monomials' columns, and not over all monomials.
    l1_ratio : float in (0, 1], default=0.5
        Share of the l1 penalty in "elasticnet"; not used otherwise.
    gamma : {"scale", "auto"} or float, default="scale"
        Factor of the inner product: ``1 / (n_features * X.var())``, ``1 / n_features`` or a value.
    coef0 : float, default=1.0
        Constant of the kernel, not negative.
    feature_map : {"kernel", "plain"}, default="kernel"
        "kernel" weighs conjunctions as the kernel ``(gamma <x, z> + coef0) ** degree`` does; "plain" gives
        every monomial the coefficient 1 (``gamma`` and ``coef0`` are not used then).
    storage : {"auto", "on_the_fly", "condensed"}, default="auto"
        Where conjunctions are kept while training, for ``penalty="l2"``; see :class:`PolySVC`.
    tol : float, default=1e-3
        Relative duality gap at which training stops: (P - D) / P <= tol, P and D being the primal and the
        dual objective.
    max_iter : int, default=1000
        Newton steps, at most.
    class_weight : dict, "balanced" or None, default=None
        Factors of C, by class; "balanced" makes all classes weigh the same.
    warm_start : bool, default=False
        Start the next fit from the solution of this one, for paths of C; with an l1 part where features occur
        in the same order of frequency, under "l2" row by row where rows occur in both.
    n_jobs : int or None, default=None
        Threads; None is 1 and -1 is all. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Order in which weights are visited.
    verbose : int, default=0
        1 says how it ended; 2 adds one line per second.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    objective_ : float
        Primal objective.
    gap_ : float
        Certified relative duality gap.
    n_iter_ : int
        Newton steps.
    gamma_ : float
        The value of gamma that was used.

    Examples
    --------
    >>> from unkernel import PolyLogisticRegression
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> clf = PolyLogisticRegression(degree=2, C=100, gamma=1).fit(X, y)
    >>> clf.predict(X)
    array([0, 1, 1, 0])
    >>> clf.predict_proba(X).max(axis=1).min() > 0.9
    np.True_
    """

    _kind = "PolyLogisticRegression"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "degree": [Interval(Integral, 1, 3, closed="both")],
        "C": [COST],
        "penalty": [StrOptions({"l1", "l2", "elasticnet"})],
        "l1_ratio": [Interval(Real, 0, 1, closed="right")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
        "coef0": [Interval(Real, 0, None, closed="left")],
        "feature_map": [StrOptions({"kernel", "plain"})],
        "storage": [StrOptions({"auto", "on_the_fly", "condensed"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, 2**31 - 1, closed="both")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        degree: int = 2,
        *,
        C: float = 1.0,
        penalty: str = "l1",
        l1_ratio: float = 0.5,
        gamma: float | str = "scale",
        coef0: float = 1.0,
        feature_map: str = "kernel",
        storage: str = "auto",
        tol: float = 1e-3,
        max_iter: int = 1000,
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.degree = degree
        self.C = C
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.gamma = gamma
        self.coef0 = coef0
        self.feature_map = feature_map
        self.storage = storage
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    _probability = Softmax()

    def _train(
        self, training_set: TrainingSet, start: Start, on_progress: OnProgress | None
    ) -> dict[str, Any]:
        if self.penalty == "l2":
            return self._train_rows(training_set, start, on_progress, loss="logistic")
        share = self._l1_share()
        return self._train_sparse(training_set, start, on_progress, loss="logistic", l1=share, l2=1.0 - share)

    def _l1_share(self) -> float:
        return float(self.l1_ratio) if self.penalty == "elasticnet" else float(self.penalty == "l1")

    def _facts(self) -> dict[str, Any]:
        return {"loss": "logistic", "penalty": self.penalty, "l1_ratio": self._l1_share()}

    @classmethod
    def _shown_parameters(cls, model: Model) -> dict[str, Any]:
        shown = super()._shown_parameters(model)
        if shown.get("penalty") != "elasticnet":  # the model tells 0 or 1 then, which is no parameter
            shown.pop("l1_ratio", None)
        return shown

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """The probability of each class for each row."""
        probabilities: NDArray[np.float64] = np.exp(self.predict_log_proba(X))
        return probabilities

    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Logarithms of the probabilities; finite where those are too small for a number."""
        scores = self._scores(X)
        return log_softmax(scores)
