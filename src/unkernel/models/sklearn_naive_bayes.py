"""Make models from scikit-learn's naive Bayes classifiers: sums of log probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.models.decision import Decision, Softmax
from unkernel.models.linear import LinearModel

NAIVE_BAYES = ("MultinomialNB", "ComplementNB", "BernoulliNB", "GaussianNB", "CategoricalNB")


def is_naive_bayes(estimator: Any) -> bool:
    """Return whether an estimator is a supported naive Bayes classifier of scikit-learn."""
    return type(estimator).__name__ in NAIVE_BAYES and type(estimator).__module__ == "sklearn.naive_bayes"


def from_naive_bayes(estimator: Any, *, rows_are_prepared: bool = False) -> LinearModel:
    """Return the model of a naive Bayes classifier.

    Parameters
    ----------
    estimator : MultinomialNB, ComplementNB, BernoulliNB, GaussianNB or CategoricalNB
    rows_are_prepared : bool, default=False
        Whether rows are prepared by the plan of a pipeline: binarized (BernoulliNB), converted to squared
        distances from the means of each class in turn (GaussianNB), or with one feature per category
        (CategoricalNB).
    """
    name = type(estimator).__name__
    changes_rows = name in ("GaussianNB", "CategoricalNB") or getattr(estimator, "binarize", None) is not None
    if changes_rows and not rows_are_prepared:
        raise ValueError(
            f"{name} changes its rows before it scores them, and a model of rows does not: give it as the "
            f"last step of a pipeline, such as make_pipeline({name}())"
        )
    classes = np.asarray(estimator.classes_)
    if len(classes) < 2:
        raise ValueError(f"{name} was trained on one class: its answer is equal for all records")
    read = _READERS.get(name, _read_multinomial)
    with np.errstate(all="ignore"):
        weights, intercept = read(estimator)
        if len(classes) == 2:
            weights, intercept = weights[:, 1:] - weights[:, :1], intercept[1:] - intercept[:1]
    if not (np.isfinite(weights).all() and np.isfinite(intercept).all()):
        raise ValueError(f"{name} has a probability or a variance of 0: fit it with more smoothing")
    return LinearModel(
        weights=np.ascontiguousarray(weights),
        intercept=intercept,
        decision=Decision("binary" if len(classes) == 2 else "one_vs_rest", classes, probability=Softmax()),
        n_features=len(weights),
        fixed_width=True,
        origin={"format": "scikit-learn", "estimator": name},
    )


Log = NDArray[np.float64]


def _read_multinomial(estimator: Any) -> tuple[Log, Log]:
    """Return the weights, one column per class, and the intercepts of MultinomialNB or ComplementNB."""
    weights = np.array(estimator.feature_log_prob_, dtype=np.float64).T
    if type(estimator).__name__ == "ComplementNB":
        return weights, np.zeros(weights.shape[1])
    return weights, np.array(estimator.class_log_prior_, dtype=np.float64)


def _read_bernoulli(estimator: Any) -> tuple[Log, Log]:
    """Return weights for present features; the intercepts contain the terms of absent features."""
    present = np.asarray(estimator.feature_log_prob_, dtype=np.float64)
    absent = np.log(1.0 - np.exp(present))
    return (present - absent).T, np.asarray(estimator.class_log_prior_) + absent.sum(axis=1)


def _read_gaussian(estimator: Any) -> tuple[Log, Log]:
    """Return the weights of squared distances that have already been divided by the variances."""
    variances = np.asarray(estimator.var_, dtype=np.float64)
    n_classes, n_columns = variances.shape
    weights = np.kron(np.eye(n_classes), np.full((n_columns, 1), -0.5))
    intercept = np.log(estimator.class_prior_) - 0.5 * np.log(2.0 * np.pi * variances).sum(axis=1)
    return weights, intercept


def _read_categorical(estimator: Any) -> tuple[Log, Log]:
    weights = [np.asarray(logarithms, dtype=np.float64).T for logarithms in estimator.feature_log_prob_]
    return np.concatenate(weights), np.array(estimator.class_log_prior_, dtype=np.float64)


_READERS = {
    "BernoulliNB": _read_bernoulli,
    "GaussianNB": _read_gaussian,
    "CategoricalNB": _read_categorical,
}
