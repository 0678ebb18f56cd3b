"""Make models from scikit-learn's ensembles, and find the probabilities of linear classifiers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.data.rows.csr import stack_rows
from unkernel.models.conjunction import ConjunctionModel
from unkernel.models.curves import Curve, Curves, Interpolated, Sigmoid
from unkernel.models.decision import Decision, Softmax, pairs
from unkernel.models.joint_conjunctions import join_conjunctions
from unkernel.models.kernel import KernelModel
from unkernel.models.linear import LinearModel

Model = KernelModel | LinearModel | ConjunctionModel
# The function ``unkernel.models.sklearn.from_estimator``. Its module imports this one, not the reverse.
FromEstimator = Callable[[Any], Model]

LOGISTIC = Sigmoid(-1.0, 0.0)
_HUBER = Interpolated(np.array([-1.0, 1.0]), np.array([0.0, 1.0]))  # SGDClassifier(loss="modified_huber")


def find_probability(kinds: set[str], estimator: Any) -> Softmax | Curves | None:
    """Return the rule for a linear classifier's probabilities; `kinds` are the names of its classes."""
    count = len(estimator.classes_)
    if "LogisticRegression" in kinds:
        return _find_logistic(estimator, count)
    if "LinearDiscriminantAnalysis" in kinds:
        return Softmax()
    if "SGDClassifier" not in kinds:
        return None
    curve_of_loss: dict[str, Curve] = {"log_loss": LOGISTIC, "modified_huber": _HUBER}
    curve = curve_of_loss.get(estimator.loss)
    return None if curve is None else Curves([curve] * (1 if count == 2 else count))


def _find_logistic(estimator: Any, count: int) -> Softmax | Curves:
    # Up to scikit-learn 1.7, `multi_class` and the solver determine whether classes are compared one by one
    # with the rest. Since 1.8, the solver liblinear accepts only two classes.
    multi_class = getattr(estimator, "multi_class", "auto")
    if count == 2:  # with "multinomial", a softmax of the scores -f and f
        return Curves([Sigmoid(-2.0, 0.0)]) if multi_class == "multinomial" else Softmax()
    if multi_class == "ovr" or estimator.solver == "liblinear":
        return Curves([LOGISTIC] * count)
    return Softmax()


def from_one_vs_rest(estimator: Any, from_estimator: FromEstimator) -> Model:
    """Return the model of a ``OneVsRestClassifier`` of classes."""
    members = _read_members(estimator, from_estimator)
    decision = Decision("binary" if len(members) == 1 else "one_vs_rest", np.asarray(estimator.classes_))
    return join_models(members, replace(decision, probability=_join_curves(members)), estimator)


def _join_curves(members: Sequence[Model]) -> Curves | None:
    """Return the curves of the members, if all have probabilities."""
    curves: list[Curve] = []
    for member in members:
        probability = member.decision.probability
        if isinstance(probability, Softmax):
            curves.append(LOGISTIC)
        elif isinstance(probability, Curves):
            curves += probability.of_scores
        else:
            return None
    return Curves(curves, uniform=False)


def from_one_vs_one(estimator: Any, from_estimator: FromEstimator) -> Model:
    """Return the model of a ``OneVsOneClassifier``."""
    classes = np.asarray(estimator.classes_)
    if len(classes) == 2:
        raise ValueError(
            "OneVsOneClassifier has two classes only: give the classifier inside, fitted on them"
        )
    for inner in estimator.estimators_:
        _require_scores(inner, "OneVsOneClassifier")
    members = _read_members(estimator, from_estimator)
    if any(isinstance(member, ConjunctionModel) for member in members):
        raise ValueError(
            "OneVsOneClassifier of conjunctions of features is not supported; give OneVsRestClassifier, or "
            "the classifier inside alone, which compares the classes itself"
        )
    if len(members) != len(list(pairs(len(classes)))):
        raise ValueError(
            "OneVsOneClassifier has another number of classifiers than there are pairs of classes"
        )
    model = join_models(members, Decision("one_vs_one", classes, "ovr", break_ties=True), estimator)
    # Each member's score supports the second class of its pair, but a model's scores support the first.
    if isinstance(model, KernelModel):
        return replace(model, coefficients=-np.asarray(model.coefficients), intercept=-model.intercept)
    assert isinstance(model, LinearModel)
    return replace(model, weights=-model.weights, intercept=-model.intercept)


def from_calibrated(estimator: Any, from_estimator: FromEstimator) -> Model:
    """Return the model of a ``CalibratedClassifierCV``: the scores of all its classifiers, concatenated."""
    classes = np.asarray(estimator.classes_)
    members, curves = [], []
    for part in estimator.calibrated_classifiers_:
        member = _read_calibrated_part(part, classes, from_estimator)
        members.append(member)
        curves += [_read_curve(calibrator) for calibrator in part.calibrators]
    return join_models(members, Decision("calibrated", classes, probability=Curves(curves)), estimator)


def join_models(members: Sequence[Model], decision: Decision, estimator: Any) -> Model:
    """Return one model with the concatenated scores of all members."""
    conjunctions = [member for member in members if isinstance(member, ConjunctionModel)]
    if len(conjunctions) == len(members):
        origin = dict(conjunctions[0].origin) | {"estimator": type(estimator).__name__}
        return join_conjunctions(conjunctions, decision, origin)
    linear = [member for member in members if isinstance(member, LinearModel)]
    if len(linear) == len(members):
        return join_scores(linear, decision, estimator)
    kernel = [member for member in members if isinstance(member, KernelModel)]
    return _stack_members(kernel, len(members), decision, estimator)


def _read_calibrated_part(part: Any, classes: NDArray[Any], from_estimator: FromEstimator) -> Model:
    """Return the model of the classifier in one part of a ``CalibratedClassifierCV``."""
    if part.method not in ("sigmoid", "isotonic"):
        raise ValueError(
            f"CalibratedClassifierCV(method={part.method!r}) is not supported; fit it with 'sigmoid' or "
            "'isotonic'"
        )
    inner = part.estimator
    if type(inner).__name__ == "FrozenEstimator":
        inner = inner.estimator
    if not np.array_equal(inner.classes_, classes):
        raise ValueError(
            "a classifier inside CalibratedClassifierCV has not seen all classes; fit it with more rows of "
            "each class, fewer folds, or ensemble=False"
        )
    if type(inner).__name__ == "Pipeline":
        raise ValueError(
            "CalibratedClassifierCV around a Pipeline is not supported; put it at the end of the pipeline: "
            "make_pipeline(..., CalibratedClassifierCV(LinearSVC()))"
        )
    _require_scores(inner, "CalibratedClassifierCV")
    model = inner.to_model() if hasattr(inner, "to_model") else from_estimator(inner)
    if not isinstance(model, Model):
        raise ValueError(
            f"CalibratedClassifierCV of {type(inner).__name__} is not supported; calibrate a classifier of "
            "rows, such as LinearSVC"
        )
    if model.decision.scheme not in ("binary", "one_vs_rest"):
        raise ValueError(
            f"CalibratedClassifierCV of a {type(inner).__name__} of {len(classes)} classes is not "
            "supported: its votes are not scores of single classes; calibrate a linear classifier"
        )
    return model


def _require_scores(inner: Any, whole: str) -> None:
    """Raise an error for a classifier without scores, whose probabilities scikit-learn takes instead."""
    if not hasattr(inner, "decision_function"):
        raise ValueError(
            f"{whole} of {type(inner).__name__} is not supported: it has probabilities and no scores; give "
            "a linear classifier"
        )


def _read_curve(calibrator: Any) -> Curve:
    if type(calibrator).__name__ == "IsotonicRegression":
        x, y = np.asarray(calibrator.X_thresholds_), np.asarray(calibrator.y_thresholds_)
        return Interpolated(x.astype(np.float64), y.astype(np.float64))
    return Sigmoid(float(calibrator.a_), float(calibrator.b_))


def _read_members(estimator: Any, from_estimator: FromEstimator) -> list[Model]:
    """Return the models of the classifiers inside an ensemble, each with one score for its second class."""
    ensemble = type(estimator).__name__
    members = []
    for inner in estimator.estimators_:
        name = type(inner).__name__
        if name == "_ConstantPredictor":
            raise ValueError(f"{ensemble} has a class of all rows or none: fit it on rows of each class")
        if name == "Pipeline":
            raise ValueError(
                f"{ensemble} around a Pipeline is not supported; put it at the end of the pipeline: "
                f"make_pipeline(..., {ensemble}(LinearSVC()))"
            )
        model = inner.to_model() if hasattr(inner, "to_model") else from_estimator(inner)
        if not isinstance(model, Model) or model.decision.scheme != "binary":
            raise ValueError(
                f"{ensemble} of {name} is not supported; give a support vector machine or a linear "
                f"classifier, or a {name} that compares the classes itself"
            )
        members.append(model)
    return members


def join_scores(members: Sequence[LinearModel], decision: Decision, estimator: Any) -> LinearModel:
    """Return one linear model with the concatenated scores of all members."""
    return LinearModel(
        weights=np.ascontiguousarray(np.hstack([member.weights for member in members])),
        intercept=np.concatenate([member.intercept for member in members]),
        decision=decision,
        n_features=members[0].n_features,
        fixed_width=True,
        origin=dict(members[0].origin) | {"estimator": type(estimator).__name__},
    )


def _stack_members(
    members: Sequence[KernelModel], count: int, decision: Decision, estimator: Any
) -> KernelModel:
    """Return one model of the support vectors of all members; each affects the scores of its member only."""
    first = members[0]
    if len(members) != count or any(member.kernel != first.kernel for member in members):
        raise ValueError(
            f"the classifiers inside {type(estimator).__name__} have different kernels (gamma='scale' is "
            "another number for other rows); give gamma a number"
            + ("" if decision.scheme != "calibrated" else ", or calibrate with ensemble=False")
        )
    vectors = stack_rows([member.vectors for member in members])
    coefficients = np.zeros((vectors.shape[0], decision.n_scores))
    row = column = 0
    for member in members:
        rows, columns = member.coefficients.shape
        coefficients[row : row + rows, column : column + columns] = member.coefficients
        row, column = row + rows, column + columns
    return replace(
        first,
        vectors=vectors,
        coefficients=coefficients,
        intercept=np.concatenate([member.intercept for member in members]),
        decision=decision,
        origin={**first.origin, "estimator": type(estimator).__name__},
    )
