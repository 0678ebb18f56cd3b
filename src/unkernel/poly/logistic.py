"""Log-linear models over conjunctions of features."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from unkernel._core import PolySolution, softmax
from unkernel.learners.base import Model
from unkernel.learners.progress import OnProgress
from unkernel.models.decision import Softmax, log_softmax
from unkernel.poly._base import PolyClassifier, Start, TrainingSet
from unkernel.poly.updates import UpdatableClassifier


class PolyLogisticRegression(UpdatableClassifier):
    r"""Logistic regression on all conjunctions of at most ``degree`` features.

    With the feature map :math:`\phi` of :class:`PolySVC`, the estimator solves

    .. math:: \min_w \; \mathrm{penalty}(w) + C \sum_i \ell_i(w^\top \phi(x_i))

    For two classes the loss is :math:`\log(1 + \exp(-y\, w^\top \phi))` with :math:`y = \pm 1`; for more
    classes it is the softmax loss :math:`\log(\sum_k \exp(w_k^\top \phi)) - w_y^\top \phi`. The penalty is
    :math:`\|w\|_1` ("l1"), :math:`\tfrac{1}{2} \|w\|^2` ("l2") or a mixture of both ("elasticnet"). The
    constant feature of :math:`\phi` serves as the intercept; it is regularised like every other weight.

    With an l1 term, most weights are exactly 0. A branch-and-bound search finds the conjunctions that can
    have a nonzero weight; only these are stored. The solution is nevertheless optimal over *all*
    conjunctions, and a duality gap certifies this.

    Parameters
    ----------
    degree : {1, 2, 3}, default=2
        Largest number of features in a conjunction.
    C : float, default=1.0
        Weight of the loss; larger values fit the training set more closely and give less sparse models.
    penalty : {"l1", "l2", "elasticnet"}, default="l1"
        Norm of the weights in the penalty. With "l1" most weights are exactly 0. With "l2" all weights are
        stored, as in :class:`PolySVC`. "elasticnet" mixes both norms. If all training values are 0 or 1, the
        monomials over the same features (such as ``x`` and ``x ** 2``) are merged into one conjunction;
        "elasticnet" then penalises the weights of these conjunctions instead of those of the monomials.
    l1_ratio : float in (0, 1], default=0.5
        Share of the l1 term in "elasticnet": ``l1_ratio * |w|_1 + (1 - l1_ratio) / 2 * |w|^2``. Other
        penalties ignore it.
    gamma : {"scale", "auto"} or float, default="scale"
        Factor of the inner product in the kernel: a number, "scale" for ``1 / (n_features * X.var())``, or
        "auto" for ``1 / n_features``.
    coef0 : float, default=1.0
        Constant of the kernel; it must not be negative.
    feature_map : {"kernel", "plain"}, default="kernel"
        Coefficients of the conjunctions: those of the kernel ``(gamma <x, z> + coef0) ** degree``, or 1. With
        "plain", ``gamma`` and ``coef0`` are ignored.
    storage : {"auto", "on_the_fly", "condensed"}, default="auto"
        How conjunctions are represented during training, for ``penalty="l2"``. See :class:`PolySVC`.
    tol : float, default=1e-3
        Relative duality gap at which training stops: (P - D) / P <= tol, where P and D are the primal and the
        dual objective.
    max_iter : int, default=1000
        Largest number of Newton steps or, for two classes and ``penalty="l2"``, of passes over the rows.
    class_weight : dict, "balanced" or None, default=None
        Factor of C for each class; "balanced" gives all classes the same total weight.
    warm_start : bool, default=False
        Whether the next ``fit`` starts from the solution of the previous one, also for other rows with the
        same features. With "l2" and two classes, only rows that both fits have in common are matched.
    updatable : bool, default=False
        Whether the model stores a summary of the training rows for :meth:`update`, one number per weight.
        Computing it takes one more pass over the rows.
    n_jobs : int or None, default=None
        Number of threads; None means 1 and -1 means all processors. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the order in which weights, or rows, are visited.
    verbose : int, default=0
        1 prints how training ended; 2 also prints one line per second.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if ``X`` had them.
    objective_ : float
        Primal objective.
    gap_ : float
        Certified relative duality gap.
    n_iter_ : int
        Number of Newton steps. For two classes and ``penalty="l2"``: number of passes over the rows, plus the
        Newton steps if training switched to them because more passes would take longer.
    history_ : History
        Objective and lower bound of the optimum, pass by pass; ``to_frame()`` returns a pandas DataFrame.
    gamma_ : float
        The value of gamma that was used.
    model_ : ConjunctionModel
        The fitted model; see :meth:`to_model`.

    See Also
    --------
    PolySVC : Support vector classification on the same conjunctions.
    unkernel.distributed.DaskPolyLogisticRegression : The same estimator on a Dask cluster.
    compile : Compile the fitted model for fast inference.

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
        **PolyClassifier._parameter_constraints,
        "penalty": [StrOptions({"l1", "l2", "elasticnet"})],
        "l1_ratio": [Interval(Real, 0, 1, closed="right")],
        "updatable": ["boolean"],
        "storage": [StrOptions({"auto", "on_the_fly", "condensed"})],
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
        updatable: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self._set_parameters(locals())

    _probability = Softmax()
    _may_lack_weights = False

    def _train(self, training_set: TrainingSet, start: Start, on_progress: OnProgress | None) -> PolySolution:
        if self.penalty == "l2":
            return self._train_rows(training_set, start, on_progress, loss="logistic")
        l1, l2 = self._penalty
        return self._train_sparse(training_set, start, on_progress, loss="logistic", l1=l1, l2=l2)

    @property
    def _penalty(self) -> tuple[float, float]:
        share = self._l1_share()
        return share, 1.0 - share

    def _get_smooth_loss(self) -> str:
        return "logistic"

    def _l1_share(self) -> float:
        return float(self.l1_ratio) if self.penalty == "elasticnet" else float(self.penalty == "l1")

    def _training_facts(self) -> dict[str, Any]:
        return {"loss": "logistic", "penalty": self.penalty, "l1_ratio": self._l1_share()}

    @classmethod
    def _infer_parameters(cls, model: Model) -> dict[str, Any]:
        parameters = super()._infer_parameters(model)
        if parameters.get("penalty") != "elasticnet":
            # For "l1" and "l2", the model stores the share of the l1 term, 1 or 0, instead of `l1_ratio`.
            parameters.pop("l1_ratio", None)
        return parameters

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predict the probability of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            The probabilities, in the order of ``classes_``.
        """
        return np.asarray(softmax(np.ascontiguousarray(self._scores(X))))

    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predict the logarithm of the probability of each class.

        The values are finite even if probabilities are too small for a float.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            The logarithms, in the order of ``classes_``.
        """
        scores = self._scores(X)
        return log_softmax(scores)
