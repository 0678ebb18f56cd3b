"""Polynomial-kernel SVMs, trained in the feature space of the kernel."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from unkernel.learners.base import Model
from unkernel.learners.parameters import COST
from unkernel.learners.progress import OnProgress
from unkernel.poly._base import PolyLearner, Start, TrainingSet


class PolySVC(PolyLearner):
    """A support vector machine with a polynomial kernel, trained at the speed of a linear one.

    Solves, for the kernel ``(gamma <x, z> + coef0) ** degree`` with feature map phi,

        min_w  1/2 |w|^2 + C sum_i loss(1 - y_i w'phi(x_i))

    by dual coordinate descent on w itself, so that a step costs one pass over the conjunctions of a
    row and not over all support vectors. The constant of phi takes the part of an intercept; it is
    regularised like every other weight. More than two classes are trained one against the rest.

    Parameters
    ----------
    degree : {1, 2, 3}, default=2
        Features in a conjunction, at most. 1 is a linear SVM.
    C : float, default=1.0
        Weight of the losses; larger fits the training set more closely.
    gamma : {"scale", "auto"} or float, default="scale"
        Factor of the inner product: ``1 / (n_features * X.var())``, ``1 / n_features`` or a value.
    coef0 : float, default=1.0
        Constant of the kernel, not negative. ``(gamma, coef0, C)`` and
        ``(gamma / coef0, 1, C * coef0 ** degree)`` give the same classifier.
    penalty : {"l2", "l1"}, default="l2"
        Penalty on the size of weights. "l1" puts ``|w|_1`` in the place of ``1/2 |w|^2``, so that most
        weights are exactly 0; it needs the squared hinge. The optimum is that over all conjunctions of phi,
        but only those that might matter are ever stored. Where all training data are 0 and 1, all monomials
        of the same features are one conjunction.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        What a row on the wrong side of its margin costs.
    feature_map : {"kernel", "plain"}, default="kernel"
        Coefficients of the monomials: the kernel's, or 1. Under "plain", ``gamma`` and ``coef0`` are not
        used.
    storage : {"auto", "on_the_fly", "condensed", "split", "kernel"}, default="auto"
        Where conjunctions, phi(x), are kept while training; the classifier is the same.
        "on_the_fly": computed whenever it is needed, against a dense table of weights.
        "condensed": stored, as numbers of the conjunctions that occur.
        "split": conjunctions of common features are computed; those with a rare feature are never formed,
        kernel values between the rows that share rare features stand for them. For 0/1 data, degree 2 or
        3 and ``feature_map="kernel"``; gives a model of support vectors (see ``to_model``).
        "kernel": not formed at all; the kernel between all pairs of rows is computed once, 8 bytes each.
        For few rows with many features, degree 2 or 3 and ``feature_map="kernel"``; gives a model of
        support vectors, too.
        "auto" takes "split" only where neither of the first two fits into memory, or where they would need
        many times what it does; it takes "kernel" for up to 4096 rows that are not 0/1, if a row has more
        than four times as many conjunctions as there are rows. Not used by ``penalty="l1"``.
    tol : float, default=1e-3
        Relative duality gap at which training stops: (P - D) / P <= tol, P and D being the primal and the
        dual objective.
    max_iter : int, default=1000
        Passes over the training set, at most; Newton steps under ``penalty="l1"``.
    class_weight : dict, "balanced" or None, default=None
        Factors of C, by class; "balanced" makes all classes weigh the same.
    warm_start : bool, default=False
        Start the next fit from the solution of this one, row by row where rows occur in both; under
        ``penalty="l1"`` from its weights, where the features occur in the same order of frequency.
    n_jobs : int or None, default=None
        Threads; None is 1 and -1 is all. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Order in which rows are visited.
    verbose : int, default=0
        1 says what was chosen and how it ended; 2 adds one line per second.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    objective_ : float
        Primal objective, summed over the one-vs-rest problems.
    gap_ : float
        Certified relative duality gap, the largest of all problems.
    n_iter_ : int
        Passes over the training set (Newton steps under ``penalty="l1"``), the most of all problems.
    gamma_ : float
        The value of gamma that was used.
    storage_ : str
        The storage that was used.

    Examples
    --------
    Exclusive or, which no linear classifier can do:

    >>> from unkernel import PolySVC
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> PolySVC(degree=2, C=10, gamma=1).fit(X, y).predict(X)
    array([0, 1, 1, 0])
    """

    _kind = "PolySVC"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "degree": [Interval(Integral, 1, 3, closed="both")],
        "C": [COST],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
        "coef0": [Interval(Real, 0, None, closed="left")],
        "penalty": [StrOptions({"l1", "l2"})],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "feature_map": [StrOptions({"kernel", "plain"})],
        "storage": [StrOptions({"auto", "on_the_fly", "condensed", "split", "kernel"})],
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
        gamma: float | str = "scale",
        coef0: float = 1.0,
        penalty: str = "l2",
        loss: str = "hinge",
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
        self.gamma = gamma
        self.coef0 = coef0
        self.penalty = penalty
        self.loss = loss
        self.feature_map = feature_map
        self.storage = storage
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        if self.penalty == "l1" and self.loss != "squared_hinge":
            raise ValueError(
                f"penalty='l1' needs loss='squared_hinge', got loss={self.loss!r}: the l1-regularised hinge "
                "loss is not offered"
            )

    def _train(
        self, training_set: TrainingSet, start: Start, on_progress: OnProgress | None
    ) -> dict[str, Any]:
        if self.penalty == "l1":
            trained = self._train_sparse(training_set, start, on_progress, loss=self.loss, l1=1.0, l2=0.0)
        else:
            trained = self._train_rows(training_set, start, on_progress, loss=self.loss)
        self.storage_ = str(trained["storage"])
        return trained

    def _facts(self) -> dict[str, Any]:
        return {"loss": self.loss, "penalty": self.penalty, "storage": self.storage_}

    def _restore(self, model: Model) -> None:
        super()._restore(model)
        if isinstance(storage := model.origin.get("storage"), str):
            self.storage_ = storage
