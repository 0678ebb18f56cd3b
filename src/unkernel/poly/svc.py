"""Polynomial-kernel SVMs, trained in the feature space of the kernel."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from unkernel._core import Examples, distinct_examples
from unkernel.data.memory import available_bytes
from unkernel.engines import CompiledClassifier, compile
from unkernel.engines.classifier import canonical_csr
from unkernel.learners import (
    Look,
    Narrator,
    check_weights,
    class_codes,
    class_weights,
    relative_gap,
    thread_count,
)
from unkernel.models import ConjunctionModel, Decision, Kernel, KernelModel
from unkernel.models.rows import canonical


@dataclass(frozen=True)
class _Start:
    """Dual variables by row, for a warm start."""

    classes: NDArray[Any]
    hashes: NDArray[np.uint64]
    duals: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Answers:
    """A fitted model, made ready when it is first asked: a fit that is only looked at needs none."""

    model: ConjunctionModel | KernelModel
    threads: int

    @cached_property
    def classifier(self) -> CompiledClassifier:
        if isinstance(self.model, ConjunctionModel):
            return CompiledClassifier(self.model)
        compiled = compile(self.model, engine="split", n_jobs=self.threads)
        assert isinstance(compiled, CompiledClassifier)
        return compiled


class PolySVC(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
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
    penalty : {"l2"}, default="l2"
    loss : {"hinge", "squared_hinge"}, default="hinge"
    feature_map : {"kernel", "plain"}, default="kernel"
        "plain" gives every monomial the coefficient 1 (``gamma`` and ``coef0`` are not used then).
    storage : {"auto", "on_the_fly", "condensed", "split"}, default="auto"
        Where phi(x) lives while training; the classifier is the same.
        "on_the_fly": computed whenever it is needed, against a dense table of weights.
        "condensed": stored, as numbers of the conjunctions that occur.
        "split": conjunctions of common features are computed; those with a rare feature are never formed,
        kernel values between the rows that share rare features stand for them. For 0/1 data, degree 2 or
        3 and ``feature_map="kernel"``; gives a model of support vectors (see ``to_model``).
        "auto" takes "split" only where neither of the others fits into memory, or where they would need
        many times what it does.
    tol : float, default=1e-3
        Training stops when (P - D) / P <= tol, P and D being the primal and the dual objective.
    max_iter : int, default=1000
        Passes over the training set, at most.
    class_weight : dict, "balanced" or None, default=None
    warm_start : bool, default=False
        Start the next fit from the solution of this one, row by row where rows occur in both.
    n_jobs : int or None, default=None
        Threads; None is 1 and -1 is all. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Order in which rows are visited.
    verbose : int, default=0
        1 says what was chosen and how it ended; 2 adds a line a second.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    objective_ : float
        Primal objective, summed over the one-vs-rest problems.
    gap_ : float
        Certified relative duality gap, the largest of all problems.
    n_iter_ : int
        Passes over the training set, the most of all problems.
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "degree": [Interval(Integral, 1, 3, closed="both")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
        "coef0": [Interval(Real, 0, None, closed="left")],
        "penalty": [StrOptions({"l2"})],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "feature_map": [StrOptions({"kernel", "plain"})],
        "storage": [StrOptions({"auto", "on_the_fly", "condensed", "split"})],
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> PolySVC:
        """Train on rows X with labels y.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            A row of weight k counts as k equal rows; rows of weight 0 do not count at all.
        """
        fitted: PolySVC = self.fit_watched(X, y, sample_weight, look=None)
        return fitted

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit_watched(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, look: Look | None
    ) -> PolySVC:
        """``fit``, with a function that is shown the progress about twenty times a second."""
        rows, labels = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, accept_large_sparse=True
        )
        check_classification_targets(labels)
        weights = None if sample_weight is None else check_weights(sample_weight, rows)
        self.classes_, codes = class_codes(labels, weights, "PolySVC")
        examples = self._distinct(canonical_csr(rows), codes, weights)
        self.gamma_ = self._gamma_value(examples)
        start = getattr(self, "_start", None) if self.warm_start else None
        factors = class_weights(self.class_weight, self.classes_, codes, weights)
        trained = self._train(examples, factors, start, look)
        self._keep(examples, trained)
        return self

    def _distinct(self, rows: Any, codes: NDArray[np.int32], weights: NDArray[np.float64] | None) -> Examples:
        return distinct_examples(
            offsets=rows.indptr,
            columns=rows.indices,
            values=rows.data,
            features=rows.shape[1],
            classes=codes,
            weights=np.empty(0) if weights is None else weights,
            threads=thread_count(self.n_jobs),
        )

    def _gamma_value(self, examples: Examples) -> float:
        if self.gamma == "auto":
            return 1.0 / float(self.n_features_in_)
        if self.gamma != "scale":
            return float(self.gamma)
        spread = float(self.n_features_in_ * examples.variance(self.n_features_in_))
        return 1.0 / spread if spread > 0 else 1.0

    def _train(
        self, examples: Examples, factors: list[float], start: _Start | None, look: Look | None
    ) -> dict[str, Any]:
        if start is not None and not np.array_equal(start.classes, self.classes_):
            start = None
        return dict(
            examples.train(
                degree=int(self.degree),
                map=self.feature_map,
                gamma=self.gamma_,
                coef0=float(self.coef0),
                loss=self.loss,
                C=float(self.C),
                class_weights=factors,
                storage=self.storage,
                memory=float(available_bytes()),
                tolerance=float(self.tol),
                max_epochs=int(self.max_iter),
                seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
                threads=thread_count(self.n_jobs),
                start_hashes=start.hashes if start else np.empty(0, np.uint64),
                start_duals=start.duals.reshape(-1) if start else np.empty(0),
                look=look or Narrator("PolySVC", self.verbose, "rows").look,
            )
        )

    def _keep(self, examples: Examples, trained: dict[str, Any]) -> None:
        outcomes = trained["outcomes"]
        self.objective_ = float(sum(primal for primal, _, _, _ in outcomes))
        self.gap_ = float(max(relative_gap(primal, dual) for primal, dual, _, _ in outcomes))
        self.n_iter_ = int(max(epochs for _, _, epochs, _ in outcomes))
        self.storage_ = str(trained["storage"])
        as_model = self._kernel_model if self.storage_ == "split" else self._conjunction_model
        self.model_ = as_model(examples, trained)
        self._answers = _Answers(self.model_, thread_count(self.n_jobs))
        if self.warm_start:
            self._start = _Start(self.classes_, np.asarray(examples.hashes), np.asarray(trained["duals"]))
        if self.verbose:
            print(
                f"[PolySVC] {examples.rows} distinct rows, storage={self.storage_}, "
                f"{trained['dimension']} weights; {self.n_iter_} epochs, objective {self.objective_:.6g}, "
                f"gap {self.gap_:.2g}"
            )
        if not all(converged for _, _, _, converged in outcomes):
            warnings.warn(
                f"PolySVC stopped after max_iter={self.max_iter} epochs at a relative gap of "
                f"{self.gap_:.2g} (tol={self.tol:g}): raise max_iter or tol, or scale the features and "
                "lower C or gamma",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _origin(self) -> dict[str, Any]:
        return {"C": float(self.C), "loss": self.loss, "objective": self.objective_, "gap": self.gap_}

    def _conjunction_model(self, examples: Examples, trained: dict[str, Any]) -> ConjunctionModel:
        return ConjunctionModel(
            degree=int(self.degree),
            sets=bool(examples.binary),
            feature_map=self.feature_map,
            gamma=self.gamma_,
            coef0=float(self.coef0),
            n_features=int(self.n_features_in_),
            columns=_frozen(examples.columns),
            keys=_frozen(trained["keys"]),
            weights=_frozen(trained["weights"]),
            constants=_frozen(trained["constants"]),
            classes=self.classes_,
            origin=self._origin(),
        )

    def _kernel_model(self, examples: Examples, trained: dict[str, Any]) -> KernelModel:
        """The rows whose dual variables are not zero, with those as coefficients."""
        columns = np.asarray(examples.columns)[np.asarray(examples.features)]
        rows = sparse.csr_matrix(
            (np.ones(len(columns)), columns, np.asarray(examples.offsets)),
            shape=(int(examples.rows), int(self.n_features_in_)),
        )
        duals = np.asarray(trained["duals"])
        support = np.flatnonzero(duals.any(axis=1))
        return KernelModel(
            kernel=Kernel("polynomial", int(self.degree), self.gamma_, float(self.coef0)),
            support_vectors=canonical(rows[support]),
            coefficients=_frozen(duals[support]),
            intercepts=_frozen(np.zeros(duals.shape[1])),
            decision=Decision("binary" if len(self.classes_) == 2 else "one_vs_rest", self.classes_),
            n_features=int(self.n_features_in_),
            fixed_width=True,
            origin=self._origin(),
        )

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Scores: one per row for two classes (positive: ``classes_[1]``), else one per class."""
        check_is_fitted(self)
        rows = validate_data(
            self, X, accept_sparse="csr", dtype=np.float64, accept_large_sparse=True, reset=False
        )
        scores = self._answers.classifier.score_csr(canonical_csr(rows), thread_count(self.n_jobs))
        return self.model_.decision.decide(scores)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of each row."""
        scores = self.decision_function(X)
        return self.model_.decision.choose(scores.reshape(len(scores), -1))

    def to_model(self) -> ConjunctionModel | KernelModel:
        """The fitted model as plain data.

        The weights of conjunctions, all that are not zero. Trained with ``storage_ == "split"`` it is the
        same classifier as a kernel machine, since its conjunctions, many times the training set, were never
        formed: the support vectors are the distinct rows whose dual variables are not zero.
        """
        check_is_fitted(self)
        return self.model_

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a ``.uk`` file; ``unkernel.load`` reads it."""
        model = self.to_model()
        # Support vectors alone would have to be compiled again by who loads them.
        (self._answers.classifier if isinstance(model, KernelModel) else model).save(path)


def _frozen(array: Any) -> NDArray[Any]:
    """A view that cannot be written to: engines are made of a model once, and must not differ from it."""
    frozen: NDArray[Any] = np.asarray(array).view()
    frozen.setflags(write=False)
    return frozen
