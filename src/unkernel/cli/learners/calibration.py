"""Add probabilities to models that have only scores: sigmoids of the scores, fitted to held-out records."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unkernel.models import Decision
from unkernel.models.curves import Curves, Sigmoid, sigmoid

_MAX_STEPS = 100
_TOLERANCE = 1e-10


def fit_curves(decision: Decision, scores: NDArray[np.float64], labels: NDArray[np.intp]) -> Curves | None:
    """Fit and return one sigmoid per score; None unless the scheme is "binary" or "one_vs_rest".

    Parameters
    ----------
    decision : Decision
        The decision of the model.
    scores : (records, scores) float64
        Scores of held-out records.
    labels : (records,) int
        The index of the class of each record.
    """
    if decision.scheme not in ("binary", "one_vs_rest"):
        return None
    class_indices: Sequence[int] = (1,) if decision.scheme == "binary" else range(len(decision.classes))
    return Curves(
        [
            fit_sigmoid(scores[:, score], labels == class_index)
            for score, class_index in enumerate(class_indices)
        ]
    )


def fit_sigmoid(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> Sigmoid:
    """Fit the probabilities 1 / (1 + exp(a f + b)) to scores f (Platt scaling).

    The parameters a and b minimise the sum of t log(1 + exp(a f + b)) + (1 - t) log(1 + exp(-a f - b)) over
    all records. The target t is nearly 1 for positive records and nearly 0 for others. The solver is Newton's
    method with a line search: Lin, Lin and Weng, A note on Platt's probabilistic outputs for support vector
    machines, Machine Learning 68 (2007).
    """
    n_positive = int(positive.sum())
    n_negative = len(positive) - n_positive
    target = np.where(positive, (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0))
    parameters = np.array([0.0, np.log((n_negative + 1.0) / (n_positive + 1.0))])
    value = _loss(parameters, scores, target)
    for _ in range(_MAX_STEPS):
        p = sigmoid(parameters[0] * scores + parameters[1])
        residual, curvature = target - p, p * (1.0 - p)
        gradient = np.array([scores @ residual, residual.sum()])
        mixed = float(scores @ curvature)
        hessian = np.array([[scores**2 @ curvature, mixed], [mixed, curvature.sum()]])
        step = -np.linalg.solve(hessian + _TOLERANCE * np.eye(2), gradient)
        descent, length = float(gradient @ step), 1.0
        while length > _TOLERANCE:
            if _loss(parameters + length * step, scores, target) <= value + 1e-4 * length * descent:
                break
            length /= 2
        parameters = parameters + length * step
        previous, value = value, _loss(parameters, scores, target)
        if previous - value < _TOLERANCE * abs(previous):
            break
    return Sigmoid(float(parameters[0]), float(parameters[1]))


def _loss(parameters: NDArray[np.float64], scores: NDArray[np.float64], target: NDArray[np.float64]) -> float:
    exponent = parameters[0] * scores + parameters[1]
    # The sum above, with log(1 + exp(x)) = x + log(1 + exp(-x)).
    return float((target * exponent + np.logaddexp(0.0, -exponent)).sum())
