"""Bound the differences between the numbers of a plan and those of scikit-learn, which come from rounding.

NumPy's exp, log and others differ from the plan's in the last digits. This matters where a step jumps: at
the edges of intervals, at repeated quantiles, at thresholds. Such points often are numbers of the training
data, after the same steps; then the smallest difference would change the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unkernel.records.plan_step import PlanStep

Numbers = NDArray[np.float64]

_EPSILON = float(np.finfo(np.float64).eps)
# Differences relative to the results: of functions, where NumPy errs by up to 4 units in the last place; and
# of powers, which multiply the errors of logarithms by exponents.
_OF_FUNCTIONS, _OF_POWERS = 16 * _EPSILON, 256 * _EPSILON
# Differences of the results of steps whose input differs already; relative to the larger of 1 and the result
# for steps whose results may cancel, such as log(1 + error).
_OF_LATER_STEPS = 64 * _EPSILON
_CANCELLING_STEPS = ("function", "power", "quantiles")
_OF_SCALING = 4 * _EPSILON
_INEXACT_FUNCTIONS = (
    *("arcsinh", "arctan", "cbrt", "cos", "exp", "exp2", "expm1"),
    *("log", "log10", "log1p", "log2", "sin", "tanh"),
)
_PASSING_STEPS = ("finite", "densify", "impute", "snap")


def bound_differences(plan_steps: Sequence[PlanStep], number: int, points: Numbers) -> Numbers:
    """Return bounds of the differences for numbers close to some points; 0 if the numbers are the same.

    Parameters
    ----------
    plan_steps : sequence of PlanStep
        The steps of the plan.
    number : int
        Index of the step whose numbers are compared.
    points : ndarray of float64, shape (n_features, n_points)
        For each feature of the step, the points.

    Returns
    -------
    ndarray of float64, shape (n_features, n_points)
    """
    step = plan_steps[number]
    if step.kind == "concatenate":
        sources = step.table["inputs"].tolist()
        ends = np.cumsum([len(plan_steps[source].names) for source in sources])[:-1]
        parts = zip(sources, np.split(points, ends), strict=True)
        return np.concatenate([bound_differences(plan_steps, source, part) for source, part in parts])
    if "input" not in step.table or step.kind in ("bins", "binarize", "indicate"):
        return np.zeros(points.shape)
    source = int(step.table["input"])
    if step.kind in _PASSING_STEPS:
        return bound_differences(plan_steps, source, points)
    if step.kind in ("select", "scale"):
        bound = _bound_selected if step.kind == "select" else _bound_scaled
        return bound(plan_steps, step, points)
    ones = np.ones((len(plan_steps[source].names), 1))
    if bound_differences(plan_steps, source, ones).any():
        least_size = 1.0 if step.kind in _CANCELLING_STEPS else 0.0
        return _OF_LATER_STEPS * np.maximum(np.abs(points), least_size)
    return _get_error_of_step(step) * np.abs(points)


def _bound_selected(plan_steps: Sequence[PlanStep], step: PlanStep, points: Numbers) -> Numbers:
    places = step.table["places"]
    kept = places >= 0
    of_input, result = np.zeros((len(places), points.shape[1])), np.zeros(points.shape)
    of_input[kept] = points[places[kept]]
    result[places[kept]] = bound_differences(plan_steps, int(step.table["input"]), of_input)[kept]
    return result


def _bound_scaled(plan_steps: Sequence[PlanStep], step: PlanStep, points: Numbers) -> Numbers:
    """Return the bounds after a scaling; the difference of large numbers keeps their errors."""
    center, shift = (_read(step.table[name], 0.0) for name in ("subtract", "add"))
    factor = _read(step.table["multiply"], 1.0) / _read(step.table["divide"], 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):  # weights of parts of a union may be 0
        before = (points - shift) / factor + center
    differences = bound_differences(plan_steps, int(step.table["input"]), before)
    rounding = _OF_SCALING * (np.abs(points) + np.abs(shift))
    return np.where(differences > 0.0, differences * np.abs(factor) + rounding, 0.0)


def _read(values: Any, default: float) -> Any:
    return values[:, np.newaxis] if len(values) else default


def _get_error_of_step(step: PlanStep) -> float:
    """Return the relative error of the results of a step if its input is the same."""
    if step.kind == "power":
        return _OF_POWERS
    is_inexact = (
        (step.kind == "function" and step.table["function"] in _INEXACT_FUNCTIONS)
        or (step.kind == "quantiles" and step.table["normal"])
        or step.kind in ("normalize", "tfidf")
    )
    return _OF_FUNCTIONS if is_inexact else 0.0
