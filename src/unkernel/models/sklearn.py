"""Make models from fitted scikit-learn estimators."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from unkernel.data.rows.csr import canonical_rows, is_sparse
from unkernel.models.conjunction import ConjunctionModel
from unkernel.models.decision import Decision, Platt
from unkernel.models.kernel import Kernel, KernelModel
from unkernel.models.linear import LinearModel
from unkernel.models.pair_coefficients import pair_coefficients
from unkernel.models.sklearn_combinations import from_mean, from_soft_votes, from_stacking
from unkernel.models.sklearn_ensembles import (
    find_probability,
    from_calibrated,
    from_one_vs_one,
)
from unkernel.models.sklearn_naive_bayes import from_naive_bayes, is_naive_bayes
from unkernel.models.sklearn_outputs import (
    CHAINS,
    from_multi_output,
    from_one_vs_rest,
    make_linear_decision,
    refuse_chain,
)
from unkernel.models.sklearn_thresholds import WRAPPERS, from_threshold

_KERNELS = {"linear": "linear", "poly": "polynomial", "rbf": "rbf", "sigmoid": "sigmoid"}
# Estimators are recognised by the names of their classes; their modules need not be imported.
_SVM_TYPES = {
    "SVC": "c_svc",
    "NuSVC": "nu_svc",
    "OneClassSVM": "one_class",
    "SVR": "epsilon_svr",
    "NuSVR": "nu_svr",
}
_ENSEMBLES: dict[str, Callable[..., KernelModel | LinearModel | ConjunctionModel]] = {
    "OneVsRestClassifier": from_one_vs_rest,
    "OneVsOneClassifier": from_one_vs_one,
    "MultiOutputClassifier": from_multi_output,
    "MultiOutputRegressor": from_multi_output,
    **dict.fromkeys(CHAINS, refuse_chain),
    "CalibratedClassifierCV": from_calibrated,
    "VotingClassifier": from_soft_votes,
    "VotingRegressor": from_mean,
    "StackingClassifier": from_stacking,
    "StackingRegressor": from_stacking,
    **dict.fromkeys(WRAPPERS, from_threshold),
}
_LINEAR_REGRESSIONS = {
    *("LinearSVR", "LinearRegression", "Ridge", "RidgeCV", "ElasticNet", "ElasticNetCV", "LassoCV"),
    *("SGDRegressor", "HuberRegressor", "BayesianRidge"),
}


def from_estimator(estimator: Any) -> KernelModel | LinearModel | ConjunctionModel:
    """Return the model of a fitted scikit-learn estimator.

    Parameters
    ----------
    estimator : fitted estimator
        SVC, NuSVC, OneClassSVM, SVR or NuSVR with one of the named kernels; a linear classifier (LinearSVC,
        LogisticRegression, SGDClassifier, RidgeClassifier, ...); OneVsRestClassifier or OneVsOneClassifier of
        these; OneVsRestClassifier, MultiOutputClassifier or MultiOutputRegressor of several labels or
        targets; CalibratedClassifierCV (sigmoid or isotonic) of these; a soft
        VotingClassifier of two classes, VotingRegressor, StackingClassifier (of scores) or StackingRegressor
        of linear estimators; MultinomialNB, ComplementNB, or BernoulliNB with ``binarize=None``; LinearSVR,
        LinearRegression, Ridge, Lasso, ElasticNet, SGDRegressor or another linear regression;
        FixedThresholdClassifier or TunedThresholdClassifierCV of a classifier; or a search whose best
        estimator is one of these.

    Returns
    -------
    KernelModel, LinearModel or ConjunctionModel
        A model with the scores, predictions and probabilities of the estimator.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the estimator is not fitted.
    ValueError
        If the kernel or the type of the estimator is not supported.

    See Also
    --------
    unkernel.compile : Compile an estimator or a pipeline for fast inference.
    unkernel.read_model : Read a model of another program.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from unkernel.models import from_estimator
    >>> svc = SVC(kernel="poly", degree=2, coef0=1).fit([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0])
    >>> model = from_estimator(svc)
    >>> model.decision.choose(model.scores([[1, 0], [1, 1]]))
    array([1, 0])
    """
    kinds = _list_kinds(estimator)
    if "Pipeline" in kinds:
        raise ValueError(
            "a Pipeline changes its rows before the model sees them: transform the rows with pipeline[:-1], "
            "and give its last step, pipeline[-1]"
        )
    check_is_fitted(estimator)
    if "BaseSearchCV" in kinds:
        if not hasattr(estimator, "best_estimator_"):
            raise ValueError("the search has not kept its best estimator: fit it with refit=True")
        return from_estimator(estimator.best_estimator_)
    if not kinds.isdisjoint(_ENSEMBLES):
        return _ENSEMBLES[next(kind for kind in _ENSEMBLES if kind in kinds)](estimator, from_estimator)
    if not kinds.isdisjoint(_SVM_TYPES):
        return _make_kernel_model(estimator)
    if is_naive_bayes(estimator):
        return from_naive_bayes(estimator)
    if not kinds.isdisjoint(_LINEAR_REGRESSIONS) or _is_linear_classifier(estimator):
        return _make_linear_model(estimator)
    raise ValueError(_describe_refusal(estimator))


def _describe_refusal(estimator: Any) -> str:
    name = type(estimator).__name__
    if _has_trees(estimator):
        return (
            f"{name} is not supported: trees test one number after another, and a compiled model adds up "
            "weights of features and of their conjunctions; docs/pipelines.md lists what can be compiled"
        )
    return (
        f"{name} is not supported; give a support vector machine of sklearn.svm, a linear classifier or "
        "another estimator of docs/pipelines.md"
    )


def _has_trees(estimator: Any) -> bool:
    """Return whether an estimator is a decision tree or an ensemble of trees, even of another package."""
    return any(
        kind.__module__.partition(".")[0] in ("sklearn", "xgboost", "lightgbm", "catboost")
        and any(word in kind.__name__ for word in ("Tree", "Forest", "Boost", "XGB", "LGBM"))
        for kind in type(estimator).__mro__
    )


def _list_kinds(estimator: Any) -> set[str]:
    """Return the names of the estimator's scikit-learn classes."""
    return {kind.__name__ for kind in type(estimator).__mro__ if kind.__module__.startswith("sklearn.")}


def _make_kernel_model(estimator: Any) -> KernelModel:
    kernel = _read_kernel(estimator)
    decision = _read_svm_decision(estimator)
    vectors = canonical_rows(estimator.support_vectors_)
    coefficients = _to_dense(estimator.dual_coef_).T
    kinds = _list_kinds(estimator)
    svm_type = next(name for kind, name in _SVM_TYPES.items() if kind in kinds)
    origin: dict[str, Any] = _describe_origin(estimator) | {"svm_type": svm_type}
    if decision.scheme == "one_vs_one":
        origin["nr_sv"] = np.asarray(estimator.n_support_).tolist()
        coefficients = pair_coefficients(coefficients, origin["nr_sv"])
    else:
        coefficients = np.array(coefficients, dtype=np.float64, order="C")
    return KernelModel(
        kernel=kernel,
        vectors=vectors,
        coefficients=coefficients,
        intercept=np.array(estimator.intercept_, dtype=np.float64).reshape(-1),
        decision=decision,
        n_features=int(estimator.n_features_in_),
        fixed_width=True,
        origin=origin,
    )


def _read_kernel(estimator: Any) -> Kernel:
    if not isinstance(estimator.kernel, str) or estimator.kernel not in _KERNELS:
        description = "precomputed" if estimator.kernel == "precomputed" else "of its own"
        raise ValueError(
            f"the estimator has a kernel {description}, which a model cannot hold; fit it with one of the "
            "kernels " + ", ".join(_KERNELS)
        )
    # The value used for scores is stored only under a private name. The values of 'scale' and 'auto' cannot
    # be computed without the training rows, and the parameter may have been changed after training.
    gamma = estimator._gamma
    name = _KERNELS[estimator.kernel]
    if name == "linear":
        return Kernel(name)
    if name == "rbf":
        return Kernel(name, gamma=float(gamma))
    if name == "sigmoid":
        return Kernel(name, gamma=float(gamma), coef0=float(estimator.coef0))
    return Kernel(name, int(estimator.degree), float(gamma), float(estimator.coef0))


def _read_svm_decision(estimator: Any) -> Decision:
    kinds = _list_kinds(estimator)
    if "OneClassSVM" in kinds:
        return Decision("one_class", np.array([-1, 1]))
    if kinds & {"SVR", "NuSVR"}:
        return Decision("regression", np.empty(0, dtype=np.int64))
    scheme = "binary" if len(estimator.classes_) == 2 else "one_vs_one"
    return Decision(
        scheme,
        estimator.classes_,
        estimator.decision_function_shape,
        bool(estimator.break_ties),
        _read_platt(estimator),
        zero_is_positive=scheme == "binary",
    )


def _read_platt(estimator: Any) -> Platt | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # scikit-learn 1.11 will remove probA_ and probB_
        a, b = getattr(estimator, "probA_", None), getattr(estimator, "probB_", None)
    if a is None or b is None or not len(a):
        return None
    if len(estimator.classes_) == 2:
        # The sigmoid applies to LIBSVM's score f, which supports the first class. With score = -f, the
        # probability of the second class is 1 - sigmoid(a f + b) = sigmoid(a score - b).
        b = -b
    return Platt(np.array(a, dtype=np.float64), np.array(b, dtype=np.float64), coupled=True)


def _is_linear_classifier(estimator: Any) -> bool:
    needed = ("coef_", "intercept_", "classes_", "decision_function")
    return is_classifier(estimator) and all(hasattr(estimator, name) for name in needed)


def _make_linear_model(estimator: Any) -> LinearModel:
    weights = np.atleast_2d(_to_dense(estimator.coef_))
    intercepts = np.array(estimator.intercept_, dtype=np.float64).reshape(-1)
    classes = getattr(estimator, "classes_", None)
    if (several := make_linear_decision(estimator, len(weights))) is not None:
        decision = several
    elif classes is None:
        decision = Decision("regression", np.empty(0, dtype=np.int64))
    else:
        scheme = "binary" if len(classes) == 2 else "one_vs_rest"
        probability = find_probability(_list_kinds(estimator), estimator)
        decision = Decision(scheme, np.asarray(classes), probability=probability)
    if len(weights) != decision.n_scores:
        raise ValueError(
            f"the estimator has {len(weights)} outputs, and a model has {decision.n_scores} for its classes: "
            "fit an estimator for each output"
        )
    return LinearModel(
        weights=np.array(weights.T, dtype=np.float64, order="C"),
        # Estimators without intercepts have a single 0 instead.
        intercept=np.broadcast_to(intercepts, (len(weights),)).copy(),
        decision=decision,
        n_features=weights.shape[1],
        fixed_width=True,
        origin=_describe_origin(estimator),
    )


def _describe_origin(estimator: Any) -> dict[str, Any]:
    origin: dict[str, Any] = {"format": "scikit-learn", "estimator": type(estimator).__name__}
    if hasattr(estimator, "feature_names_in_"):
        origin["feature_names"] = [str(name) for name in estimator.feature_names_in_]
    return origin


def _to_dense(values: Any) -> NDArray[np.float64]:
    return np.asarray(values.toarray() if is_sparse(values) else values, dtype=np.float64)
