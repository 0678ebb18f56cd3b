"""Polynomial-kernel SVMs, trained in the feature space of the kernel."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from unkernel._core import PolySolution
from unkernel.learners.progress import OnProgress
from unkernel.poly._base import PolyClassifier, Start, TrainingSet
from unkernel.poly.updates import UpdatableClassifier


class PolySVC(UpdatableClassifier):
    r"""Support vector classification with a polynomial kernel, trained in linear time.

    For the kernel :math:`(\gamma \langle x, z \rangle + c_0)^d` with feature map :math:`\phi`, the estimator
    solves

    .. math:: \min_w \; \tfrac{1}{2} \|w\|^2 + C \sum_i \ell(1 - y_i w^\top \phi(x_i))

    by dual coordinate descent on :math:`w` itself. The features of :math:`\phi` are conjunctions (products)
    of at most ``degree`` input features. A step of the solver costs one pass over the conjunctions of one
    row, regardless of the number of support vectors. The constant feature of :math:`\phi` serves as the
    intercept; it is regularised like every other weight. Problems with more than two classes are solved one
    versus the rest.

    Parameters
    ----------
    degree : {1, 2, 3}, default=2
        Largest number of features in a conjunction. 1 gives a linear SVM.
    C : float, default=1.0
        Weight of the loss; larger values fit the training set more closely.
    gamma : {"scale", "auto"} or float, default="scale"
        Factor of the inner product in the kernel: a number, "scale" for ``1 / (n_features * X.var())``, or
        "auto" for ``1 / n_features``.
    coef0 : float, default=1.0
        Constant of the kernel; it must not be negative. ``(gamma, coef0, C)`` and
        ``(gamma / coef0, 1, C * coef0 ** degree)`` give the same classifier.
    penalty : {"l2", "l1"}, default="l2"
        Norm of the weights in the penalty. "l1" replaces ``1/2 |w|^2`` by ``|w|_1``. It makes most weights
        exactly 0, and requires ``loss="squared_hinge"``. The solution is optimal over all conjunctions, but
        only conjunctions that can have a nonzero weight are stored. If all training values are 0 or 1, the
        monomials over the same features (such as ``x`` and ``x ** 2``) are merged into one conjunction.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        Loss of a row that violates the margin.
    feature_map : {"kernel", "plain"}, default="kernel"
        Coefficients of the conjunctions: those of the kernel, or 1. With "plain", ``gamma`` and ``coef0`` are
        ignored.
    storage : {"auto", "on_the_fly", "condensed", "split", "kernel"}, default="auto"
        How conjunctions are represented during training. The choice does not change the classifier.

        - "on_the_fly" computes conjunctions whenever they are needed, and stores a dense table of weights.
        - "condensed" stores, for each row, the numbers of the conjunctions that occur in it.
        - "split" computes conjunctions of frequent features only, and replaces all other conjunctions by
          kernel values between rows that share rare features. It requires 0/1 data, degree 2 or 3 and
          ``feature_map="kernel"``.
        - "kernel" stores the kernel value of each pair of rows, in 8 bytes. It suits few rows with many
          features, and requires degree 2 or 3 and ``feature_map="kernel"``.
        - "auto" chooses "kernel" for up to 4096 rows that are not 0/1, if there are more than four times as
          many conjunctions as rows. Otherwise it chooses "on_the_fly" or "condensed" if one of them fits into
          memory, and "split" if neither fits or if "split" needs much less memory.

        "split" and "kernel" give a model of support vectors, see :meth:`to_model`. ``penalty="l1"`` ignores
        this parameter.
    tol : float, default=1e-3
        Relative duality gap at which training stops: (P - D) / P <= tol, where P and D are the primal and the
        dual objective.
    max_iter : int, default=1000
        Largest number of passes over the training set or, for ``penalty="l1"``, of Newton steps.
    class_weight : dict, "balanced" or None, default=None
        Factor of C for each class; "balanced" gives all classes the same total weight.
    warm_start : bool, default=False
        Whether the next ``fit`` starts from the solution of the previous one. Solutions are matched row by
        row or, for ``penalty="l1"``, weight by weight, which also helps with other rows.
    updatable : bool, default=False
        Whether the model stores a summary of the training rows for :meth:`update`, one number per weight.
        Computing it takes one more pass over the rows, and requires ``loss="squared_hinge"``.
    n_jobs : int or None, default=None
        Number of threads; None means 1 and -1 means all processors. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the order in which rows are visited.
    verbose : int, default=0
        1 prints the chosen storage and how training ended; 2 also prints one line per second.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if ``X`` had them.
    objective_ : float
        Primal objective, summed over the one-versus-rest problems.
    gap_ : float
        Certified relative duality gap, the largest over all problems.
    n_iter_ : int
        Passes over the training set (Newton steps for ``penalty="l1"``), the largest number over all
        problems.
    history_ : History
        Objective and lower bound of the optimum, pass by pass; ``to_frame()`` returns a pandas DataFrame.
    gamma_ : float
        The value of gamma that was used.
    storage_ : str
        The storage that was used.
    model_ : ConjunctionModel or KernelModel
        The fitted model; see :meth:`to_model`.

    See Also
    --------
    PolyLogisticRegression : Logistic regression on the same conjunctions, with probabilities.
    CuttingPlaneSVC : Linear SVM for data sets that do not fit into memory.
    unkernel.distributed.DaskPolySVC : The same estimator on a Dask cluster.
    compile : Compile the fitted model for fast inference.

    References
    ----------
    .. [1] Y.-W. Chang, C.-J. Hsieh, K.-W. Chang, M. Ringgaard and C.-J. Lin, "Training and testing low-degree
       polynomial data mappings via linear SVM", Journal of Machine Learning Research 11, 2010.

    Examples
    --------
    Learn exclusive or, which is not linearly separable:

    >>> from unkernel import PolySVC
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> clf = PolySVC(degree=2, C=10, gamma=1).fit(X, y)
    >>> clf.predict(X)
    array([0, 1, 1, 0])

    The conjunction of both features has the largest weight:

    >>> clf.heaviest(1)[0].label
    '0 and 1'
    """

    _kind = "PolySVC"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PolyClassifier._parameter_constraints,
        "penalty": [StrOptions({"l1", "l2"})],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "updatable": ["boolean"],
        "storage": [StrOptions({"auto", "on_the_fly", "condensed", "split", "kernel"})],
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
        updatable: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self._set_parameters(locals())

    def _check_parameters(self) -> None:
        if self.penalty == "l1" and self.loss != "squared_hinge":
            raise ValueError(
                f"penalty='l1' needs loss='squared_hinge', got loss={self.loss!r}: the l1-regularised hinge "
                "loss is not supported"
            )

    def _train(self, training_set: TrainingSet, start: Start, on_progress: OnProgress | None) -> PolySolution:
        if self.penalty == "l1":
            solution = self._train_sparse(training_set, start, on_progress, loss=self.loss, l1=1.0, l2=0.0)
        else:
            solution = self._train_rows(training_set, start, on_progress, loss=self.loss)
        self.storage_ = solution.storage
        return solution

    @property
    def _penalty(self) -> tuple[float, float]:
        return (1.0, 0.0) if self.penalty == "l1" else (0.0, 1.0)

    def _get_smooth_loss(self) -> str:
        if self.loss != "squared_hinge":
            raise ValueError(
                f"updatable=True needs loss='squared_hinge', got loss={self.loss!r}: updates need a loss "
                "with a second derivative"
            )
        return "squared_hinge"

    def _training_facts(self) -> dict[str, Any]:
        return {"loss": self.loss, "penalty": self.penalty, "storage": self.storage_}
